"""export, filter and diff, as a script and as git call them."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from tests.cli.driver import Mem

WHY = ("--reason", "tidying up")
GIT = ("git", "-c", "user.name=anna", "-c", "user.email=anna@example.com")


@pytest.fixture
def filled(mem: Mem) -> Mem:
    """f1 was corrected, f2 is about anna, f3 is rejected."""
    for words in (
        ("add", "Anna lives in Berlin", "--subject", "anna", "--attribute", "home city", "--value", "Berlin"),
        ("add", "anna: likes oat milk", "--subject", "anna"),
        ("add", "tea is cold"),
        ("correct", "f1", "Anna lives in Lisbon", *WHY),
        ("tombstone", "f3", *WHY),
    ):
        assert mem.run(*words).code == 0
    return mem


# -------------------------------------------------------------------- export


def test_an_export_goes_to_standard_output_and_the_counts_to_standard_error(filled: Mem) -> None:
    ran = filled.run("export")

    found = [json.loads(line) for line in ran.out.splitlines()]
    assert (ran.code, found[0]) == (0, {"mem": 1, "type": "header", "scope": "default"})
    assert found[-1]["records"] == len(found) - 1
    assert ran.err == "exported 3 facts as mem\n"


def test_what_another_tool_does_not_get_is_said(filled: Mem) -> None:
    assert filled("export", "--format", "mcp") == snapshot("""\
{"type": "entity", "name": "anna", "entityType": "unknown", "observations": ["Anna lives in Lisbon", "likes oat milk"]}
--- stderr
exported 2 facts as mcp
facts that stay behind: 1 rejected
not in the export: 1 tombstone, 1 earlier version, 4 pieces of evidence, 4 messages, attribute and value of 1 fact
""")
    assert filled("export", "--format", "markdown") == snapshot("""\
# Memory

## anna

- Anna lives in Lisbon
- anna: likes oat milk
--- stderr
exported 2 facts as markdown
facts that stay behind: 1 rejected
not in the export: 1 tombstone, 1 earlier version, 4 pieces of evidence, 4 messages, attribute and value of 1 fact
""")


def test_proposals_and_policy_stay_with_the_file_and_are_counted(reviewed: Mem) -> None:
    assert reviewed.run("add", "tea is hot").code == 0
    assert reviewed.run("retract", "f1", *WHY).code == 6

    assert reviewed.run("export").err == "exported 1 fact as mem\nnot in the export: 1 proposal\n"


def test_a_file_appears_whole_for_its_owner_only(filled: Mem) -> None:
    assert filled("export", "-o", "out.jsonl") == snapshot("""\
--- stderr
exported 3 facts as mem
""")
    made = filled.home / "out.jsonl"

    assert made.read_text() == filled.run("export").out
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert sorted(path.name for path in filled.home.iterdir()) == ["memory.db", "out.jsonl"]


def test_nothing_is_written_over_without_force(filled: Mem) -> None:
    (filled.home / "out.md").write_text("mine")

    assert filled("export", "--format", "markdown", "-o", "out.md") == snapshot("""\
