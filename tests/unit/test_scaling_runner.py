"""Measuring: workers begin together, cases take turns, results are checked and kept, a later run goes on."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Never

import pytest
from scaling_samples import SMALL, WHOLE, environment, machine

from ftnumpy import locks
from ftnumpy.errors import BuildError, CommandFailed, TestsFailed, UsageError
from ftnumpy.scaling import crew, latency, runner
from ftnumpy.scaling.machine import Machine, Processor
from ftnumpy.scaling.runner import Plan
from ftnumpy.scaling.series import CONTROL, PROCESSES
from ftnumpy.scaling.workloads import Workload


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SECONDS": 0.002, "ROUNDS": 2, "SLICES": 4, "WARM_UP": 3}.items():
        monkeypatch.setattr(runner, name, value)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Two workers, even where this machine has one processor: then they share it."""
    allowed = sorted(os.sched_getaffinity(0))
    here = tuple(Processor(number=number, node=0, core=str(number)) for number in (allowed * 2)[:2])
    return Plan(
        made={name: environment(tmp_path / name, name) for name in ("stock", "patched")},
        workers=(1, 2),
        machine=replace(machine(), processors=here),
        folder=tmp_path / "raw",
        log=tmp_path / "logs" / "scaling.log",
    )


def test_every_case_takes_its_turn_in_every_round(plan: Plan) -> None:
    (found,) = runner.measure([SMALL], 1, plan)
    (launch,) = found.launches
    cases = [(count, mode) for count in (1, 2) for mode in ("stock", "patched", PROCESSES, CONTROL)]
    turns = [[(one.workers, one.mode) for one in launch.samples if one.round == turn] for turn in (0, 1)]
    assert turns == [cases[::-1], cases], "and who goes first changes"
    for one in launch.samples:
        assert len(one.seconds) == one.workers and min(one.seconds) > 0
        if one.mode != CONTROL:
            assert one.units == found.units * one.workers, "each worker does the same"


def test_a_whole_program_is_divided_among_the_workers_and_done_once(plan: Plan) -> None:
    (found,) = runner.measure([WHOLE], 2, plan)
    samples = [one for launch in found.launches for one in launch.samples if one.mode != CONTROL]
    assert {one.units for one in samples} == {100}
    for case in {(one.mode, one.workers) for one in samples}:
        parts = [one.first for one in samples if (one.mode, one.workers) == case]
        assert parts == [0, 100, 200, 300]


