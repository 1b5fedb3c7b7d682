"""The page of `mem budget simulate --html`: written whole or not at all, and harmless in a real browser."""

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from memcli.render.budget_page import simulation_page
from tests.cli.driver import Mem
from tests.made_budget import fate, finding, simulation

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
OUTSIDE = "http://192.0.2.1/x"
ATTACK = f"</script><script>document.title='taken'</script><img src={OUTSIDE} onerror=document.title='taken'>\x1b[31m"
CHAT = [{"role": "user", "content": ATTACK}, {"role": "assistant", "content": "no"}]


@pytest.fixture
def desk(bare: Mem) -> Mem:
    (bare.home / "chat.json").write_text(json.dumps(CHAT))
    return bare


def write_page(desk: Mem, *more: str):
    return desk.run("budget", "simulate", "chat.json", "--html", "report.html", *more)


# ---------------------------------------------------------------- the file


def test_a_page_is_written_beside_the_answer(desk):
    ran = write_page(desk, "--json")

    assert ran.code == 0
    assert ran.document["totals"]["messages"] == 2
    assert (desk.home / "report.html").read_text().startswith("<!doctype html>")


def test_a_page_overwrites_nothing_unless_it_is_forced_to(desk):
    (desk.home / "report.html").write_text("mine")
    ran = write_page(desk)

    assert (ran.code, ran.out) == (2, "")
    assert (desk.home / "report.html").read_text() == "mine"
    assert write_page(desk, "--force").code == 0
    assert (desk.home / "report.html").read_text() != "mine"


@pytest.mark.parametrize("name", ["none/report.html", "chat.json/report.html"])
def test_a_page_that_cannot_be_written_leaves_nothing(desk, name):
    before = sorted(path.name for path in desk.home.iterdir())

    assert desk.run("budget", "simulate", "chat.json", "--html", name).code == 14
    assert sorted(path.name for path in desk.home.iterdir()) == before


@pytest.mark.parametrize("name", ["", "-", "."])
def test_a_page_needs_a_path_of_its_own(desk, name):
    assert desk.run("budget", "simulate", "chat.json", "--html", name, "--force").code == 2


def test_a_page_shows_one_transcript(desk):
    assert desk.run("budget", "simulate", "chat.json", "chat.json", "--html", "report.html").code == 2
    assert not (desk.home / "report.html").exists()


# ---------------------------------------------------------------- in a browser


@pytest.fixture
def browser(tmp_path):
    """Return what opens a page and gives its document as it then is, what it complained of, and what it fetched."""
    if CHROMIUM is None:
        pytest.skip("NOT TRIED IN A BROWSER: no chromium is on the path; install it to see the page run")

    def opened(page: str) -> tuple[str, list[str], set[str]]:
        place, log = tmp_path / "page.html", tmp_path / "net.json"
        place.write_text(page, encoding="utf-8")
        done = subprocess.run(
            [
                CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
                "--no-first-run", "--disable-component-update", "--disable-background-networking",
                "--enable-logging=stderr", f"--log-net-log={log}", "--virtual-time-budget=2000", "--dump-dom",
                place.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        )  # fmt: skip
        said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        asked = set(re.findall(r'"url":"([^"]+)"', log.read_text()))
        return done.stdout, said, asked & {OUTSIDE}

    return opened


def hostile_page() -> str:
    fates = tuple(fate(at, id=f"{ATTACK}{at}", role=ATTACK, reason=ATTACK, blocks=(ATTACK,)) for at in range(6))
    prompt = tuple(replace(piece, name=ATTACK, role=ATTACK, text=ATTACK) for piece in simulation().prompt)
    s = simulation(fates=fates, prompt=prompt, findings=(finding(text=ATTACK, remedy=ATTACK),), refused=ATTACK)
    return simulation_page(s, name=ATTACK, texts=dict.fromkeys(range(6), ATTACK), notes=[ATTACK])


def title(document: str) -> str:
    found = re.search(r"<title>(.*?)</title>", document, re.DOTALL)
    assert found
    return html.unescape(found[1])


def test_a_browser_shows_hostile_text_and_runs_none_of_it(browser):
    document, said, fetched = browser(hostile_page())

    assert title(document).startswith("</script><script>document.title=")
    assert said == []
    assert fetched == set()
    assert "6 of 6 messages shown" in document


def test_a_page_that_asks_the_network_would_be_noticed(browser):
    _, _, fetched = browser(f"<!doctype html><title>x</title><img src={OUTSIDE}>")

    assert fetched == {OUTSIDE}


def test_a_script_that_is_not_the_page_s_own_is_stopped_by_its_policy(browser):
    page = hostile_page().replace("</main>", "<script>document.title='taken'</script></main>")
    document, said, _ = browser(page)

    assert title(document) != "taken"
    assert any("Content Security Policy" in line for line in said)


def test_the_messages_can_be_filtered(browser):
    page = simulation_page(simulation(), name="s.json", texts={0: "needle", 1: "hay"})
    typed = """<script>
      words.value = "NEEDLE"; words.dispatchEvent(new Event("input"));
      const first = shown.textContent;
      words.value = ""; ended.value = "window"; ended.dispatchEvent(new Event("change"));
      document.title = first + "; " + shown.textContent;
    </script></body>"""
    # The page's own policy would stop the hand that types here.
    page = re.sub(r"script-src '[^']+'", "script-src 'unsafe-inline'", page).replace("</body>", typed)
    document, said, _ = browser(page)

    assert said == []
    assert title(document) == "1 of 6 messages shown; 3 of 6 messages shown"


def test_a_page_can_be_read_by_ear_and_by_keyboard():
    page = simulation_page(simulation(), name="s.json", texts={})

    assert page.count("<h1>") == 1
    assert len(re.findall(r'<section aria-labelledby="(\w+)-title">\n<h2 id="\1-title">', page)) == page.count(
        "<section"
    )
    assert page.count("<table") == page.count("<caption>") == page.count('role="region" tabindex="0" aria-label=')
    assert page.count('scope="row"') > 10
    assert len(re.findall(r"<svg(?! [^>]*(?:aria-label|aria-hidden)=)", page)) == 0
    assert set(re.findall(r'<(?:input|select) id="(\w+)"', page)) == set(re.findall(r'<label for="(\w+)"', page))
    assert '<html lang="en">' in page
