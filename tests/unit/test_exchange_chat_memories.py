"""What ChatGPT and Claude.ai remember."""

import json
from pathlib import Path
from typing import Any

import pytest

from memcli import exchange
from memcli.exchange import Opened
from memcli.exchange.loose import Prose, Record
from memcli.exchange.memories.chat_memories import CHAT_MEMORIES
from memcli.facts import Remembered
from memcli.terms import State

TEA = {"id": "c-1", "content": "Likes tea", "created_at": "2025-01-01T00:00:00Z", "conversation_id": "v-1"}
ACCOUNT = {
    "conversations_memory": "**Work context**\n\nDana is a nurse, e.g. in Dr. Ito's ward. She works nights.\n\n"
    "**Personal context**\n\n- climbs\n",
    "account_uuid": "a-1",
}
WRONG = (None, True, 7, 1.5, "x", "\ud800", [], {}, [None], {"a": [1]}, [{"role": "user"}])


def read(tmp_path: Path, value: Any, **options: str) -> Opened:
    path = tmp_path / "memories.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return exchange.open_file(str(path), **options)


def texts(found: Opened) -> list[str]:
    return [item.text for item in found.remembered]


@pytest.mark.parametrize(
    "value",
    [
        {"memories": [TEA], "memory_max_tokens": 5000, "memory_num_tokens": 12},
        {"memories": [TEA]},
        {"memories": ["Likes tea"]},
        {"saved_memories": [TEA]},
        [TEA],
        [TEA | {"updated_at": "2025-01-01T00:00:00Z"}],
    ],
)
def test_every_layout_of_chatgpt_gives_the_statement(tmp_path, value):
    found = read(tmp_path, value)

    assert (found.format, texts(found)) == ("chat-memories", ["Likes tea"])


def test_a_memory_keeps_its_id_its_time_and_its_conversation(tmp_path):
    item = read(tmp_path, {"memories": [TEA]}).remembered[0]

    assert (item.origin, item.at, item.extra) == ("c-1", 1_735_689_600_000_000, (("conversation_id", "v-1"),))


def test_a_memory_that_was_deleted_is_withdrawn(tmp_path):
    found = read(tmp_path, {"memories": [TEA, TEA | {"id": "c-2", "deleted": True}]})

    assert [item.ended for item in found.remembered] == [None, State.REVOKED]


def test_what_stands_around_the_list_is_told(tmp_path):
    found = read(tmp_path, {"memories": [TEA], "memory_max_tokens": 5000})

    assert [warned.message for warned in found.warnings] == [
        'skipped "memory_max_tokens", which belongs to no memory: "5000"'
    ]


def test_an_account_of_claude_is_cut_into_sentences_with_their_titles(tmp_path):
    found = read(tmp_path, [ACCOUNT])

    assert found.format == "chat-memories"
    assert texts(found) == [
        "Dana is a nurse, e.g. in Dr. Ito's ward.",
        "Work context: She works nights.",
        "Personal context: climbs",
    ]
    assert {item.owner for item in found.remembered} == {"a-1"}
    assert found.warnings == ()


@pytest.mark.parametrize(
    "projects", [{"p-1": "The ward moves in May."}, [{"project_uuid": "p-1", "memory": "The ward moves in May."}]]
)
def test_what_is_remembered_of_a_project_names_it(tmp_path, projects):
    item = read(tmp_path, [ACCOUNT | {"project_memories": projects}]).remembered[-1]

    assert (item.text, item.extra) == ("The ward moves in May.", (("project", "p-1"),))


def test_an_account_that_remembers_nothing_says_so(tmp_path):
    found = read(tmp_path, [{"conversations_memory": "", "account_uuid": "a-1"}], format="chat-memories")

    assert texts(found) == []
    assert [warned.message for warned in found.warnings] == ["nothing is remembered in it"]


def test_a_list_that_a_model_wrote_keeps_each_day_as_it_stands(tmp_path):
    found = read(tmp_path, "- [2025-03-01] - Likes tea\n- [unknown] - Lives in Lisbon\n- and so on\n")

    assert [(item.text, item.at, item.at_text) for item in found.remembered] == [
        ("Likes tea", None, "2025-03-01"),
        ("Lives in Lisbon", None, None),
    ]
    assert [warned.line for warned in found.warnings] == [3]


def test_days_without_list_marks_are_read_too():
    prose = Prose(text="[2025-03-01]. Likes tea\n\n2. [2025-03] Likes rain\n")

    found = list(CHAT_MEMORIES.read(iter([Record(line=None, value=prose)]), lambda _: None))

    assert CHAT_MEMORIES.claims(prose) > 0
    assert [item.text for item in found] == ["Likes tea", "Likes rain"]


@pytest.mark.parametrize(
    "value",
    [
        [{"role": "user", "id": "1", "content": "hi", "created_at": 1}],
        [{"id": 1, "content": "a post", "created_at": "2025-01-01", "slug": "a-post"}],
        ["a", "b"],
        {"memories": []},
        [],
    ],
)
def test_what_only_looks_like_a_memory_is_not_claimed(value):
    assert CHAT_MEMORIES.claims(value) == 0
    assert CHAT_MEMORIES.claims([TEA]) > 0


@pytest.mark.parametrize("key", [*TEA, *ACCOUNT, "project_memories", "memories", "role", "deleted"])
def test_a_wrong_type_in_any_field_is_no_failure(tmp_path, key):
    odd = [base | {key: wrong} for wrong in WRONG for base in (TEA, ACCOUNT)]

    found = read(tmp_path, [TEA, *odd], format="chat-memories")

    assert texts(found)[0] == "Likes tea"
    assert all(isinstance(item, Remembered) and item.text for item in found.remembered)
