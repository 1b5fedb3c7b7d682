"""Every way by which a text may come into a memory, each through the command line or the Python API."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import memcli
from memcli.errors import Tombstoned
from tests.acceptance.driver import Mem
from tests.acceptance.material import TRANSCRIPTS, openai
from tests.acceptance.questions import condensing, decisions, events, extract
from tests.acceptance.stores import STORES


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One way in.

    Args:
        offer: Offers a text to a memory, and returns whether it was refused.
        says: What the text is, with `{}` where the word stands.
        needs: The library that it cannot be driven without.
    """

    offer: Callable[[Mem, str], bool]
    says: str = "the pass of the depot is {}"
    needs: str | None = None


def stopped(code: int) -> bool:
    """Return whether an exit code is that of a refusal; anything but that and success is neither."""
    assert code in (0, 3), f"exit {code}"
    return code == 3


def add(mem: Mem, text: str) -> bool:
    return stopped(mem.run("add", text).code)


def add_from_pipe(mem: Mem, text: str) -> bool:
    return stopped(mem.run("add", "-", input=text, process=True).code)


def add_at_terminal(mem: Mem, text: str) -> bool:
    return stopped(mem.run("add", text, at_terminal=True).code)


def add_as_value(mem: Mem, text: str) -> bool:
    slot = ("--subject", "depot", "--attribute", "pass", "--value", text)
    return stopped(mem.run("add", f"in other words: {text}", *slot).code)


def add_tentative(mem: Mem, text: str) -> bool:
    talk = openai(mem.folder / "quoted.json", ["Hello."])
    mem.ok("import", talk)
    return stopped(mem.run("add", text, "--evidence", "s1#0", "--quote", "never said").code)


def add_with_evidence(mem: Mem, text: str) -> bool:
    mem.ok("import", openai(mem.folder / "seen.json", [f"I saw it: {text}"]))
    return stopped(mem.run("add", text, "--evidence", "s1#0", "--quote", text).code)


def add_derived(mem: Mem, text: str) -> bool:
    parent = mem.ok("add", "the depot has a pass", "--json").json()["id"]
    return stopped(mem.run("add", text, "--derived-from", parent, "--kind", "summary").code)


def copy_from_scope(mem: Mem, text: str) -> bool:
    parent = mem.ok("add", text, "--json", scope="elsewhere").json()["id"]
    return stopped(mem.run("add", text, "--derived-from", parent).code)


def correct(mem: Mem, text: str) -> bool:
    fact = mem.ok("add", "the depot has a pass", "--json").json()["id"]
    return stopped(mem.run("correct", fact, text, "--reason", "a test").code)


def correct_value(mem: Mem, text: str) -> bool:
    slot = ("--subject", "depot", "--attribute", "pass", "--value", "none")
    fact = mem.ok("add", "the depot has no pass", *slot, "--json").json()["id"]
    return stopped(mem.run("correct", fact, f"other words: {text}", "--value", text, "--reason", "a test").code)


def rebuild_view(mem: Mem, text: str) -> bool:
    parent = mem.ok("add", "the depot has a pass", "--json").json()["id"]
    view = mem.ok("add", "a summary", "--derived-from", parent, "--kind", "summary", "--json").json()["id"]
    return stopped(mem.run("rebuild", view, "--text", text, "--reason", "a test").code)


def undo(mem: Mem, text: str) -> bool:
    """Offer a text by taking back that it was replaced; until then it was allowed, so it lives in another scope."""
    fact = mem.ok("add", text, "--json", scope="before").json()["id"]
    mem.ok("correct", fact, "the depot has no pass", "--reason", "a test", scope="before")
    (changed,) = events(mem, "--op", "correct", scope="before")
    mem.ok("scope", "merge", "before", "default", "--reason", "a test", at_terminal=True)
    return stopped(mem.run("undo", changed["id"], "--reason", "a test").code)


def imported_and_extracted(name: str, mem: Mem, text: str) -> bool:
    mem.ok("import", TRANSCRIPTS[name](mem.folder / f"talk-{name}", [f"FACT: {text}"]))
    outcome = extract(mem)[text]
    assert outcome in ("new", "tombstoned")
    return outcome == "tombstoned"


def import_from_pipe(mem: Mem, text: str) -> bool:
    mem.ok("import", "-", input=Path(openai(mem.folder / "piped.json", [f"FACT: {text}"])).read_text(encoding="utf-8"))
    return extract(mem)[text] == "tombstoned"


def imported(name: str, mem: Mem, text: str) -> bool:
    """Offer a text inside a store of another tool, beside one that nothing speaks against."""
    store = STORES[name]
    word = text.rpartition(" ")[2]
    assert store.text(word) == text
    (report,) = mem.ok("import", store.path(mem.folder, word, "plain"), "--json").json()["files"]
    assert report["format"] == store.format
    refused, new = report["refused"], report["new"]
    assert refused in (0, 1)
    assert new >= 2 - refused
    return bool(refused)


def answering(claim: Mapping[str, object]) -> str:
    """Return an extractor that reads this claim in the first message it is given."""
    program = (
        "import json, sys; first = json.load(sys.stdin)['messages'][0];"
        f"print(json.dumps([{claim!r} | {{'message': first['id'], 'quote': first['content']}}]))"
    )
    return shlex.join([sys.executable, "-c", program])


