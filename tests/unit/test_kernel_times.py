"""Times of the kernel: ratios of neighbouring runs, and workers that are asked in turn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ftnumpy import kernel_times
from ftnumpy.errors import BuildError

# Answers as the worker does, with the threads that it was asked for as its time.
ECHO = """
import json, sys
for line in sys.stdin:
    wish = json.loads(line)
    print(json.dumps(float(wish["threads"] * wish["calls"])), flush=True)
"""


def start(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def test_a_ratio_is_the_median_of_the_runs_ratios_not_the_ratio_of_medians() -> None:
    # The machine becomes ten times slower in between; every pair of neighbours still says one half.
    below = [1.0, 1.0, 1.0, 10.0, 10.0]
    found = kernel_times.ratio([second / 2 for second in below], below)
    assert (found.low, found.median, found.high) == (0.5, 0.5, 0.5)
    assert str(found) == "0.50 (0.50 to 0.50)"


def test_series_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError):
        kernel_times.ratio([1.0, 2.0], [1.0])


def test_the_slowest_worker_counts(tmp_path: Path) -> None:
    slow = ECHO.replace('wish["threads"]', "7")
    with start(ECHO) as one, start(slow) as other:
        assert kernel_times._ask([one], tmp_path / "log", threads=2, size=10, calls=3) == 6.0
        assert kernel_times._ask([one, other], tmp_path / "log", size=10, calls=3) == 21.0
        one.kill()
        other.kill()


def test_a_worker_that_dies_is_an_error_that_names_the_log(tmp_path: Path) -> None:
    with start("input()") as worker, pytest.raises(BuildError, match=r"kernel\.log"):
        kernel_times._ask([worker], tmp_path / "kernel.log", size=10, calls=1)


def test_a_row_for_each_question_and_a_column_for_each_size() -> None:
    names = [f"{variant} {case}" for variant in ("stock", "patched") for case, *_ in kernel_times.CASES]
    stock, patched = ([2.0, 4.0], [1.0, 2.0])
    seconds = {name: stock if name.startswith("stock") else patched for name in names}
    grid = kernel_times.ratios({"10": seconds, "500": seconds})
    assert grid.columns == ("", "10 elements", "500 elements") and "of 2 runs" in grid.title
    assert grid.rows[0] == ("stock, 2 threads / 1", *["1.00 (1.00 to 1.00)"] * 2)
    assert grid.rows[-1] == ("patched / stock, 2 threads", *["0.50 (0.50 to 0.50)"] * 2)
