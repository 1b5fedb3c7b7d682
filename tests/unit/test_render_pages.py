"""The pages of HTML: what they show, that a text stays a text in them, and that eye, ear and keyboard can use them."""

import base64
import hashlib
import html
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from memcli.facts import Derivation, Finding, LogVerdict, Validity
from memcli.render import page
from memcli.render.log_page import log_page
from memcli.render.show_page import DEEPEST, MOST_KIN, Kin, Whole, as_known, facts_in_full, facts_page, kin
from memcli.terms import Channel, How, Op, State
from tests.made import NOW, at, event, excerpt, fact, free, message, provenance
from tests.made_screens import HOSTILE, hostile_fact

MARKUP = {
    "script": "</script><script>alert(1)</script>",
    "title": "</title><script>alert(1)</script>",
    "attribute": "\"onmouseover=alert(1) x='",
    "unquoted": "' autofocus onfocus=alert(1) ",
    "image": "<img src=http://192.0.2.1/x onerror=alert(1)>",
    "comment": "<!-- --!> ]]> &lt;b&gt; &#x3c;b>",
    "style": "</style><style>*{display:none}</style>",
    "link": "javascript:alert(1)",
}
VOID = {"meta", "input", "br", "rect", "path"}
NAMES = {
    "aria-hidden", "aria-label", "aria-labelledby", "aria-live", "autocomplete", "charset", "checked", "class",
    "content", "data-channel", "data-many", "data-one", "data-op", "data-page", "data-row", "data-scope", "data-state",
    "datetime", "for", "hidden", "href", "http-equiv", "id", "lang", "name", "role", "scope", "spellcheck", "tabindex",
    "type", "value",
}  # fmt: skip
"""Every attribute that a page of facts or of the log may have; nothing that runs, fetches or styles is among them."""


class Read(HTMLParser):
    """What a parser makes of a page: its tags with their attributes, and the words of each part."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.tags if "id" in attributes]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def listed(*facts, scope: str | None = "user/anna", **changes) -> str:
    told = {
        "path": "memory.db", "asked": [], "now": NOW, "readable": 1, "total": 2, "waiting": 0, "short_ids": {},
    }  # fmt: skip
    return facts_page(list(facts), scope=scope, **{**told, **changes})


def whole(f=None, **changes) -> Whole:
    f = f or fact()
    told = {"history": [f], "excerpts": [excerpt()], "parents": Kin(of={}), "children": Kin(of={}), "events": [event()]}
    return Whole(fact=f, **{**told, **changes})


def in_full(*wholes, known_at=None) -> str:
    return facts_in_full(list(wholes), path="memory.db", known_at=known_at, now=NOW, short_ids={})


def logged(*events, verified: LogVerdict | None = LogVerdict(events=60, head="blake2b:9f31", findings=()), **changes):  # noqa: B008  # frozen
    told = {"path": "memory.db", "scope": "user/anna", "asked": [], "now": NOW, "short_ids": {}}
    return log_page(list(events), verified=verified, **{**told, **changes})


def hostile_pages(words: str) -> list[str]:
    """Return every kind of page with these words wherever a page has anybody's words."""
    f = hostile_fact(
        words, provenance=(provenance(quote=words, verified=False), provenance(message=None, source=words))
    )
    said = replace(
        excerpt(),
        provenance=provenance(quote=words, verified=False),
        message=message(content=f"a {words} b", name=words, at_text=words),
        before=message(211, content=words),
        path=words,
    )
    actor = replace(event().actor, name=words)
    events = [
        event(57, target=words, reason=words, scope=words, actor=actor, before=words),
        event(58, Op.REFUSE, reason=words, actor=replace(actor, channel=Channel.API)),
    ]
    near = Kin(of={f.id: [(replace(f, id="8a11"), How.INFERRED)]})
    one = whole(f, excerpts=[said], parents=near, children=near, events=events)
    other = whole(replace(f, id="8a11", state=State.DISPUTED), excerpts=[said], events=events)
    broken = LogVerdict(events=2, head=words, findings=(Finding(code="chain-broken", place=words, message=words),))
    about = {"path": f"{words}.db", "asked": [("subject", words)], "scope": None}
    return [
        listed(f, replace(f, id="8a11", scope=f"{words}!"), **about),
        in_full(one),
        in_full(one, other),
        logged(*events, verified=broken, **about),
    ]