def test_a_later_run_goes_on_with_what_is_kept(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = runner.measure([SMALL], 1, plan)
    (more,) = runner.measure([SMALL], 3, plan)
    assert more.launches[0] == first.launches[0] and len(more.launches) == 3 and more.units == first.units
    monkeypatch.setattr(crew, "crew", lambda *_: pytest.fail("there is nothing left to measure"))
    assert runner.measure([SMALL], 2, plan) == [more], "more than what was asked for is not thrown away"


def test_what_was_measured_before_a_failure_is_kept(plan: Plan) -> None:
    bad = replace(SMALL, name="bad", step="raise ArithmeticError('no')")
    with pytest.raises(CommandFailed):
        runner.measure([SMALL, bad], 1, plan)
    (kept,) = plan.folder.glob("small-*.json")
    assert len(json.loads(kept.read_text())["launches"]) == 1
    assert not list(plan.folder.glob("bad-*")) and not list(plan.folder.glob(".*.json.*"))


@pytest.mark.parametrize("change", ["build", "work", "workers", "machine"])
def test_other_conditions_begin_anew(change: str, plan: Plan, tmp_path: Path) -> None:
    work: Workload = SMALL
    runner.measure([work], 1, plan)
    match change:
        case "build":
            plan = replace(plan, made={**plan.made, "patched": environment(tmp_path / "patched", "newer")})
        case "work":
            work = replace(SMALL, step="return x - i")
        case "workers":
            plan = replace(plan, workers=(1,))
        case "machine":
            plan = replace(plan, machine=replace(plan.machine, model="Another"))
    (found,) = runner.measure([work], 1, plan)
    assert len(list(plan.folder.glob("small-*.json"))) == 2
    assert len(found.launches) == 1


def test_a_broken_file_of_results_is_told_and_left_alone(plan: Plan) -> None:
    runner.measure([SMALL], 1, plan)
    (kept,) = plan.folder.glob("small-*.json")
    kept.write_text("{")
    with pytest.raises(UsageError, match=r"small-.*remove it"):
        runner.measure([SMALL], 2, plan)
    assert kept.read_text() == "{"


@pytest.mark.parametrize("units", [None, 400])
def test_threads_that_change_each_others_data_are_found_out(units: int | None, plan: Plan) -> None:
    # The module's list is what all threads of a process share.
    shared = replace(
        SMALL,
        shared="count = []",
        setup="",
        step="count.append(i)\nreturn len(count)",
        units=units,
    )
    with pytest.raises(TestsFailed, match=r"small: units \d+ to \d+ of worker \d have another result"):
        runner.measure([shared], 1, plan)


def test_check_sums_of_a_program_are_compared_whole_however_it_is_divided() -> None:
    sums: runner.Sums = {}
    runner.check(WHOLE, [(0, 0, 100)], [30], "stock", sums)
    runner.check(WHOLE, [(0, 0, 50), (0, 50, 100)], [10, 20], PROCESSES, sums)
    with pytest.raises(TestsFailed, match=r"units 0 to 99 .* 2 workers of 'patched' .* with 'stock'"):
        runner.check(WHOLE, [(0, 0, 50), (0, 50, 100)], [10, 21], "patched", sums)


def test_check_sums_of_workers_are_compared_one_by_one() -> None:
    sums: runner.Sums = {}
    runner.check(SMALL, [(0, 0, 9), (1, 0, 9)], [5, 6], PROCESSES, sums)
    runner.check(SMALL, [(0, 0, 9), (1, 0, 9)], [5, 6], "stock", sums)
    with pytest.raises(TestsFailed, match="of worker 0 "):
        runner.check(SMALL, [(0, 0, 9), (1, 0, 9)], [6, 5], "patched", sums)


@pytest.mark.parametrize(
    ("setup", "step", "told"),
    [
        ("", "raise ArithmeticError('no such luck')", "no such luck"),
        ("raise LookupError('no data')", "return 1", "no data"),
        ("", "import os; os._exit(3)", "ended early"),
    ],
)
def test_a_worker_that_fails_ends_the_run_with_its_words(setup: str, step: str, told: str, plan: Plan) -> None:
    with pytest.raises(CommandFailed, match=told) as failure:
        runner.measure([replace(SMALL, setup=setup, step=step)], 1, plan)
    assert str(plan.log) in str(failure.value)


def test_a_worker_that_says_nothing_is_given_up(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "TIMEOUT", 0.5)
    with pytest.raises(CommandFailed, match="gave no answer"):
        runner.measure([replace(SMALL, step="import time; time.sleep(60)")], 1, plan)


def test_an_interpreter_with_the_gil_on_is_refused(plan: Plan, tmp_path: Path) -> None:
    numpy = tmp_path / "stock" / "numpy.py"
    numpy.write_text(numpy.read_text().replace("lambda: False", "lambda: True"))
    with pytest.raises(BuildError, match="GIL on"):
        runner.measure([SMALL], 1, plan)


def test_no_worker_is_left_behind(plan: Plan) -> None:
    with pytest.raises(ZeroDivisionError), crew.crew(plan.made["stock"], 2, plan.log) as workers:
        assert [worker.child.poll() for worker in workers] == [None, None]
        raise ZeroDivisionError
    assert all(worker.child.poll() is not None for worker in workers)


def test_all_begin_at_the_time_that_was_said(plan: Plan) -> None:
    wait = replace(SMALL, step="import time\ntime.sleep(0.02)\nreturn i")
    with crew.crew(plan.made["stock"], 2, plan.log) as workers:
        told = [runner.request(wait, [(seed, 0, 2)], plan, seed) | {"warm_up": 0} for seed in (0, 1)]
        answers = crew.race(workers, told)
    for answer in answers:
        ((seconds, _),) = answer["threads"]
        assert 0.04 <= seconds < 1, "the units and nothing before them"


def test_threads_get_the_processors_of_the_plan(plan: Plan, tmp_path: Path) -> None:
    last = max(os.sched_getaffinity(0))
    here: Machine = replace(plan.machine, processors=(Processor(number=last, node=0, core="x"),))
    where = replace(SMALL, step=f"import os\nassert os.sched_getaffinity(0) == {{{last}}}\nreturn i")
    with crew.crew(plan.made["stock"], 1, plan.log) as workers:
        crew.race(workers, [runner.request(where, [(0, 0, 1)], replace(plan, machine=here))])


def test_workers_get_a_processor_each_in_every_mode(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(plan, machine=machine(2))
    asked: list[tuple[int, list[int]]] = []

    def race(workers: Sequence[crew.Worker], requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        asked.append((len(workers), [number for request in requests for number in request["processors"]]))
        return [{"threads": [[1.0, 0]] * len(request["ranges"])} for request in requests]

    monkeypatch.setattr(crew, "race", race)
    runner.measure([SMALL], 1, plan)
    assert {tuple(numbers) for _, numbers in asked} == {(0,), (0, 1)}
    assert {count for count, numbers in asked if numbers == [0, 1]} == {1, 2}, "of one process and of two"


def test_libraries_get_one_thread(plan: Plan) -> None:
    work = replace(SMALL, step="import os\nassert os.environ['OPENBLAS_NUM_THREADS'] == '1'\nreturn i")
    with crew.crew(plan.made["stock"], 1, plan.log) as workers:
        crew.race(workers, [runner.request(work, [(0, 0, 1)], plan)])


def test_two_runs_at_once_take_turns(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    began = threading.Event()

    def begin(*_: object) -> Never:
        began.set()
        raise BuildError("it began, which is all that is asked")

    def measure() -> None:
        with contextlib.suppress(BuildError):
            runner.measure([SMALL], 1, plan)

    monkeypatch.setattr(crew, "crew", begin)
    plan.folder.mkdir()
    other = threading.Thread(target=measure)
    with locks.held(plan.folder / "lock", ""):
        other.start()
        assert not began.wait(0.5)
    assert began.wait(30)
    other.join()


def test_a_units_time_is_taken_with_and_without_a_collection(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "OBJECTS", 1000)
    monkeypatch.setattr(latency, "ROUNDS", 2)
    slow = replace(SMALL, step="import time\ntime.sleep(0.0005)\nreturn i")
    series = [replace(one, units=40) for one in runner.measure([slow, WHOLE], 1, plan)]
    found = latency.measure([slow, WHOLE], series, plan)
    assert [(one.workload, one.variant, one.collecting) for one in found] == [
        ("small", variant, collecting) for variant in ("stock", "patched") for collecting in (False, True)
    ], "a whole program has no say in it"
    for one in found:
        assert one.units == 40 * latency.RUNS * 2 and one.workers == 1
        assert 500_000 <= one.median <= one.p99 <= one.max
        assert (one.collections > 0) == (one.collection_ms > 0) == one.collecting


def test_one_of_each_class_stands_for_it() -> None:
    def named(*names: str) -> Sequence[Workload]:
        return [replace(SMALL, name=name, task=name[0]) for name in names]

    assert [one.name for one in latency.chosen([WHOLE, *named("a1", "a2", "b1", "a3")])] == ["a1", "b1"]


def test_a_quantile_is_a_value_that_was_seen() -> None:
    values = [float(value) for value in range(1, 101)]
    assert latency.quantile(values, 0.99) == 99.0
    assert latency.quantile([*values, 1000.0], 0.99) == 100.0
    assert latency.quantile([7.0], 0.99) == 7.0
