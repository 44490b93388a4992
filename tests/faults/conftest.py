"""Each test has a toy checkout and a cache of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import toy as toys


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "whole: takes minutes; the session 'test' leaves it out")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test is several runs, each of a few seconds or, on a busy machine, of a minute."""
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture
def toy(tmp_path: Path) -> toys.Toy:
    return toys.make(tmp_path / "checkout", tmp_path / "cache")
