"""Each test here names the patch that it proves; it is skipped where the stack under test lacks that patch.

Run by the interpreter and the NumPy under test.  ``--applied`` lists the patch files that they have; without it they
are taken to have all.
"""

from __future__ import annotations

from pathlib import Path

import building
import pytest

ROOT = Path(__file__).parents[2]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--applied",
        metavar="FILES",
        help="the patches that the stack under test has, as queue/file, with commas (default: all)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "patch(queue, words): proves the one patch of the queue whose file name has these words"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    said = config.getoption("--applied")
    applied = None if said is None else {name for name in said.split(",") if name}
    for item in items:
        marks = list(item.iter_markers("patch"))
        if not marks:
            raise pytest.UsageError(f"{item.nodeid} does not say which patch it proves (pytest.mark.patch)")
        if applied is None:
            continue
        needed = [_patch(*mark.args) for mark in marks]
        absent = [patch for patch in needed if patch not in applied]
        if absent:
            item.add_marker(pytest.mark.skip(reason=f"proves {', '.join(absent)}, which this variant lacks"))


def _patch(queue: str, words: str) -> str:
    """The patch of ``queue`` that has ``words`` in its file name, as ``queue/file``."""
    lines = (ROOT / queue / "series").read_text(encoding="utf-8").splitlines()
    names = [line for line in lines if line.strip() and not line.startswith("#")]
    found = [name for name in names if words in name]
    if len(found) != 1:
        raise pytest.UsageError(
            f"a test proves the patch '{words}' of {queue}, and its series has {len(found)} patches of such a name: "
            f"{', '.join(found or names) or 'it is empty'}"
        )
    return f"{queue}/{found[0]}"


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> building.Builder:
    """Compiles the C files of this folder, each once per run."""
    return building.Builder(tmp_path_factory.mktemp("built"))
