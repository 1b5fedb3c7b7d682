"""Which files a person means by a path: a file is itself, a folder is every file in it."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path


def places(paths: Iterable[str]) -> Iterator[str]:
    """Yield each file once, those of a folder in order of their names, deep ones too.

    What begins with a dot is left out in a folder, and links to folders are not followed, so that no loop has no end.
    """
    for path in dict.fromkeys(paths):
        if path != "-" and Path(path).is_dir():
            yield from _inside(path)
        else:
            yield path


def _inside(folder: str) -> Iterator[str]:
    for base, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (str(Path(base) / name) for name in sorted(files) if not name.startswith("."))
