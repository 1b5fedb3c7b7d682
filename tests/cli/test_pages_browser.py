"""The pages in a real browser, driven through a pipe: they filter, take keys, and nothing in them runs or calls."""

import fcntl
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.driver import Mem

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
OUTSIDE = "http://192.0.2.1/x"
ATTACK = (
    f"</title></script></details><script>window.taken=1</script><img src={OUTSIDE} onerror=window.taken=1>"
    '" onmouseover="window.taken=1" autofocus onfocus="window.taken=1" style="position:fixed'
)
UNSEEN = "\x1b[31mred \u202egnp.exe\u202c \x07"
CHAT = [
    {"role": "user", "content": f"Remember that tea is hot. {ATTACK} {UNSEEN}"},
    {"role": "assistant", "content": f"{UNSEEN}{ATTACK}"},
]
KINDS = ("list", "one", "several", "log", "budget")
KEYS = {"Enter": ("\r", 13), "ArrowDown": ("", 40), "ArrowUp": ("", 38)}


class Tab:
    """One tab of a browser, and what was asked, said and shown in it since the last page."""

    def __init__(self, profile: Path) -> None:
        # The browser reads commands from file 3 and answers into file 4, so ours must be neither.
        theirs_in, ours_out = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in os.pipe())
        ours_in, theirs_out = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in os.pipe())
        self.process = subprocess.Popen(
            [
                "bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", str(CHROMIUM), "--headless",
                "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
                "--disable-component-update", "--disable-sync", f"--user-data-dir={profile}",
                "--remote-debugging-pipe", "about:blank",
            ],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self.out, self.back = os.fdopen(ours_out, "wb"), os.fdopen(ours_in, "rb")
        self.sent, self.session, self.events = 0, "", []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{part}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def call(self, method: str, **params: Any) -> Any:
        self.sent += 1
        command = {"id": self.sent, "method": method, "params": params}
        self.out.write(json.dumps(command | ({"sessionId": self.session} if self.session else {})).encode() + b"\0")
        self.out.flush()
        while (answer := self._next()).get("id") != self.sent:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        read = bytearray()
        while (byte := self.back.read(1)) != b"\0":
            assert byte, "the browser has gone"
            read += byte
        return json.loads(read)

    def open(self, place: Path, fragment: str = "") -> None:
        """Open a page anew, and wait until it is there."""
        self._load("about:blank")  # or only the fragment would change where the page is there already
        self.events.clear()
        self._load(place.as_uri() + fragment)

    def _load(self, address: str) -> None:
        loader = self.call("Page.navigate", url=address)["loaderId"]

        def loaded(event: dict[str, Any]) -> bool:
            told = event.get("params", {})
            return event.get("method") == "Page.lifecycleEvent" and (told["loaderId"], told["name"]) == (loader, "load")

        while not any(loaded(event) for event in self.events):
            self.events.append(self._next())

    def run(self, script: str) -> Any:
        """Return what an expression comes to; the page's own policy does not hold for it."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def press(self, *keys: str) -> None:
        """Press keys as a person does, one after the other."""
        for key in keys:
            text, code = KEYS.get(key, (key, ord(key.upper()) if len(key) == 1 else 0))
            told = {"key": key, "windowsVirtualKeyCode": code, "text": text}
            self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **told)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def look(self, *, dark: bool = False, still: bool = False, paper: bool = False) -> None:
        """Prefer the dark, prefer stillness, or print."""
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"},
        ]
        self.call("Emulation.setEmulatedMedia", media="print" if paper else "screen", features=features)

    def complaints(self) -> list[str]:
        """Return errors, dialogs and what was written to the console."""
        kinds = {
            "Log.entryAdded",
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Page.javascriptDialogOpening",
        }
        return [json.dumps(event) for event in self.events if event.get("method") in kinds]

    def asked(self) -> list[str]:
        """Return every address that was asked for."""
        sent = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"].split("#")[0] for event in sent]

    def close(self) -> None:
        self.session = ""
        self.call("Browser.close")
        self.process.wait(timeout=30)
        self.out.close()
        self.back.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    if CHROMIUM is None:
        pytest.skip("NOT TRIED IN A BROWSER: no chromium is on the path; install it to see the pages run")
    tab = Tab(tmp_path_factory.mktemp("profile"))
    yield tab
    tab.close()


@pytest.fixture
def tab(browser: Tab) -> Tab:
    """A tab that looks at pages as most people do."""
    browser.look()
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    browser.call("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
    return browser


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of every kind, of a memory and a transcript full of what should not run."""
    mem = Mem(tmp_path_factory.mktemp("memory"))
    (mem.home / "chat.json").write_text(json.dumps(CHAT))
    kept = ("--evidence", "s1#0", "--quote", "tea is hot")
    for words in (
        ("init", "--admission", "direct"),
        ("import", "chat.json"),
        ("add", "tea is hot", "--subject", ATTACK, "--attribute", "warmth", "--value", ATTACK, *kept),
        ("add", ATTACK, "--derived-from", "f1"),
        ("add", "Lisbon is warm"),
        ("dispute", "f3", "--reason", ATTACK),
        ("show", "--all-states", "--html", "list.html"),
        ("show", "f1", "--html", "one.html"),
        ("show", "f1", "f2", "f3", "--html", "several.html"),
        ("log", "--html", "log.html"),
        ("budget", "simulate", "chat.json", "--token-limit", "200", "--html", "budget.html"),
    ):
        ran = mem.run(*words)
        assert ran.code == 0, ran.text
    return {kind: mem.home / f"{kind}.html" for kind in KINDS}


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A list of a thousand facts, of which the last is the oldest."""
    mem = Mem(tmp_path_factory.mktemp("long"))
    chat = [
        {"role": "user", "content": f"Remember that shelf {number} holds box {number % 7}."} for number in range(1000)
    ]
    (mem.home / "chat.json").write_text(json.dumps(chat))
    for words in (
        ("init", "--admission", "direct"),
        ("import", "chat.json"),
        ("extract",),
        ("show", "--html", "p.html"),
    ):
        assert mem.run(*words).code == 0
    return mem.home / "p.html"


SEEN = "[...document.querySelectorAll('[data-row]')].filter((row) => row.checkVisibility()).length"
SHOWN = "document.getElementById('shown').textContent"
HERE = "document.activeElement.closest('[data-row]')?.querySelector('th, h2').textContent"
OPEN = "document.querySelectorAll('details[open]').length"


# ---------------------------------------------------------------- nothing runs, nothing calls


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_hostile_text_is_shown_and_nothing_of_it_runs(tab, places, kind, dark):
    tab.look(dark=dark)
    tab.open(places[kind])
    tab.run("for (const part of document.querySelectorAll('details')) part.open = true")

    words = tab.run("document.querySelector('main').textContent")
    assert "<script>window.taken=1</script>" in words
    assert '" onmouseover="window.taken=1" autofocus' in words
    assert tab.run("typeof window.taken") == "undefined"
    assert tab.run("document.querySelectorAll('img, iframe, object, embed, [src], [style], [onmouseover]').length") == 0
    assert tab.complaints() == []
    assert tab.asked() == [places[kind].as_uri()]


@pytest.mark.parametrize("kind", ["one", "several", "budget"])
def test_what_a_terminal_would_obey_is_spelt_out(tab, places, kind):
    tab.open(places[kind])
    tab.run("for (const part of document.querySelectorAll('details')) part.open = true")

    words = tab.run("document.body.textContent")
    assert r"\x1b[31mred \u202egnp.exe\u202c \x07" in words
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", words)


@pytest.mark.parametrize("kind", KINDS)
def test_links_lead_to_places_of_the_page_itself(tab, places, kind):
    tab.open(places[kind])

    links = tab.run("[...document.querySelectorAll('[href]')].map((link) => link.getAttribute('href'))")
    assert links[0] in {"#main", "#list"}
    assert all(tab.run(f"document.querySelector({json.dumps(link)}) !== null") for link in links)


def test_a_page_that_asks_the_network_would_be_noticed(tab, tmp_path):
    (tmp_path / "x.html").write_text(f"<!doctype html><title>x</title><img src={OUTSIDE}>")
    tab.open(tmp_path / "x.html")

    assert OUTSIDE in tab.asked()


def test_what_is_smuggled_into_the_file_itself_is_stopped_by_its_policy(tab, places, tmp_path):
    bad = f'<script>window.taken=1</script><img src={OUTSIDE} onerror="window.taken=1"><p style="color:red">'
    (tmp_path / "x.html").write_text(places["list"].read_text(encoding="utf-8").replace("</main>", f"{bad}</main>"))
    tab.open(tmp_path / "x.html")

    assert tab.run("typeof window.taken") == "undefined"
    assert any("Content Security Policy" in line for line in tab.complaints())
    assert tab.run(SHOWN) == "3 of 3 facts shown"


# ---------------------------------------------------------------- the filter


@pytest.mark.parametrize(
    ("fragment", "shown", "seen"),
    [
        ("", "3 of 3 facts shown", 3),
        ("#q=LISBON", "1 of 3 facts shown", 1),
        ("#q=warm%20lisbon", "1 of 3 facts shown", 1),
        ("#q=%22warm%20lisbon%22", "0 of 3 facts shown", 0),
        ("#q=%22is%20warm%22", "1 of 3 facts shown", 1),
        ("#q=tea%20is%20hot&state=accepted", "1 of 3 facts shown", 1),
        ("#state=disputed", "1 of 3 facts shown", 1),
        ("#state=nonsense", "3 of 3 facts shown", 3),
        ("#q=%3Cscript%3E", "2 of 3 facts shown", 2),
        ("#q=nowhere", "0 of 3 facts shown", 0),
        ("#list", "3 of 3 facts shown", 3),
    ],
)
def test_the_fragment_of_an_address_filters_the_list(tab, places, fragment, shown, seen):
    tab.open(places["list"], fragment)

    assert tab.run(SHOWN) == shown
    assert tab.run(SEEN) == seen
    assert tab.complaints() == []


def test_a_filter_that_was_typed_is_kept_in_the_address(tab, places):
    tab.open(places["list"])
    tab.press("/", "h", "o", "t", "Enter")

    assert tab.run("location.hash") == "#q=hot"
    assert tab.run(HERE)
    assert tab.complaints() == []


@pytest.mark.parametrize(
    ("kind", "query", "shown"),
    [
        ("log", "#op=dispute", "1 of 6 events shown"),
        ("log", "#q=disputed", "1 of 6 events shown"),
        ("several", "#q=lisbon", "1 of 3 facts shown"),
        ("several", "#state=disputed", "1 of 3 facts shown"),
        ("one", "#q=added", "1 of 1 event shown"),
        ("budget", "#q=remember", "1 of 2 messages shown"),
    ],
)
def test_every_kind_of_page_can_be_filtered(tab, places, kind, query, shown):
    tab.open(places[kind], query)

    assert tab.run(SHOWN) == shown


def test_a_link_to_a_fact_that_the_filter_hides_brings_it_back(tab, places):
    tab.open(places["several"], "#q=lisbon")
    before = tab.run(SEEN)
    tab.run("new Promise((done) => { addEventListener('hashchange', () => done(1)); location.hash = '#fact-1'; })")

    assert before == 1
    assert tab.run("document.getElementById('fact-1').checkVisibility()")


# ---------------------------------------------------------------- keys


def test_keys_find_rows_walk_them_and_open_them(tab, places):
    tab.open(places["list"])
    tab.press("/")
    assert tab.run("document.activeElement.id") == "words"

    tab.press(*"warm", "ArrowDown")
    first = tab.run(HERE)
    assert tab.run(SHOWN) == "2 of 3 facts shown"
    assert first

    tab.press("j")
    second = tab.run(HERE)
    assert second not in {first, None}
    tab.press("j")
    assert tab.run(HERE) == second
    tab.press("k")
    assert tab.run(HERE) == first

    tab.press("Enter")
    assert tab.run(OPEN) == 1
    tab.press("Enter")
    assert tab.run(OPEN) == 0
    tab.press("ArrowDown")
    assert tab.run(HERE) == second
    tab.press("ArrowUp")
    assert tab.run(HERE) == first


def test_enter_opens_what_a_fact_in_full_keeps_closed(tab, places):
    tab.open(places["several"])
    tab.press("j", "j")
    here = tab.run("document.activeElement.id")

    tab.press("Enter")
    assert here == "fact-2"
    assert tab.run("document.querySelectorAll('#fact-2 details[open]').length") >= 1


def test_letters_in_the_filter_are_letters_and_keys_can_be_turned_off(tab, places):
    tab.open(places["list"])
    tab.press("/", "j", "/", "k")
    assert tab.run("words.value") == "j/k"

    tab.run("words.value = ''; words.dispatchEvent(new Event('input')); words.blur(); keys.click(); keys.blur()")
    tab.press("j", "/")
    assert tab.run("document.activeElement.tagName") == "BODY"
    tab.run("keys.click(); keys.blur()")
    tab.press("j")
    assert tab.run(HERE)


def test_the_first_stop_of_the_tab_key_skips_to_the_list(tab, places):
    tab.open(places["list"])
    tab.call("Input.dispatchKeyEvent", type="rawKeyDown", key="Tab", windowsVirtualKeyCode=9)

    assert tab.run("document.activeElement.textContent") == "Skip to the facts"
    assert tab.run("document.activeElement.getBoundingClientRect().left") >= 0


# ---------------------------------------------------------------- a long list


def test_a_long_list_is_laid_out_page_by_page(tab, long):
    tab.open(long)
    first, seen = tab.run(SHOWN), tab.run(SEEN)
    tab.run("document.getElementById('next').click()")

    assert (first, seen) == ("1,000 of 1,000 facts fit, 1 to 200 shown", 200)
    assert tab.run(SHOWN) == "1,000 of 1,000 facts fit, 201 to 400 shown"
    assert tab.run(SEEN) == 200
    assert not tab.run("document.querySelector('.rest-note').checkVisibility()")


def test_a_filter_looks_at_all_of_a_long_list(tab, long):
    tab.open(long, "#q=%22shelf%207%20%22")

    assert tab.run(SHOWN) == "1 of 1,000 facts shown"
    assert tab.run(SEEN) == 1


def test_keys_walk_from_one_page_of_a_long_list_to_the_next(tab, long):
    tab.open(long)
    tab.run("document.querySelectorAll('[data-row]')[199].querySelector('summary').focus()")
    tab.press("j")

    assert tab.run(SHOWN) == "1,000 of 1,000 facts fit, 201 to 400 shown"
    assert tab.run("[...document.querySelectorAll('[data-row]')].indexOf(document.activeElement.closest('tr'))") == 200
    tab.press("k")
    assert tab.run(SHOWN) == "1,000 of 1,000 facts fit, 1 to 200 shown"


def test_a_long_list_is_printed_whole(tab, long):
    tab.open(long)
    on_screen = tab.run(SEEN)
    tab.look(paper=True)

    assert on_screen == 200
    assert tab.run(SEEN) == 1000
    assert not tab.run("filters.checkVisibility()")


def test_without_a_script_a_long_list_is_whole_and_opens(tab, long):
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.open(long)

    assert tab.run(SEEN) == 1000
    assert not tab.run("filters.checkVisibility()")
    assert not tab.run("document.querySelector('.rest-note').checkVisibility()")
    tab.run("document.querySelector('summary').focus()")
    tab.press("Enter")
    assert tab.run(OPEN) == 1


# ---------------------------------------------------------------- what the eye sees

CONTRAST = """
(() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((part) => part / 255)
    .map((part) => part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [.2126, .7152, .0722][at], 0);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parts(getComputedStyle(at).backgroundColor);
      if (colour[3] !== 0) return colour;
    }
    return [255, 255, 255];
  };
  const poor = [], seen = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let count = 0;
  while (seen.nextNode()) {
    const element = seen.currentNode.parentElement;
    if (!seen.currentNode.data.trim() || !element.checkVisibility() || element.matches("button:disabled")) continue;
    const [one, other] = [light(parts(getComputedStyle(element).color)), light(ground(element))];
    const ratio = (Math.max(one, other) + .05) / (Math.min(one, other) + .05);
    count += 1;
    if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${element.className} ${seen.currentNode.data.slice(0, 40)}`);
  }
  return [count, poor];
})()
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_words_can_be_read_in_the_light_and_in_the_dark(tab, places, kind, dark):
    tab.look(dark=dark, still=True)
    tab.open(places[kind])
    tab.run("for (const part of document.querySelectorAll('details')) part.open = true")

    count, poor = tab.run(CONTRAST)
    assert count > 20
    assert poor == []
    assert (tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)") is not dark


def test_the_measure_of_contrast_notices_pale_words(tab, tmp_path):
    (tmp_path / "x.html").write_text("<!doctype html><title>x</title><p style='color:#aaa'>pale<p>dark")
    tab.open(tmp_path / "x.html")

    assert tab.run(CONTRAST) == [2, ["2.32  pale"]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_phone_shows_a_page_without_scrolling_sideways(tab, places, kind):
    tab.call("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=True)
    tab.open(places[kind])

    assert tab.run("document.documentElement.clientWidth") == 400
    assert tab.run("document.documentElement.scrollWidth") == 400


def test_nothing_moves_for_who_does_not_want_it(tab, places):
    moving = "getComputedStyle(document.querySelector('[data-row] > *')).transitionDuration"
    tab.open(places["list"])
    before = tab.run(moving)
    tab.look(still=True)

    assert (before, tab.run(moving)) == ("0.12s", "0s")