--- stderr
error: out.md exists already; nothing was written
hint: name another file, or give --force
--- exit 2
""")
    assert (filled.home / "out.md").read_text() == "mine"
    assert filled.run("export", "--format", "markdown", "-o", "out.md", "--force").code == 0
    assert (filled.home / "out.md").read_text().startswith("# Memory\n")


@pytest.mark.parametrize("name", ["memory.db", "./memory.db", "memory.db-wal", "link.db", "hard.db"])
def test_the_memory_file_itself_is_never_written_over(filled: Mem, name: str) -> None:
    (filled.home / "link.db").symlink_to(filled.db)
    (filled.home / "hard.db").hardlink_to(filled.db)
    before = filled.db.read_bytes()
    ran = filled.run("export", "-o", name, "--force")

    assert (ran.code, "is the memory file" in ran.err) == (2, True)
    assert filled.db.read_bytes() == before


@pytest.mark.parametrize(("name", "code"), [("nowhere/out.jsonl", 14), (".", 2)])
def test_a_place_that_cannot_be_written_is_said(filled: Mem, name: str, code: int) -> None:
    ran = filled.run("export", "-o", name)

    assert ran.code == code
    assert ran.err.startswith("error: ")
    assert filled.run("export", "-o", "-").out == filled.run("export").out


def test_a_row_that_was_tampered_with_leaves_no_file_behind(filled: Mem) -> None:
    import sqlite3

    assert filled.run("export", "-o", "good.jsonl").code == 0
    conn = sqlite3.connect(filled.db)
    conn.create_function("mem_writer", 0, lambda: 1)
    conn.execute("update versions set text = 'x' where text = 'Anna lives in Lisbon'")
    conn.commit()
    conn.close()

    assert filled.run("export", "-o", "bad.jsonl").code == 13
    assert not (filled.home / "bad.jsonl").exists()
    assert [path.name for path in filled.home.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--format", "yaml"), "yaml is no format that can be written"),
        (("--state", "accepted"), "mem's own format is complete"),
        (("--format", "mcp", "--state", "revoked"), "what is revoked does not go to other tools"),
        (("--format", "mcp", "--state", "believed"), "believed is no state"),
        (("--scope", "a", "--all-scopes"), "exclude each other"),
    ],
)
def test_what_cannot_be_asked_for_is_a_usage_error(filled: Mem, words: tuple[str, ...], why: str) -> None:
    ran = filled.run("export", *words)

    assert ran.code == 2
    assert why in ran.err
    assert ran.out == ""


def test_all_scopes_must_be_typed_and_is_in_the_log(filled: Mem) -> None:
    assert filled.run("add", "bob likes tea", "--scope", "user/bob").code == 0
    before = filled.events()

    assert "bob" not in filled.run("export").out
    assert filled.events() == before
    assert "bob likes tea" in filled.run("export", "--all-scopes").out
    assert filled.events() == before + 1
    bound = filled.run("export", "--all-scopes", env={"MEM_SCOPE": "user/bob"})
    assert (bound.code, bound.out) == (3, "")


def test_a_reader_that_leaves_early_is_no_error(filled: Mem) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "memcli", "export"],
        cwd=filled.home,
        env=filled.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.close()
        assert child.stderr is not None
        complaint = child.stderr.read()
        code = child.wait(60)

    assert (code, b"error" in complaint, b"Traceback" in complaint) == (0, False, False)


def test_secrets_are_named_and_never_printed(filled: Mem) -> None:
    pytest.importorskip("detect_secrets")
    assert filled.run("add", "the key is AKIAIOSFODNN7EXAMPLE").code == 0
    ran = filled.run("export", "--format", "llamaindex")

    assert ran.code == 0
    assert "may hold a secret (AWS Access Key)" in ran.err
    assert "AKIA" not in ran.err
    assert filled.ids()[3] in ran.err


def test_where_a_secret_must_fail_nothing_is_written(filled: Mem) -> None:
    pytest.importorskip("detect_secrets")
    assert filled.run("export", "--fail-on-secrets", "-o", "clean.jsonl").code == 0
    assert (filled.home / "clean.jsonl").read_text() == filled.run("export").out
    assert filled.run("add", "the key is AKIAIOSFODNN7EXAMPLE").code == 0

    for words in ((), ("-o", "out.jsonl"), ("--format", "mem0")):
        ran = filled.run("export", "--fail-on-secrets", *words)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.endswith("nothing was written\n")
    assert not (filled.home / "out.jsonl").exists()


def test_without_the_library_that_is_said_and_cannot_be_relied_on(filled: Mem, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("detect_secrets")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "detect_secrets", None)
    ran = filled.run("export")

    assert ran.code == 0
    assert "secrets were not looked for: pip install 'memcli[secrets]' does\n" in ran.err
    refused = filled.run("export", "--fail-on-secrets")
    assert (refused.code, refused.out) == (2, "")


# -------------------------------------------------------------------- and back


def test_a_person_takes_an_export_back_as_it_was(filled: Mem) -> None:
    assert filled.run("export", "-o", "out.jsonl").code == 0
    assert filled.run("init", "--db", "back.db").code == 0
    seen = filled.term("import", "out.jsonl", "--restore", "--db", "back.db", columns=200)

    assert (seen.code, "3 facts" in seen.screen) == (0, True)
    assert filled.run("export", "--db", "back.db").out == (filled.home / "out.jsonl").read_text()
    assert filled.run("check", "--db", "back.db").code == 0
    assert filled.run("log", "verify", "--db", "back.db").code == 0


def test_a_script_cannot_take_an_export_back_and_imports_it_like_any_store(filled: Mem) -> None:
    assert filled.run("export", "-o", "out.jsonl").code == 0
    assert filled.run("init", "--db", "back.db", "--admission", "direct").code == 0

    refused = filled.run("import", "out.jsonl", "--restore", "--db", "back.db")
    assert (refused.code, refused.out) == (3, "")
    assert filled.run("show", "--db", "back.db").out == ""
    done = filled.ok("import", "out.jsonl", "--db", "back.db")["files"][0]
    assert (done["format"], done["tombstones"], done["facts"]) == ("mem", 1, 3)
    shown = filled.run("show", "--db", "back.db").out
    assert "Anna lives in Lisbon" in shown
    assert "tea is cold" not in shown


# -------------------------------------------------------------------- filter


def test_a_pipe_lets_through_what_is_not_rejected(filled: Mem) -> None:
    said = b'tea is hot\nTEA is cold!\n{"memory": "tea is cold"}\n'

    assert filled("filter", stdin=said) == snapshot("""\