def pages() -> list[str]:
    """Return one good page of every kind."""
    disputed = replace(fact(), id="8a11", state=State.DISPUTED)
    events = [event(57), event(58, Op.REFUSE, actor=replace(event().actor, channel=Channel.API))]
    return [
        listed(fact(), disputed),
        in_full(whole(events=events)),
        in_full(whole(), whole(disputed)),
        logged(*events),
        logged(),
        listed(),
    ]


# ---------------------------------------------------------------- a text stays a text


@pytest.mark.parametrize("name", [*MARKUP, *HOSTILE])
def test_a_text_makes_no_tag_and_no_attribute(name):
    words = {**MARKUP, **HOSTILE}[name]
    tame = "tame " * 3000 if len(words) > 900 else "tame" * 50 if len(words) > 160 else "tame"

    for page_, clean in zip(hostile_pages(words), hostile_pages(tame), strict=True):
        read, tags = Read(page_), {tag for tag, _ in Read(clean).tags}
        assert {tag for tag, _ in read.tags} - {"bdi"} <= tags | {"details", "summary"}
        assert {attribute for _, attributes in read.tags for attribute in attributes} <= NAMES
        assert read.open == []
        assert [name for name, _ in read.tags].count("script") == 1
        assert [name for name, _ in read.tags].count("style") == 1


@pytest.mark.parametrize("name", MARKUP)
def test_a_hostile_text_is_shown_as_it_is_written_and_stands_in_no_attribute(name):
    words = MARKUP[name]

    for page_ in hostile_pages(words):
        read = Read(page_)
        assert words in " ".join(read.words)
        values = [value for _, attributes in read.tags for value in attributes.values()]
        assert [value for value in values if "alert" in value or "display" in value or "&" in value] == []


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_unseen_is_left_in_a_page(name):
    for page_ in hostile_pages(HOSTILE[name]):
        assert sorted(set(page_) & {*map(chr, range(32)), *"\x7f\x9b\u202e\u2066\u200b\ufeff\u2028\ud800"}) == ["\n"]


def test_what_reorders_a_line_is_spelt_out():
    words = Read(hostile_pages(HOSTILE["bidi"])[0]).text

    assert r"user \u202e evil \u2066 x \u200b \ufeff" in words


def test_words_from_right_to_left_are_set_apart_and_plain_ones_need_not_be():
    assert page.said("שלום") == "<bdi>שלום</bdi>"
    assert page.said("hello") == "hello"


def test_links_lead_only_to_places_of_the_page_itself():
    near = Kin(of={"4f2a77d0": [(free("8a11", "javascript:alert(1)"), How.INFERRED)]})
    read = Read(in_full(whole(children=near), whole(free("8a11", "javascript:alert(1)"))))

    links = [attributes["href"] for attributes in read.all("a")]
    assert links == ["#main", "#fact-2"]
    assert {link[1:] for link in links} <= set(read.ids())


def test_a_word_that_is_no_plain_one_is_a_number_in_an_attribute():
    menu = page.choice("state", "in this state", ["b c", "a", "b c", '"x'])

    assert [menu.mark(word) for word in menu.words] == [' data-state="0"', ' data-state="a"', ' data-state="2"']


def test_a_page_lets_a_browser_run_its_own_script_and_style_and_nothing_else():
    for page_ in pages():
        policy = next(attributes["content"] for attributes in Read(page_).all("meta") if "http-equiv" in attributes)
        for kind, directive in (("script", "script-src"), ("style", "style-src")):
            source = re.search(rf"<{kind}>(.*?)</{kind}>", page_, re.DOTALL)
            assert source
            digest = base64.b64encode(hashlib.sha256(source[1].encode()).digest()).decode()
            assert f"{directive} 'sha256-{digest}';" in policy
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe" not in policy


# ---------------------------------------------------------------- eye, ear and keyboard


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def palettes() -> list[dict[str, str]]:
    """Return the colours of light, dark and paper by name."""
    found = [
        dict(re.findall(r"--(\w+): (#\w+)", rule)) for rule in re.findall(r":root \{(.*?)\}", page.STYLE, re.DOTALL)
    ]
    return [colours for colours in found if colours]


