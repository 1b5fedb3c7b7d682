"""`mem tour`: real commands with their real output, piped and at a terminal, and nothing left behind."""

import filecmp
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from memcli.cli import main, tour

ROOT = Path(__file__).parents[2]
MEM = [sys.executable, "-m", "memcli"]
ESCAPE = "\x1b["


def two(folder: Path) -> tuple[Path, Path]:
    """Return an empty folder to stand in and an empty one for temporary files."""
    here, temporary = folder / "here", folder / "temporary"
    here.mkdir()
    temporary.mkdir()
    return here, temporary


@pytest.fixture
def folders(tmp_path):
    return two(tmp_path)


@pytest.fixture(scope="module")
def piped(tmp_path_factory):
    """Give one tour that was taken in a pipe."""
    return take(two(tmp_path_factory.mktemp("piped")))


def clean(temporary: Path, **more: str) -> dict[str, str]:
    """Return an environment without a home, and nothing of this machine but the path."""
    return {"PATH": os.environ["PATH"], "TMPDIR": str(temporary), "LANG": "C.UTF-8", **more}


def take(folders, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    here, temporary = folders
    return subprocess.run(
        [*MEM, "tour", *words],
        cwd=here,
        env=clean(temporary, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def commands(output: str) -> list[str]:
    return re.findall(r"(?m)^\$ (mem .*)$", output)


def test_every_step_is_run_and_ends_as_it_should(piped):
    assert (piped.returncode, piped.stderr) == (0, "")
    assert len(commands(piped.stdout)) == len(tour.STEPS)
    assert re.findall(r"(?m)^exit (\d+)$", piped.stdout) == [str(step.code) for step in tour.STEPS if step.code]


def test_the_refusal_is_shown_and_no_traceback(piped):
    refused = piped.stdout.partition("AARAV_GARCIA_1177")[2]
    assert "error: that value was rejected in default" in refused
    assert "exit 3" in refused
    assert "Traceback" not in piped.stdout + piped.stderr


def test_reading_the_conversation_again_brings_back_nothing(piped):
    again = piped.stdout.rpartition("$ mem extract")[2].partition("$ mem context")[0]
    assert "tombstoned" in again
    assert "echo" in again
    assert " new " not in again


def test_the_held_fact_is_settled_by_a_decisions_file(piped):
    before, _, after = piped.stdout.partition("$ mem review apply")
    assert "held" in before
    assert "the user's personal best time is 25:50" in after.partition("$ mem context")[2].partition("$")[0]


def test_no_id_in_a_command_is_made_up(piped):
    words = " ".join(commands(piped.stdout))
    named = set(re.findall(r"(?:why|correct|tombstone) ([0-9a-f]+)", words))
    offered = set(re.findall(r"(?m)^  (?:new|held) +([0-9a-f]{4,}) ", piped.stdout))
    assert named
    assert named <= offered


def test_it_leaves_nothing_behind(folders):
    done = take(folders)

    assert done.returncode == 0
    assert [list(folder.iterdir()) for folder in folders] == [[], []]


def test_what_the_environment_says_to_mem_does_not_reach_it(folders):
    told = {"MEM_DB": "/nowhere/else.db", "MEM_SCOPE": "user/ben", "MEM_ACTOR": "mallory", "MEM_TIMEOUT": "soon"}
    done = take(folders, **told)

    assert done.returncode == 0
    assert "scope default" in done.stdout
    assert not [word for word in ("mallory", "user/ben", "else.db") if word in done.stdout]


def test_piped_it_has_the_screens_of_a_terminal_without_their_colours(piped):
    assert "  ID    STATE     SUBJECT  FACT" in piped.stdout
    assert ESCAPE not in piped.stdout


def test_a_reader_that_has_seen_enough_is_no_failure(folders):
    here, temporary = folders
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m memcli tour | head -n 3"],
        cwd=here,
        env=clean(temporary),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )

    assert len(done.stdout.splitlines()) == 3
    assert done.stderr == ""
    assert list(temporary.iterdir()) == []


def terminal(folders, *words: str, **more: str) -> pexpect.spawn:
    here, temporary = folders
    return pexpect.spawn(
        MEM[0],
        [*MEM[1:], "tour", *words],
        cwd=str(here),
        env=clean(temporary, TERM="xterm", **more),
        dimensions=(24, 80),
        encoding="utf-8",
        timeout=60,
    )


def ended(child: pexpect.spawn) -> int | None:
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus


def test_at_a_terminal_it_runs_through_in_colour_and_as_a_script_all_the_same(folders):
    child = terminal(folders)

    code = ended(child)
    assert code == 0
    assert ESCAPE in child.before
    assert "by agent, extract" in child.before
    assert "terminal:" not in child.before
    assert "Traceback" not in child.before


def test_no_color_is_honoured_at_a_terminal(folders):
    child = terminal(folders, NO_COLOR="1")

    assert ended(child) == 0
    assert ESCAPE not in child.before


def test_with_pause_it_waits_for_a_key_before_each_command(folders):
    child = terminal(folders, "--pause", NO_COLOR="1")

    for _ in tour.STEPS:
        child.expect_exact("-- any key goes on, q ends --")
        child.send(" ")
    assert ended(child) == 0
    assert "mem init" in child.before


def test_with_pause_a_q_ends_it_and_nothing_is_left(folders):
    child = terminal(folders, "--pause", NO_COLOR="1")
    child.expect_exact("-- any key goes on, q ends --")
    child.send(" ")
    child.expect_exact("made memory.db")
    child.expect_exact("-- any key goes on, q ends --")
    child.send("q")

    assert ended(child) == 0
    assert "$ mem import" not in child.before
    assert list(folders[1].iterdir()) == []


def test_piped_pause_waits_for_nobody(folders):
    assert take(folders, "--pause").returncode == 0


# ---------------------------------------------------------------- the folder


def test_a_folder_that_is_kept_holds_the_file_and_the_transcripts(folders):
    here, temporary = folders
    done = take(folders, "--keep", "tried")

    assert done.returncode == 0
    assert {"memory.db", *tour.FILES} <= {path.name for path in (here / "tried").iterdir()}
    shown = subprocess.run(
        [*MEM, "show"], cwd=here / "tried", env=clean(temporary), capture_output=True, text=True, check=False
    )
    assert "Hoboken" in shown.stdout


def test_a_folder_with_something_in_it_is_left_alone(folders):
    here, _ = folders
    (here / "mine").mkdir()
    (here / "mine" / "notes").write_text("mine")
    done = take(folders, "--keep", "mine")

    assert done.returncode == 2
    assert done.stderr == "error: mine is not empty\nhint: name a folder that is not there yet\n"
    assert [path.name for path in (here / "mine").iterdir()] == ["notes"]


def test_a_file_in_the_place_of_the_folder_is_said(folders):
    (folders[0] / "notes").write_text("mine")

    assert take(folders, "--keep", "notes").returncode == 2
    assert take(folders, "--keep", "notes/tried").returncode == 14


def test_a_temporary_folder_that_cannot_be_made_is_said(folders, monkeypatch):
    (folders[1] / "file").write_text("")
    monkeypatch.setattr(tour.tempfile, "tempdir", str(folders[1] / "file"))

    assert main(["tour"]) == 14


# ---------------------------------------------------------------- inside the process


def test_it_puts_back_what_it_changed_in_its_process(folders, monkeypatch, capsys):
    monkeypatch.chdir(folders[0])
    monkeypatch.setenv("MEM_SCOPE", "user/ben")
    before = (dict(os.environ), Path.cwd(), sys.stdin)

    assert main(["tour"]) == 0
    assert (dict(os.environ), Path.cwd(), sys.stdin) == before
    assert "$ mem init" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (tour.Step(say="There is no file yet.", words=("show",)), 10),
        (tour.Step(say="Nothing refuses this.", words=("glossary",), code=3), 70),
    ],
)
def test_a_step_that_ends_otherwise_than_it_should_ends_the_tour_with_a_code(step, code, monkeypatch, capsys):
    monkeypatch.setattr(tour, "STEPS", (step, *tour.STEPS))

    assert main(["tour"]) == code
    assert "the tour stops here: `mem " in capsys.readouterr().err