tea is hot
--- stderr
1 passed, 2 stopped
""")
    assert filled("filter", "--mark", stdin=b'{"memory": "tea is cold"}\n') == snapshot("""\
{"memory": "tea is cold", "mem": "tombstoned"}
--- stderr
0 passed, 1 marked
""")


def test_an_exit_code_says_that_something_was_stopped_where_that_is_asked_for(filled: Mem) -> None:
    assert filled.run("filter", stdin=b"tea is cold\n").code == 0
    assert filled.run("filter", "--exit-code", stdin=b"tea is cold\n").code == 1
    assert filled.run("filter", "--exit-code", stdin=b"tea is hot\n").code == 0


def test_a_slot_is_known_in_other_words(filled: Mem) -> None:
    assert filled.run("tombstone", "f1", *WHY).code == 0
    record = b'{"subject": "Anna", "attribute": "home city", "value": "LISBON", "text": "she is Lisboan"}\n'

    assert filled.run("filter", stdin=record).out == ""
    assert filled.run("filter", stdin=record.replace(b"LISBON", b"Porto")).out != ""


def test_filtering_needs_no_right_to_write_and_is_not_in_the_log(filled: Mem) -> None:
    before = filled.events()
    filled.db.chmod(0o400)

    assert filled.run("filter", stdin=b"tea is cold\ntea is hot\n").out == "tea is hot\n"
    filled.db.chmod(0o600)
    assert filled.events() == before


def test_where_the_memory_cannot_be_used_nothing_passes(bare: Mem) -> None:
    ran = bare.run("filter", stdin=b"tea is hot\n")

    assert (ran.code, ran.out) == (10, "")


def test_bytes_that_are_no_text_pass_as_they_are(filled: Mem) -> None:
    data = b"\xff\xfe\x00 odd\r\n{broken\n\n"
    done = filled.spawn("filter", stdin=data, around='"$@" > out.bin')

    assert done.code == 0
    assert (filled.home / "out.bin").read_bytes() == data


def test_lines_come_out_while_more_come_in(filled: Mem) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "memcli", "filter"],
        cwd=filled.home,
        env=filled.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for line in (b"one\n", b"two\n"):
            child.stdin.write(line)
            child.stdin.flush()
            assert child.stdout.readline() == line
        child.stdin.close()
        assert child.wait(60) == 0


def test_a_reader_of_the_pipe_that_leaves_early_is_no_error(filled: Mem) -> None:
    done = filled.spawn("filter", stdin=b"line\n" * 50_000, around='"$@" | head -n 1')

    assert done.out == "line\n"
    assert (done.code, "error" in done.err) == (0, False)


@pytest.mark.parametrize("words", [("--format", "yaml"), ("--scope", "*")])
def test_a_filter_that_cannot_be_made_lets_nothing_through(filled: Mem, words: tuple[str, ...]) -> None:
    ran = filled.run("filter", *words, stdin=b"tea is hot\n")

    assert (ran.code, ran.out) == (2, "")


# -------------------------------------------------------------------- diff


@pytest.fixture
def later(filled: Mem) -> Mem:
    """`before.db` is the file as it was; since then f2 was retracted and f4 added."""
    shutil.copy(filled.db, filled.home / "before.db")
    assert filled.run("retract", "f2", *WHY).code == 0
    assert filled.run("add", "water is wet").code == 0
    return filled


def test_two_files_are_compared_fact_by_fact(later: Mem) -> None:
    assert later("diff", "before.db", "memory.db") == snapshot("""\