def test_every_colour_of_words_can_be_read_on_every_ground():
    found = palettes()

    assert len(found) == 3
    for colours in found:
        for ground in ("page", "soft"):
            for words in ("ink", "dim", "own", "good", "warn", "bad"):
                assert contrast(colours[words], colours[ground]) >= 4.5, (words, ground, colours)
        assert contrast(colours["ink"], colours["mark"]) >= 4.5
        assert contrast(colours["dim"], colours["page"]) >= 3


def test_the_measure_of_contrast_tells_good_from_bad():
    assert round(contrast("#000", "#fff"), 1) == 21
    assert contrast("#999", "#ffffff") < 4.5


@pytest.mark.parametrize("page_", pages(), ids=["list", "one", "several", "log", "no event", "no fact"])
def test_a_page_can_be_walked_by_its_headings_landmarks_and_labels(page_):
    read = Read(page_)
    tags = [tag for tag, _ in read.tags]
    ranks = [int(tag[1]) for tag in tags if re.fullmatch(r"h\d", tag)]
    ids = read.ids()

    assert [tags.count(tag) for tag in ("h1", "header", "main", "footer", "title")] == [1, 1, 1, 1, 1]
    assert all(later <= before + 1 for before, later in pairwise(ranks))
    assert len(ids) == len(set(ids))
    assert {attributes["aria-labelledby"] for attributes in read.all("section")} <= set(ids)
    assert {attributes["id"] for tag in ("input", "select") for attributes in read.all(tag)} == {
        attributes["for"] for attributes in read.all("label")
    }
    assert {attributes.get("scope") for attributes in read.all("th")} <= {"col", "row"}
    assert tags.count("table") == tags.count("caption") == page_.count('role="region" tabindex="0" aria-label=')
    assert read.tags[tags.index("body") + 1][1]["href"][1:] in ids
    assert read.tags[0][1] == {"lang": "en"}


def test_a_page_that_can_be_filtered_says_aloud_what_the_filter_found():
    shown = [attributes for attributes in Read(listed(fact())).all("span") if attributes.get("id") == "shown"]

    assert shown == [{"id": "shown", "class": "dim", "role": "status", "aria-live": "polite"}]


def test_nothing_moves_for_who_does_not_want_it():
    outside = re.sub(r"@media \(prefers-reduced-motion: no-preference\) \{.*?\} \}", "", page.STYLE, flags=re.DOTALL)

    assert "transition" in page.STYLE
    assert not re.search(r"transition|animation|smooth", outside)


def test_without_a_script_the_filter_is_hidden_and_every_row_can_be_opened():
    page_ = listed(fact())

    assert re.search(r'<div id="filters"[^>]* hidden>', page_)
    assert page_.count("<tr data-row") == page_.count("<details>") == 1


# ---------------------------------------------------------------- a list of facts


def test_a_fact_of_a_list_opens_on_where_it_came_from():
    words = Read(listed(fact(derived_from=("8a11",)), short_ids={"4f2a77d0": "4f2a"})).text

    assert "4f2a accepted v2 anna Anna lives in Lisbon" in words
    assert "slot anna · home city = Lisbon" in words
    assert "from chat1 #212 user “moved to Lisbon”" in words
    assert "built on 8a11" in words


def test_a_list_says_what_it_was_chosen_by():
    chosen = Read(listed(fact(), asked=[("in", "every state"), ("subject", "anna")])).text

    assert "scope user/anna · in every state, subject anna · as of 15 Mar 2026 09:14" in chosen
    assert "readable facts that are valid now" in Read(listed(fact())).text


def test_a_list_of_every_scope_has_a_column_and_a_menu_of_them_and_no_figures_of_one():
    here = Read(listed(fact(), fact(id="8a11", scope="team"), scope=None))
    alone = Read(listed(fact(), fact(id="8a11")))

    assert "of this scope" in here.text
    assert "waiting for review" not in here.text
    assert "of this scope" not in alone.text
    assert "waiting for review" in alone.text


def test_a_list_of_nothing_says_so_and_names_the_next_command():
    words = Read(listed()).text

    assert "No fact fits." in words
    assert "mem show --all-states" in words


