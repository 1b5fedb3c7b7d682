"""The way out: a screen goes to a terminal in colour and page by page, to a pipe as plain text."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import TextIO

from memcli.render.layout import NARROWEST, Screen

STYLES: Mapping[str, str] = {
    "heading": "bold",
    "dim": "dim",
    "id": "cyan",
    "key": "bold cyan",
    "mark": "bold",
    "quote": "bold underline",
    "warning": "yellow",
    "error": "bold red",
    "tentative": "yellow",
    "accepted": "green",
    "verified": "bold green",
    "disputed": "bold yellow",
    "superseded": "dim",
    "revoked": "dim",
    "rejected": "red",
}
"""What each style of a screen looks like. Every one of them stands on a word or sign that says the same."""

WIDEST = 300
"""Cells beyond which lines are no longer read; wider terminals are left empty at the right."""


PLAINER: Mapping[str, str] = {
    "▸": ">",
    "✗": "x",
    "→": ">",
    "–": "-",
    "…": "~",
    "×": "x",
    "·": "-",
    "│": "|",
    "└": "`",
    "├": "|",
    "─": "-",
    "“": '"',
    "”": '"',
    "’": "'",
    "█": "#",
    "▓": "%",
    "▒": "+",
    "░": ".",
    "┤": "|",
}
"""What stands for our own signs where the stream's encoding lacks them; one cell each, so that columns stay."""


def screen_width() -> int:
    """Return the cells to lay a screen out for: $COLUMNS, else the terminal's, else 80."""
    return min(max(shutil.get_terminal_size((80, 24)).columns, NARROWEST), WIDEST)


def print_screen(screen: Screen, *, colour: bool, page: bool, file: TextIO | None = None) -> None:
    """Write the screen to standard output or `file`; a pager and colour only where that is a terminal.

    Args:
        colour: Whether a person wants colour, if a terminal can show it.
        page: Whether a screen that is higher than the terminal may go to $PAGER.
    """
    stream = sys.stdout if file is None else file
    is_terminal = stream.isatty()
    text = _painted(screen, stream) if is_terminal and colour else str(screen)
    text = _encodable(text, stream)
    high = len(screen.lines) >= shutil.get_terminal_size((80, 24)).lines
    if page and is_terminal and high and _paged(text):
        return
    stream.write(text)
    stream.flush()


def print_line(text: str) -> None:
    """Write plain text to standard output, with a line end; what the stream cannot encode is left to its escapes."""
    stream = sys.stdout
    if text:
        signs = (PLAINER.get(sign, sign) if _sign(sign, stream.encoding) != sign else sign for sign in text)
        stream.write((text if text.isascii() else "".join(signs)).removesuffix("\n") + "\n")


def _painted(screen: Screen, stream: TextIO) -> str:
    """Return the screen with the colours that the terminal behind the stream can show."""
    # Here and not above: a pipe never pays for the import.
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    if console.legacy_windows:
        return str(screen)
    with console.capture() as capture:
        for line in screen.lines:
            painted = Text.assemble(*((text, STYLES.get(style, "")) for text, style in line))
            console.print(painted, soft_wrap=True)
    return capture.get()


def _encodable(text: str, stream: TextIO) -> str:
    """Return the text in signs that the stream can write, so that an old code page prints and does not fail."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(_sign(character, encoding) for character in text)
    return text


def _sign(character: str, encoding: str) -> str:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return PLAINER.get(character, "?")
    return character


def _paged(text: str) -> bool:
    """Show the text in $PAGER, or less; return False where there is no pager to start."""
    try:
        command = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:  # a quotation mark in it is not closed
        return False
    if not command:
        return False
    # less reads its options from here: quit where it fits, show colours, leave the text on the screen.
    environment = {"LESS": "FRX", "LESSCHARSET": "utf-8", **os.environ}
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, encoding="utf-8", errors="replace")
    except OSError:
        return False
    with pager:
        try:
            pager.communicate(text)
        except KeyboardInterrupt:
            # It belongs to the pager, which ends a search with it and goes on.
            pager.wait()
    return True