before.db → memory.db · scope default
1 added, 1 changed, 2 the same

added
  f4    accepted  water is wet

changed
  f2    “anna: likes oat milk”  accepted → revoked
""")
    assert later("diff", "before.db", "before.db") == snapshot("""\
before.db → before.db · scope default
no difference in 3 facts
""")


def test_a_difference_as_markdown_for_a_pull_request(later: Mem) -> None:
    assert later("diff", "before.db", "memory.db", "--markdown") == snapshot("""\
### Memory: before.db → memory.db

scope default: 1 added, 1 changed, 2 the same

| | fact | before | after |
|---|---|---|---|
| added | f4 |  | water is wet \\(accepted\\) |
| changed | f2 | anna: likes oat milk \\(accepted\\) | anna: likes oat milk \\(revoked\\) |
""")


def test_the_document_of_a_difference(later: Mem) -> None:
    found = later.ok("diff", "before.db", "memory.db")

    assert list(found) == ["before", "after", "differs", "same", "added", "removed", "changed", "tombstones"]
    assert found["before"] == {"path": "before.db", "scope": "default"}
    assert [fact["text"] for fact in found["added"]] == ["water is wet"]
    assert found["added"][0]["provenance"][0]["quote"] == "water is wet"
    assert [(item["by"], item["what"]) for item in found["changed"]] == [("id", ["state"])]
    assert later.ok("diff", "memory.db", "memory.db")["differs"] is False


def test_the_exit_code_of_a_difference_is_asked_for(later: Mem) -> None:
    assert later.run("diff", "before.db", "memory.db").code == 0
    assert later.run("diff", "before.db", "memory.db", "--exit-code").code == 1
    assert later.run("diff", "before.db", "before.db", "--exit-code").code == 0
    assert later.run("diff", "before.db", "memory.db", "--exit-code", "--json").code == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("memory.db",), 2),
        (("a.db", "b.db", "c.db"), 2),
        (("nothing.db", "memory.db"), 10),
        (("memory.db", "text.txt"), 13),
        (("memory.db", "memory.db", "--json", "--markdown"), 2),
        (("--git", "memory.db", "memory.db"), 2),
        (("memory.db", "-"), 2),
    ],
)
def test_what_cannot_be_compared_is_said(later: Mem, words: tuple[str, ...], code: int) -> None:
    (later.home / "text.txt").write_text("no database at all")
    ran = later.run("diff", *words)

    assert (ran.code, ran.out) == (code, "")


def test_files_of_other_scopes_are_compared_scope_by_scope(later: Mem) -> None:
    assert later.run("add", "bob likes tea", "--scope", "user/bob").code == 0

    assert "bob" not in later.run("diff", "before.db", "memory.db").out
    assert "bob likes tea" in later.run("diff", "before.db", "memory.db", "--scope", "user/bob").out
    before = later.events()
    assert "bob likes tea" in later.run("diff", "before.db", "memory.db", "--all-scopes").out
    assert later.events() == before + 1
    assert later.run("diff", "before.db", "memory.db", "--all-scopes", env={"MEM_SCOPE": "user/bob"}).code == 3


def test_default_scopes_of_other_names_are_compared_and_told(later: Mem) -> None:
    assert later.run("init", "--db", "bob.db", "--scope", "user/bob", "--admission", "direct").code == 0
    assert later.run("add", "water is wet", "--db", "bob.db").code == 0
    ran = later.run("diff", "bob.db", "memory.db")

    assert "scope user/bob and default" in ran.out
    assert ran.err == "compared scope user/bob and default; name one with --scope\n"


# -------------------------------------------------------------------- git


@pytest.fixture
def repository(filled: Mem) -> Mem:
    """A git repository in which `memory.db` was committed twice, f4 being added in between."""
    tool = filled.home / "bin" / "mem"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m memcli "$@"\n')
    tool.chmod(0o755)
    (filled.home / ".gitattributes").write_text("*.db diff=mem\n")
    git(filled, "init", "-q")
    git(filled, "add", ".gitattributes", "memory.db")
    git(filled, "commit", "-q", "-m", "first")
    assert filled.run("add", "water is wet").code == 0
    git(filled, "commit", "-q", "-a", "-m", "second")
    return filled


def git(mem: Mem, *words: str) -> str:
    path = f"{mem.home / 'bin'}{os.pathsep}{mem.env['PATH']}"
    done = subprocess.run(
        [*GIT, *words],
        cwd=mem.home,
        env={**mem.env, "PATH": path, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_PAGER": "cat"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_git_shows_what_a_commit_did_to_the_memory(repository: Mem) -> None:
    git(repository, "config", "diff.mem.command", "mem diff --git")
    shown = git(repository, "diff", "HEAD~1", "HEAD")

    assert shown.startswith("a/memory.db → b/memory.db · scope default\n1 added, 3 the same\n")
    assert "water is wet" in shown
    assert git(repository, "diff", "HEAD", "HEAD") == ""


def test_git_shows_what_is_not_committed_yet_and_leaves_the_file_alone(repository: Mem) -> None:
    git(repository, "config", "diff.mem.command", "mem diff --git")
    assert repository.run("retract", "f2", *WHY).code == 0
    before = repository.db.read_bytes()

    assert "accepted → revoked" in git(repository, "diff")
    assert repository.db.read_bytes() == before
    assert {path.name for path in repository.home.iterdir()} == {".git", ".gitattributes", "bin", "memory.db"}


def test_git_shows_a_memory_that_is_new_gone_or_renamed(repository: Mem) -> None:
    git(repository, "config", "diff.mem.command", "mem diff --git")
    empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's own name for a tree that holds nothing

    assert "4 added, 1 new tombstone, 0 the same" in git(repository, "diff", empty, "HEAD", "--", "memory.db")
    assert "4 removed, 1 tombstone gone, 0 the same" in git(repository, "diff", "HEAD", empty, "--", "memory.db")
    git(repository, "mv", "memory.db", "renamed.db")
    git(repository, "commit", "-q", "-m", "third")
    shown = git(repository, "diff", "-M", "HEAD~2", "HEAD")
    assert shown.startswith("a/memory.db → b/renamed.db")
    assert "water is wet" in shown


@pytest.mark.parametrize("form", ["mem", "markdown"])
def test_git_shows_the_lines_of_an_export_that_changed(repository: Mem, form: str) -> None:
    git(repository, "config", "diff.mem.textconv", f"mem export --format {form} --db")
    shown = git(repository, "diff", "HEAD~1", "HEAD")

    added = [line for line in shown.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert any("water is wet" in line for line in added)
    assert not any("Lisbon" in line for line in added)


def test_the_driver_of_git_takes_what_git_gives(repository: Mem) -> None:
    before = repository.home / "old.db"
    shutil.copy(repository.db, before)
    words = ("memory.db", str(before), "aaaaaaa", "100644", os.devnull, ".", ".")

    assert repository.run("diff", "--git", *words).out.splitlines()[1] == "4 removed, 1 tombstone gone, 0 the same"
    assert Path(before).exists()