def test_the_words_of_an_erased_fact_are_in_no_page():
    erased = fact(text="", value=None, attribute=None, erased_at=NOW)

    assert "(erased)" in Read(listed(erased)).text
    assert "(erased)" in Read(in_full(whole(erased))).text


def test_a_long_text_is_cut_in_its_row_and_whole_where_it_opens():
    text = "word " * 300 + "end"
    page_ = listed(free("9c01", text))

    assert re.search(r"<summary>.{100,400}…</bdi></summary>", page_)
    assert text in Read(page_).text


def test_of_a_long_list_all_rows_are_there_and_the_first_are_laid_out_before_the_script_runs():
    page_ = listed(*(free(f"{number:016x}", f"fact {number}") for number in range(page.ROWS + 50)))
    first, rest = page_.split('<tbody class="rest">')

    assert first.count("<tr data-row") == page.ROWS
    assert rest.count("<tr data-row") == 50
    assert "50 more are here once the script of this page has run." in Read(page_).text
    assert 'class="rest"' not in listed(*(free(f"{number:016x}", "x") for number in range(page.ROWS)))


# ---------------------------------------------------------------- facts in full


def test_the_quote_is_marked_in_its_message_between_its_neighbours():
    page_ = in_full(whole())

    assert "we <mark>moved to Lisbon</mark> last week" in page_
    assert "211 assistant How is the flat in Berlin? ▸ 212 user sold it" in Read(page_).text
    assert "213 assistant Congratulations!" in Read(page_).text


def test_a_quote_that_does_not_stand_there_is_said_to():
    said = replace(excerpt(), provenance=provenance(quote="never said", verified=False))

    assert "does not stand there: “never said”" in Read(in_full(whole(excerpts=[said]))).text
    assert "does not stand there" not in Read(in_full(whole())).text


def test_a_span_outside_the_words_is_not_believed():
    wrong = replace(excerpt(), provenance=provenance(span=(4, 4000)))
    right = replace(excerpt(), provenance=provenance(span=(0, 4)))

    assert "<mark>moved to Lisbon</mark>" in in_full(whole(excerpts=[wrong]))
    assert "<mark>sold</mark>" in in_full(whole(excerpts=[right]))


def test_a_long_message_is_cut_around_its_quote_and_the_page_says_how_much():
    content = "x" * 5000 + "moved to Lisbon" + "y" * 5000
    page_ = in_full(whole(excerpts=[replace(excerpt(), message=message(content=content))]))

    assert f"…{'x' * 2000}<mark>moved to Lisbon</mark>{'y' * 2000}…" in page_
    assert "(… 4,015 of 10,015 characters)" in Read(page_).text


def test_evidence_without_a_message_is_listed_and_none_at_all_is_said():
    loose = fact(provenance=(provenance(source="src:invoice-12", message=None, index=None, role=None, quote=None),))

    assert "from src:invoice-12" in Read(in_full(whole(loose, excerpts=[]))).text
    assert "no evidence" in Read(in_full(whole(fact(provenance=()), excerpts=[]))).text


def test_a_version_shows_what_it_said_when_it_was_known_and_its_way_through_the_states():
    old = {"value": "Berlin", "text": "Anna lives in Berlin", "version": 1, "valid": Validity(end=at("2026-03-05"))}
    began, moved = at("2026-01-02"), at("2026-03-12")
    history = [
        fact(**old, revision=1, state=State.TENTATIVE, recorded_at=began, retired_at=began + 60_000_000),
        fact(**old, revision=2, state=State.ACCEPTED, recorded_at=began + 60_000_000, retired_at=moved),
        fact(**old, revision=3, state=State.SUPERSEDED, recorded_at=moved),
        fact(recorded_at=moved),
    ]
    words = Read(in_full(whole(history=history))).text

    assert (
        "v1 Anna lives in Berlin until 5 Mar 2026 2 Jan 2026 00:00 … 12 Mar 2026 00:00 tentative → accepted → super"
        in words
    )
    assert "v2 Anna lives in Lisbon since 5 Mar 2026 since 12 Mar 2026 00:00 accepted anna, terminal" in words


