"""What was found, for the machines that read it: GitHub annotations, JUnit, SARIF, and Markdown for a pull request.

Memory text goes into all of them through `visible`, and then through the escape of the form: a text can neither end a
cell, an attribute or an annotation, nor begin one.
"""

import json
from collections.abc import Callable, Mapping, Sequence

from memcli import __version__
from memcli.facts import Observed
from memcli.text import visible

_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}


def report(form: str, found: Sequence[Observed], *, title: str, clean: str) -> str:
    """Return a report on what was found, with a line end.

    Args:
        form: `github`, `junit`, `sarif` or `markdown`.
        found: Everything that was looked at and is worth a line; `passed` ones are shown where the form can.
        title: What was run, such as `mem check`.
        clean: The sentence that stands where nothing is wrong.
    """
    return _FORMS[form](found, title, clean)


def _github(found: Sequence[Observed], _title: str, _clean: str) -> str:
    return "".join(
        f"::{_LEVELS[item.level]} {_properties(item)}::{_data(_said(item))}\n" for item in found if not item.passed
    )


def _properties(item: Observed) -> str:
    line = None if item.line is None else str(item.line)
    known = {"file": item.path, "line": line, "title": f"mem {item.code}"}
    return ",".join(
        f"{name}={_data(visible(value)).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in known.items()
        if value is not None
    )


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _said(item: Observed) -> str:
    return visible(f"{item.place}: {item.message}" if item.place else item.message)


def _junit(found: Sequence[Observed], title: str, clean: str) -> str:
    from xml.etree.ElementTree import Element, SubElement, indent, tostring  # few need it

    cases = found or [Observed(code="clean", place="", message=clean, passed=True)]
    failed = [item for item in cases if not item.passed and not item.skipped]
    skipped = [item for item in cases if item.skipped]
    counts = {"tests": str(len(cases)), "failures": str(len(failed)), "skipped": str(len(skipped))}
    root = Element("testsuites", {"name": "mem", **counts})
    suite = SubElement(root, "testsuite", {"name": title, "errors": "0", **counts})
    for item in cases:
        name = visible(f"{item.code} {item.place}".strip())
        case = SubElement(suite, "testcase", classname=title, name=name)
        if item.path is not None:
            case.set("file", visible(item.path))
        if item.seconds is not None:
            case.set("time", f"{item.seconds:.6f}")
        if item.skipped:
            SubElement(case, "skipped", message=visible(item.message))
        elif not item.passed:
            SubElement(case, "failure", type=item.code, message=visible(item.message)).text = _said(item)
    indent(root)
    return "<?xml version='1.0' encoding='UTF-8'?>\n" + tostring(root, encoding="unicode") + "\n"


def _sarif(found: Sequence[Observed], title: str, _clean: str) -> str:
    wrong = [item for item in found if not item.passed]
    rules = list(dict.fromkeys(item.code for item in wrong))
    driver = {
        "name": "mem",
        "version": __version__,
        "rules": [{"id": code, "shortDescription": {"text": f"{title}: {code}"}} for code in rules],
    }
    results = [
        {
            "ruleId": item.code,
            "ruleIndex": rules.index(item.code),
            "level": item.level,
            "message": {"text": _said(item)},
            "locations": [_location(item)],
        }
        for item in wrong
    ]
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def _location(item: Observed) -> Mapping[str, object]:
    from urllib.parse import quote  # few need it

    place: dict[str, object] = {"artifactLocation": {"uri": quote(item.path or "memory.db", errors="surrogatepass")}}
    if item.line is not None:
        place["region"] = {"startLine": item.line}
    named = {"logicalLocations": [{"name": visible(item.place)}]} if item.place else {}
    return {"physicalLocation": place, **named}


def _markdown(found: Sequence[Observed], title: str, clean: str) -> str:
    wrong = [item for item in found if not item.passed]
    lines = [f"### {title}", ""]
    if not wrong:
        lines.append(f"✓ {cell(clean)}")
    else:
        lines += ["| what | where | why |", "|---|---|---|"]
        lines += [f"| {_mark(item)} `{item.code}` | {cell(_where(item))} | {cell(item.message)} |" for item in wrong]
    passed = sum(item.passed for item in found)
    if passed:
        lines += ["", f"{passed:,} of {len(found):,} passed"]
    return "\n".join(lines) + "\n"


def _mark(item: Observed) -> str:
    return "–" if item.skipped else {"error": "✗", "warning": "!", "note": "·"}[item.level]


def _where(item: Observed) -> str:
    path = item.path if item.line is None else f"{item.path}:{item.line}"
    return " ".join(part for part in (path, item.place) if part)


def cell(text: str) -> str:
    """Return text for a cell or line of Markdown, in which nothing of it is markup, a mention or a link."""
    shown = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for sign in "\\`*_{}[]()#|!~":
        shown = shown.replace(sign, f"\\{sign}")
    # No backslash stops a mention or a bare address; an entity does, and shows the same.
    return shown.replace("@", "&#64;").replace("://", "&#58;//").replace("www.", "www&#46;")


_FORMS: Mapping[str, Callable[[Sequence[Observed], str, str], str]] = {
    "github": _github,
    "junit": _junit,
    "sarif": _sarif,
    "markdown": _markdown,
}
