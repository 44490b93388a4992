"""The wheelhouse, tried as those do who take it away.  Run by the toolchain's own Python; ``--wheelhouse`` names it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import bare
import pytest
from handling import serve, unpack

ROOT = Path(__file__).parents[2]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--wheelhouse", metavar="FOLDER", type=Path, default=ROOT / "wheelhouse", help="what is tried")


@pytest.fixture(scope="session")
def wheelhouse(pytestconfig: pytest.Config) -> Path:
    folder: Path = pytestconfig.getoption("--wheelhouse").absolute()
    if not (folder / "SHA256SUMS").is_file():
        raise pytest.UsageError(f"{folder} has no SHA256SUMS; fill it with: nox -s wheels")
    return folder


@pytest.fixture(scope="session")
def python(wheelhouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter, unpacked into a folder with a space in its name."""
    return unpack(wheelhouse, tmp_path_factory.mktemp("a team's folder"))


@pytest.fixture(scope="session")
def bare_root(wheelhouse: Path, tmp_path_factory: pytest.TempPathFactory) -> bare.Root:
    """A root file system with glibc, the unpacked archive, the wheelhouse and nothing else, not even a shell."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to change the root folder")
    root = bare.make(tmp_path_factory.mktemp("bare"))
    unpack(wheelhouse, root.folder / "opt" / "a team's folder")
    bare.share(wheelhouse, root.folder / "srv" / "wheelhouse")
    return root


@pytest.fixture(scope="session")
def wheels_root(bare_root: bare.Root) -> bare.Root:
    """The same with the libraries that a wheel may expect."""
    bare.install(bare.FOR_WHEELS, bare_root.folder)
    return bare_root


@pytest.fixture
def served(wheelhouse: Path) -> Iterator[str]:
    """The wheelhouse's address on a web server that knows nothing of it."""
    with serve(wheelhouse) as address:
        yield address
