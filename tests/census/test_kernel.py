"""The article's kernel on stock: the known 64 locked shared writes of an iteration, by name."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from ftnumpy.census import runner
from ftnumpy.census.tally import Census
from ftnumpy.census.workloads import select
from ftnumpy.settings import ROOT, read_settings

PYTHON = ROOT / ".build" / "stock" / "bin" / "python"

pytestmark = pytest.mark.skipif(
    not PYTHON.exists(), reason="needs the stock stack; 'nox -s build-ft -- --variant stock' builds it"
)


def take(folder: Path, threads: int) -> list[Census]:
    taken = runner.take(
        select(["kernel-10", "kernel-1000"]),
        [],
        python=PYTHON,
        variant="stock",
        threads=threads,
        iterations=None,
        trace=0,
        settings=read_settings(os.environ),
        folder=folder,
        log=folder / "log",
    )
    return [each.census for each in taken]


def by_owner(census: Census) -> Counter[str]:
    """Locked writes per iteration; the casts and the locks of the dispatch caches each as one."""
    found: Counter[str] = Counter()
    for line in census.lines:
        name = line.name
        for prefix in ("_ArrayMethod", "block of ufunc"):
            name = prefix if name.startswith(prefix) else name
        found[name] += round(line.locked, 1)
    return found


@pytest.mark.parametrize("threads", [2, 4, 8])
def test_the_kernel_makes_64_locked_shared_writes_at_any_size_and_number_of_threads(
    tmp_path: Path, threads: int
) -> None:
    for census in take(tmp_path, threads):
        assert census.threads == threads
        assert census.locked == pytest.approx(64.0, abs=0.1)
        assert census.plain == pytest.approx(0.0, abs=0.1)
        assert by_owner(census) == {
            "PyCapsule mem_handler": 16.0,
            "PyCapsule numpy.ufunc.extobj": 12.0,
            "block of ufunc": 12.0,
            "_ArrayMethod": 10.0,
            "ufunc np.sin": 4.0,
            "ufunc np.cos": 4.0,
            "_NoValueType np._NoValue": 4.0,
            "builtin_function_or_method numpy._core._methods.umr_sum": 2.0,
        }


def test_three_runs_are_alike(tmp_path: Path) -> None:
    runs = [[by_owner(census) for census in take(tmp_path / str(run), 2)] for run in range(3)]
    assert runs[0] == runs[1] == runs[2]
