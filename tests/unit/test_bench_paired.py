"""Stock against patched: who decides, and what is too slow."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ftnumpy.bench import command, instructions, paired, workers
from ftnumpy.bench.paired import Verdict
from ftnumpy.environment import Environment
from ftnumpy.errors import BuildError, PrerequisiteError, SlowerThanStock
from ftnumpy.kernel_times import Ratio
from ftnumpy.settings import ROOT

SUITE = """
class Sums:
    def time_small(self):
        sum(range(50))

    def time_large(self):
        sum(range(5000))

    def time_broken(self):
        raise RuntimeError("no such luck")

class Importing:
    def timeraw_json(self):
        return "import json"
"""


@pytest.fixture
def benchmarks(tmp_path: Path) -> Path:
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "sums.py").write_text(SUITE)
    return folder


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Environment:
    """This Python, which has asv_runner, in the place of a variant's."""
    monkeypatch.setattr(workers, "variables", lambda _: {"PYTHONHASHSEED": "0"})
    return Environment(Path(sys.prefix), Path(sys.executable), None, None)  # type: ignore[arg-type]


def clock(low: float, median: float, high: float) -> Ratio:
    return Ratio(median=median, low=low, high=high)


def verdict(ratio: float, benchmark: str = "cost.A.time_a", reference: float = 0.9) -> Verdict:
    return Verdict(benchmark=benchmark, clock=clock(ratio, ratio, ratio), instructions=5.0, reference=reference)


def test_the_clock_decides_only_where_its_quartiles_are_close() -> None:
    steady, shaky = ([1.0, 1.0, 1.0, 1.0], [0.9, 0.9, 0.9, 0.9]), ([1.0, 1.0, 1.0, 1.0], [0.7, 0.9, 1.1, 1.3])
    found = paired.decide({"steady": steady, "shaky": shaky}, {"steady": (0.8, 0.7), "shaky": (0.97, 1.1)})
    verdicts = {each.benchmark: each for each in found}
    assert verdicts["steady"].by_clock and not verdicts["shaky"].by_clock
    assert (verdicts["steady"].ratio, verdicts["shaky"].ratio) == (0.9, 0.97)
    assert (verdicts["steady"].reference, verdicts["shaky"].reference) == (0.7, 1.1)
    for low, decides in ((0.895, True), (0.88, False)):
        assert replace(verdict(0.9), clock=clock(low, 0.9, 0.91)).by_clock == decides
    assert replace(verdict(0.9, "importing.Importing.timeraw_numpy"), clock=clock(0.1, 0.9, 1.1)).by_clock


def test_the_mean_is_geometric() -> None:
    assert paired.geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    assert paired.geometric_mean([0.81, 1.0]) == pytest.approx(0.9)


def test_large_arrays_and_imports_are_not_small_arrays() -> None:
    small = {
        "cost.Article.time_kernel_10": False,
        "cost.Article.time_kernel_50": False,
        "cost.Article.time_kernel_10_small": True,
        "cost.Allocation.time_ones_2_mib": False,
        "cost.Allocation.time_zeros_small": True,
        "importing.Importing.timeraw_numpy": False,
    }
    assert {name: verdict(1.0, name).small for name in small} == small
    suite = (ROOT / "asv_bench" / "benchmarks" / "cost.py").read_text()
    for name in paired.LARGER:
        _, group, method = name.split(".")
        assert f"class {group}:" in suite and f"def {method}(" in suite, name


def test_two_percent_too_slow_or_too_little_gained_is_an_error() -> None:
    command._hold([verdict(0.9), verdict(1.019, "importing.A.timeraw_a"), verdict(0.8)])
    with pytest.raises(SlowerThanStock, match=r"cost.A.time_a: 1\.021 of stock's"):
        command._hold([verdict(0.5), verdict(1.021)])
    with pytest.raises(SlowerThanStock, match=r"small arrays, patched / stock: 0\.910, 0\.9 is allowed"):
        command._hold([verdict(0.91), verdict(0.5, "importing.A.timeraw_a")])
    with pytest.raises(SlowerThanStock, match=r"all, patched / reference: 1\.010, 1\.0 is allowed"):
        command._hold([verdict(0.8, reference=1.01)])


def test_a_worker_times_what_it_is_asked_for(made: Environment, benchmarks: Path, tmp_path: Path) -> None:
    with workers.started(made, benchmarks, tmp_path / "log") as worker:
        small = min(worker.seconds("sums.Sums.time_small", 200) for _ in range(5))
        large = min(worker.seconds("sums.Sums.time_large", 200) for _ in range(5))
        assert worker.seconds("sums.Importing.timeraw_json", 1) > 0
        assert worker.seconds("sums.Importing.timeraw_json", 0) > 0
        assert large > 5 * small > 0


def test_a_benchmark_that_fails_is_one_error_with_its_log(made: Environment, benchmarks: Path, tmp_path: Path) -> None:
    with workers.started(made, benchmarks, tmp_path / "log") as worker:
        with pytest.raises(BuildError, match=r"ran sums.Sums.time_broken ended"):
            worker.seconds("sums.Sums.time_broken", 1)
        with pytest.raises(BuildError):
            worker.seconds("sums.Sums.time_small", 1)
    assert "no such luck" in (tmp_path / "log").read_text()


def test_pairs_take_turns(made: Environment, benchmarks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "SECONDS", 0.002)
    found = paired.measure(made, made, benchmarks, ["sums.Sums.time_small"], 2, tmp_path / "log")
    stock, patched = found["sums.Sums.time_small"]
    assert len(stock) == len(patched) == 2 * paired.ROUNDS and min(stock + patched) > 0


def test_without_valgrind_nothing_is_begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PrerequisiteError, match="valgrind is missing"):
        instructions.require()


def test_the_count_between_two_marks_is_read(tmp_path: Path) -> None:
    (tmp_path / "out.2").write_text("desc: Trigger: --dump-before=getpgrp\nsummary: 17\n\ntotals: 1349424\n")
    (tmp_path / "out.3").write_text("cut short")
    assert instructions.total(tmp_path, 2) == 1_349_424
    for mark in (3, 4):
        with pytest.raises(BuildError, match="wrote no count"):
            instructions.total(tmp_path, mark)
    assert instructions.is_fresh("importing.Importing.timeraw_numpy")
    assert not instructions.is_fresh("cost.Scalars.time_add")


def test_what_lies_around_the_calls_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def totals(counters: object, name: str, number: int) -> list[int]:
        asked.append(number)
        return [60_000 + 2_500 * number, 70_000 + 2_400 * number]

    monkeypatch.setattr(instructions, "_totals", totals)
    assert instructions._per_call([], "cost.Scalars.time_add") == [2_500, 2_400]
    assert asked == [1, 1 + instructions.FEW, 1 + round(instructions.ENOUGH / 2_400)]
    monkeypatch.setattr(instructions, "ENOUGH", 9_600)
    assert instructions._per_call([], "cost.Article.time_kernel_50") == [2_500, 2_400]
    assert len(asked) == 5, "calls that are long enough are not counted again"
