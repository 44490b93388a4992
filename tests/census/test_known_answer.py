"""The plugin counts exactly: needs qemu-user, a C compiler and binutils, no stack."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ftnumpy.census import known_answer, qemu
from ftnumpy.census.known_answer import Counted
from ftnumpy.settings import read_settings

pytestmark = pytest.mark.skipif(
    shutil.which(qemu.PROGRAM) is None, reason=f"needs {qemu.PROGRAM}; install the package {qemu.PACKAGE}"
)


@pytest.mark.parametrize(("threads", "iterations"), [(2, 1), (2, 10), (2, 1000), (3, 500), (5, 101)])
def test_the_counts_are_exact(tmp_path: Path, threads: int, iterations: int) -> None:
    found = known_answer.count(read_settings(os.environ), threads, iterations, tmp_path, tmp_path / "log")
    tenths = {1: 1, 10: 1, 1000: 100, 500: 50, 101: 11}[iterations]
    assert found == {
        "split": Counted(locked=3 * threads * iterations, plain=threads * iterations, true_sharing=True),
        "swapped": Counted(locked=threads * iterations, plain=0, true_sharing=True),
        "guarded": Counted(locked=2 * threads * tenths, plain=-1, true_sharing=True),
    }


def test_one_thread_shares_nothing(tmp_path: Path) -> None:
    assert known_answer.count(read_settings(os.environ), 1, 100, tmp_path, tmp_path / "log") == {}


def test_the_check_passes_and_would_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read_settings(os.environ)
    assert known_answer.check(settings, tmp_path, tmp_path / "log") == "exact"
    right = known_answer.expected
    monkeypatch.setattr(known_answer, "expected", lambda threads, iterations: right(threads, iterations + 1))
    with pytest.raises(Exception, match="does not count right"):
        known_answer.check(settings, tmp_path, tmp_path / "log")


def test_a_window_that_opens_at_once_is_counted_whole(tmp_path: Path) -> None:
    # The first thread's window may open before the thread that made it runs again.
    settings = read_settings(os.environ)
    for _ in range(10):
        found = known_answer.count(settings, 2, 10, tmp_path, tmp_path / "log")
        assert found == known_answer.expected(2, 10)
