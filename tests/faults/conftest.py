"""Each test has a toy checkout and a cache of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import toy as toys


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "whole: takes minutes; the session 'test' leaves it out")


@pytest.fixture
def toy(tmp_path: Path) -> toys.Toy:
    return toys.make(tmp_path / "checkout", tmp_path / "cache")