# ---------------------------------------------------------------- what is shipped


def test_it_works_from_an_installed_package_with_nothing_of_the_checkout(folders):
    here, temporary = folders
    site = here / "site-packages"
    shutil.copytree(ROOT / "memcli", site / "memcli", ignore=shutil.ignore_patterns("__pycache__", ".mypy_cache"))
    where = "import memcli.cli.tour as t; print(t.TRANSCRIPTS)"

    environment = clean(temporary, PYTHONPATH=str(site), PYTHONDONTWRITEBYTECODE="1")
    asked = [sys.executable, "-c", where]
    found = subprocess.run(asked, cwd=temporary, env=environment, capture_output=True, check=True)
    done = subprocess.run([*MEM, "tour"], cwd=temporary, env=environment, capture_output=True, check=False)
    assert Path(found.stdout.decode().strip()) == site / "memcli" / "data" / "tour"
    assert done.returncode == 0


def test_the_transcripts_are_copies_of_fixtures_and_their_source_is_noted():
    noted = (tour.TRANSCRIPTS / "SOURCE.md").read_text(encoding="utf-8")
    originals = {"running.json": "longmemeval_personal_best.json", "flights.json": "ta03_bare_messages.json"}

    assert set(originals) == set(tour.FILES)
    for name, original in originals.items():
        assert filecmp.cmp(tour.TRANSCRIPTS / name, ROOT / "fixtures/openai_messages" / original, shallow=False)
        assert f"| {name} |" in noted
    assert noted.count("Permission is hereby granted") == len(originals)
