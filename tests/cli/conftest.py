"""Files to run commands on: each test gets a copy of one that was made once."""

import shutil
from pathlib import Path

import pytest

from tests.cli.driver import Mem


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An empty file of every admission."""
    files: dict[str, Path] = {}
    for admission in ("direct", "review", "checked"):
        mem = Mem(tmp_path_factory.mktemp(admission))
        assert mem.run("init", "--admission", admission).code == 0
        files[admission] = mem.db
    return files


@pytest.fixture
def bare(tmp_path: Path) -> Mem:
    """A folder with no file in it."""
    home = tmp_path / "home"
    home.mkdir()
    return Mem(home)


@pytest.fixture
def mem(bare: Mem, made: dict[str, Path]) -> Mem:
    """A file in which every channel acts at once."""
    shutil.copy(made["direct"], bare.db)
    return bare


@pytest.fixture
def reviewed(bare: Mem, made: dict[str, Path]) -> Mem:
    """A file in which only a person decides."""
    shutil.copy(made["review"], bare.db)
    return bare


@pytest.fixture
def checked(bare: Mem, made: dict[str, Path]) -> Mem:
    """A file that facts enter only through transactions."""
    shutil.copy(made["checked"], bare.db)
    return bare
