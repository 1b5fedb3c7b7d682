"""Addresses as pydantic writes them after reading one, because that is what LlamaIndex keeps and sends.

Known are absolute addresses; numeric hosts in odd notations stay as they are.
"""

import re
from urllib.parse import quote, urlsplit

from memcli.budget.raised import Raised

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
"""The schemes whose addresses have a host and a path, with the port that goes without saying."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_KEEP = "%!$&()*+,-./:;=@[\\]^_|~'"
_DOTS = {".": 0, "%2e": 0, "..": 1, ".%2e": 1, "%2e.": 1, "%2e%2e": 1}
"""Segments of a path that mean the same place and the one above."""


def normal(address: str) -> str:
    """Return the address with scheme and host in lower case, a path, and other characters escaped.

    Raises:
        Raised: It is empty, or has no scheme or host.
    """
    text = address.strip()
    if not text:
        raise _refused("input is empty")
    if _SCHEME.match(text) is None:
        raise _refused("relative URL without a base")
    scheme = text.partition(":")[0].lower()
    if scheme not in _PORTS:
        return scheme + text[len(scheme) :]
    # Between scheme and host any number of slashes goes, either way round.
    before, mark, fragment = text.partition("#")
    place, question, query = before[len(scheme) + 1 :].partition("?")
    try:
        parts = urlsplit("//" + place.replace("\\", "/").lstrip("/"))
        host, port = parts.hostname or "", parts.port
        if not host.isascii():
            host = host.encode("idna").decode("ascii")
    except ValueError as problem:
        raise _refused("invalid international domain name") from problem
    if not host:
        raise _refused("empty host")
    login = parts.netloc.rpartition("@")
    netloc = login[0] + login[1] + (f"[{host}]" if ":" in host else host)
    if port is not None and port != _PORTS[scheme]:
        netloc += f":{port}"
    return (
        f"{scheme}://{netloc}{_path(parts.path)}"
        + (question and "?" + quote(query, safe=(_KEEP + "?`{}").replace("'", "")))
        + (mark and "#" + quote(fragment, safe=_KEEP + "?#{}"))
    )


def _path(path: str) -> str:
    """Return the path with what leads up and down resolved."""
    segments: list[str] = []
    found = path.split("/")[1:]
    for index, segment in enumerate(found):
        up = _DOTS.get(segment.lower())
        if up is None:
            segments.append(segment)
            continue
        del segments[len(segments) - up :]
        if index == len(found) - 1:
            segments.append("")
    return "/" + quote("/".join(segments), safe=_KEEP)


def _refused(why: str) -> Raised:
    return Raised("ValidationError", f"url / Input should be a valid URL, {why}")