def external_extractor(mem: Mem, text: str) -> bool:
    mem.ok("import", openai(mem.folder / "hello.json", ["Hello."]))
    (claim,) = mem.ok("extract", "--extractor", answering({"text": text}), "--json").json()["facts"]
    return bool(claim["outcome"] == "tombstoned")


_PLUGIN = """
import os
import llm


class Fake(llm.Model):
    model_id = "fake"
    can_stream = False
    supports_schema = True

    def execute(self, prompt, stream, response, conversation):
        yield os.environ["FAKE_ANSWER"]


@llm.hookimpl
def register_models(register):
    register(Fake())
"""


def language_model(mem: Mem, text: str) -> bool:
    """Offer a text as the answer of a model, which a plug-in of the llm library brings along."""
    place = mem.folder / "plugin"
    about = place / "fake_model-1.dist-info"
    about.mkdir(parents=True)
    (place / "fake_model.py").write_text(_PLUGIN, encoding="utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-model\nVersion: 1\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[llm]\nfake_model = fake_model\n", encoding="utf-8")
    mem.ok("import", openai(mem.folder / "hello.json", ["Hello."]))
    mem.env |= {
        "FAKE_ANSWER": json.dumps({"facts": [{"text": text, "message": "s1#0", "quote": "Hello."}]}),
        "LLM_USER_PATH": str(place),
        "PYTHONPATH": os.pathsep.join([str(place), mem.env["PYTHONPATH"]]),
    }
    (claim,) = mem.ok("extract", "--model", "fake", "--json", process=True).json()["facts"]
    return bool(claim["outcome"] == "tombstoned")


def external_condenser(mem: Mem, text: str) -> bool:
    parents = [mem.ok("add", f"the {part} is open", "--json").json()["id"] for part in ("gate", "door")]
    return stopped(mem.run("condense", "--condenser", condensing(text, parents)).code)


def review_edit(mem: Mem, text: str) -> bool:
    fact = mem.ok("add", "the depot has a pass", "--json").json()["id"]
    mem.ok("dispute", fact, "--reason", "is it so?")
    path = decisions(mem, fact, "edit", text=text, reason="it says so")
    return stopped(mem.run("review", "apply", path, "--actor", "rita").code)


def stage(mem: Mem, text: str) -> bool:
    begun = mem.ok("tx", "begin", "--json").json()["id"]
    code = mem.run("tx", "stage", begun, text, "--reference", "erp").code
    mem.ok("tx", "commit", begun)
    return stopped(code)


def stage_from_file(mem: Mem, text: str) -> bool:
    begun = mem.ok("tx", "begin", "--json").json()["id"]
    lines = json.dumps({"text": text, "references": ["erp"]}) + "\n"
    code = mem.run("tx", "stage", begun, "--file", "-", input=lines).code
    mem.ok("tx", "commit", begun)
    return stopped(code)


def stage_value(mem: Mem, text: str) -> bool:
    begun = mem.ok("tx", "begin", "--json").json()["id"]
    slot = ("--subject", "depot", "--attribute", "pass", "--value", text)
    code = mem.run("tx", "stage", begun, "in other words", *slot, "--reference", "erp").code
    mem.ok("tx", "commit", begun)
    return stopped(code)


def python_api(mem: Mem, text: str) -> bool:
    with memcli.open_store(mem.path) as store:
        try:
            with store.write(memcli.agent("program")) as write:
                write.add(memcli.Claim(text=text))
        except Tombstoned:
            return True
    return False


def python_transaction(mem: Mem, text: str) -> bool:
    with memcli.open_store(mem.path) as store, memcli.transaction(store, agent="program") as tx:
        try:
            tx.stage(memcli.Claim(text=text, references=("erp",)))
        except Tombstoned:
            return True
    return False


ENTRIES: Mapping[str, Entry] = {
    "add": Entry(offer=add),
    "add from a pipe": Entry(offer=add_from_pipe),
    "add at a terminal": Entry(offer=add_at_terminal),
    "add as a value": Entry(offer=add_as_value),
    "add tentatively": Entry(offer=add_tentative),
    "add with evidence": Entry(offer=add_with_evidence),
    "add derived": Entry(offer=add_derived),
    "copy from another scope": Entry(offer=copy_from_scope),
    "correct": Entry(offer=correct),
    "correct a value": Entry(offer=correct_value),
    "rebuild a view": Entry(offer=rebuild_view),
    "undo": Entry(offer=undo),
    **{f"import and extract {name}": Entry(offer=partial(imported_and_extracted, name)) for name in TRANSCRIPTS},
    "import from a pipe": Entry(offer=import_from_pipe),
    **{f"import {name}": Entry(offer=partial(imported, name), says=store.says) for name, store in STORES.items()},
    "extract by a program": Entry(offer=external_extractor),
    "extract by a model": Entry(offer=language_model, needs="llm"),
    "condense by a program": Entry(offer=external_condenser),
    "review apply": Entry(offer=review_edit),
    "tx stage": Entry(offer=stage),
    "tx stage from a file": Entry(offer=stage_from_file),
    "tx stage a value": Entry(offer=stage_value),
    "Python API": Entry(offer=python_api),
    "Python API transaction": Entry(offer=python_transaction),
}
"""Each entry by name; what takes two steps, such as a decision about what waits, has tests of its own."""