def test_the_history_as_it_was_known_leaves_out_what_came_later():
    first = fact(version=1, revision=1, recorded_at=10, retired_at=20)
    later = fact(version=1, revision=2, recorded_at=20)

    assert as_known([later, first], None) == [first, later]
    assert as_known([later, first], 15) == [replace(first, retired_at=None)]


def family(tree: dict[str, list[str]]):
    """Return what is asked for relatives: the children of each name."""

    def ask(name):
        return [
            (Derivation(child=other, parent=name, how=How.INFERRED), free(other, other)) for other in tree.get(name, [])
        ]

    return ask


def test_a_derivation_is_a_tree_in_which_each_fact_is_written_out_once():
    children = kin("a1", family({"a1": ["b2", "x5"], "b2": ["c3"], "x5": ["b2"], "c3": ["a1"]}))
    page_ = in_full(whole(fact(id="a1"), children=children))

    section = page_[page_.index("From this one") : page_.index("Log</h2>")]
    assert re.findall(r"<code>(\w+)</code>", section) == ["b2", "c3", "a1", "x5", "b2"]
    assert section.count("(see above)") == 2
    assert not children.cut


def test_a_family_that_is_too_large_is_cut_and_the_page_says_so():
    wide = kin("a", family({"a": [f"b{number}" for number in range(MOST_KIN + 1)]}))
    deep = kin("0", family({str(number): [str(number + 1)] for number in range(DEEPEST + 1)}))
    fits = kin("0", family({str(number): [str(number + 1)] for number in range(DEEPEST - 1)}))

    assert len(wide.of["a"]) == MOST_KIN
    assert [wide.cut, deep.cut, fits.cut] == [True, True, False]
    assert "More are left out" in Read(in_full(whole(fact(id="a"), children=wide))).text
    assert "More are left out" not in Read(in_full(whole(fact(id="0"), children=fits))).text


def test_several_facts_are_one_page_with_a_filter_over_them():
    page_ = in_full(whole(), whole(free("8a11", "likes tea", State.DISPUTED)))
    read = Read(page_)

    assert [attributes["id"] for attributes in read.all("article")] == ["fact-1", "fact-2"]
    assert [attributes["data-state"] for attributes in read.all("article")] == ["accepted", "disputed"]
    assert "2 facts" in read.text
    assert page_.count('id="list"') == 1


def test_a_page_of_a_moment_says_what_holds_of_it():
    then = Read(in_full(whole(), known_at=at("2026-03-12T09:20"))).text

    assert re.search("as the file knew it at 12 Mar 2026 09:20 ?; derivations are those of now", then)
    assert "as the file knew it" not in Read(in_full(whole())).text


# ---------------------------------------------------------------- the log


def test_an_event_opens_on_all_that_the_log_holds_of_it():
    words = Read(logged(event(57), short_ids={"4f2a77d0": "4f2a"})).text

    assert "57 12 Mar 2026 09:20 anna, terminal corrected 4f2a event e57 at 2026-03-12T09:20:00Z" in words
    assert "before b2:01 after b2:02 previous b2:03 hash b2:04" in words
    assert "“moved”" in words


@pytest.mark.parametrize("op", Op)
def test_every_kind_of_event_has_a_word(op):
    assert re.search(r"<summary>[a-z][a-z ]+ <code>", logged(event(1, op)))


def test_a_chain_is_verified_broken_or_not_tried_and_the_page_says_which():
    gap = Finding(code="event-missing", place="e7", message="event e7 is missing before e8")
    broken = Read(logged(event(), verified=LogVerdict(events=59, head="blake2b:1", findings=(gap,)))).text

    assert "The chain of 60 events is verified" in Read(logged(event())).text
    assert "1 of 60" in Read(logged(event())).text
    assert "The chain of 59 events is broken in 1 place" in broken
    assert "event-missing e7 event e7 is missing before e8" in broken
    assert "is verified" not in broken
    assert "not verified" in Read(logged(event(), verified=None)).text


def test_a_log_of_nothing_says_so():
    assert "No event fits." in Read(logged()).text
    assert "No event fits." not in Read(logged(event())).text


def test_a_page_names_its_file_in_its_title():
    assert html.unescape(logged(path="a/<b>.db").split("<title>")[1].split("</title>")[0]) == "<b>.db – mem log"
