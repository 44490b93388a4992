"""The replay of traces whose answer is known by hand, and what is read into and out of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ftnumpy import process
from ftnumpy.census import model
from ftnumpy.census.dump import Dump, Step, Thread
from ftnumpy.census.model import Costs, Trace
from ftnumpy.census.native import Sample, Times
from ftnumpy.census.tally import Census, Line
from ftnumpy.census.timing import Handover, Spread
from ftnumpy.errors import UsageError
from ftnumpy.settings import Settings, read_settings

READ, WRITE, LOCKED = 0, 1, 2
A, B = 0x1000, 0x2000
COSTS = Costs(handover=30.0, hold=5.0, keep=0.0, ahead=0, instruction=1.0)

Replay = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """With a cache of this session's own, in which the replay is compiled once."""
    return read_settings({"PATH": os.environ["PATH"], "FTNUMPY_CACHE": str(tmp_path_factory.mktemp("cache"))})


@pytest.fixture
def replay(settings: Settings, tmp_path: Path) -> Replay:
    def run(
        traces: Sequence[Trace], cores: Sequence[int], costs: Costs = COSTS, truly: Sequence[bool] = (True, True)
    ) -> list[dict[str, Any]]:
        lines = [line(address, true_sharing) for address, true_sharing in zip((A, B), truly, strict=True)]
        return model.replay(lines, traces, costs, cores, settings=settings, log=tmp_path / "log")

    return run


def line(address: int, true_sharing: bool = True) -> Line:
    return Line(
        name=f"line {address:#x}",
        address=address,
        locked=1,
        plain=0,
        reads=0,
        bursts=1,
        true_sharing=true_sharing,
        threads=2,
        words=(),
        sites=(),
    )


def trace(instructions: int, *steps: tuple[int, int, int]) -> Trace:
    return Trace(instructions=instructions, steps=[Step(*step) for step in steps])


def rates(found: Sequence[dict[str, Any]]) -> list[float]:
    """Instructions of all cores in a nanosecond."""
    return [point["instructions"] / point["ns"] for point in found]


def transfers(point: dict[str, Any]) -> int:
    return sum(each["transfers"] for each in point["lines"])


def test_threads_that_share_nothing_are_as_many_times_as_fast(replay: Replay) -> None:
    found = replay([trace(1000)], (1, 2, 7, 64))
    assert rates(found) == [1, 2, 7, 64]


def test_lines_that_are_only_read_cost_nothing(replay: Replay) -> None:
    found = replay([trace(1000, (100, A, READ), (10, B, READ), (500, A, READ))], (1, 64))
    assert rates(found) == [1, 64]
    assert [transfers(point) for point in found] == [0, 0]


def test_one_core_keeps_its_lines(replay: Replay) -> None:
    (found,) = replay([trace(100, (10, A, LOCKED), (10, B, WRITE), (10, A, READ))], (1,))
    assert (rates([found]), transfers(found)) == ([1], 0)


def test_a_line_that_is_always_contended_is_the_ceiling(replay: Replay) -> None:
    # Every 35 ns one core gets the line, 30 of hand-over and 5 of hold, and does the 40 instructions of its trace.
    found = replay([trace(*([40 * 500]), *([(40, A, LOCKED)] * 500))], (8, 16, 64))
    assert rates(found) == pytest.approx([40 / 35] * 3, rel=0.01)
    assert [point["lines"][0]["busy_ns"] / point["ns"] for point in found] == pytest.approx([1] * 3, rel=0.01)


def test_below_the_ceiling_each_transfer_costs_a_hand_over(replay: Replay) -> None:
    # 1000 instructions of its own are enough for two cores not to meet at the line, but it moves each time.
    (found,) = replay([trace(1000 * 100, *([(1000, A, LOCKED)] * 100))], (2,))
    assert rates([found]) == pytest.approx([2 * 1000 / 1030], rel=0.01)
    assert found["lines"][0]["wait_ns"] == pytest.approx(30 * transfers(found), rel=0.005)


def test_a_reader_fetches_a_line_once_for_each_write_to_it(replay: Replay) -> None:
    writer = trace(10_000, *([(1000, A, LOCKED)] * 10))
    reader = trace(10_000, *([(10, A, READ)] * 1000))
    (found,) = replay([writer, reader], (2,))
    written = model.PASSES * 10
    # Each write takes the line from the reader and each first read after it from the writer.
    assert transfers(found) == pytest.approx(2 * written, abs=3)


def test_readers_of_a_line_that_nobody_holds_for_writing_are_served_side_by_side(replay: Replay) -> None:
    writer = trace(10_000, *([(1000, A, LOCKED)] * 10))
    reader = trace(10_000, *([(10, A, READ)] * 1000))
    (found,) = replay([writer, *[reader] * 7], (8,))
    # All seven wait after each write, but the line changes hands only for the first of them and for the writer.
    assert transfers(found) == pytest.approx(2 * model.PASSES * 10, abs=3)
    assert found["lines"][0]["wait_ns"] > 7 * 30 * (model.PASSES * 10 - 2)


def test_plain_writes_dont_wait_but_a_locked_one_waits_for_them(replay: Replay) -> None:
    plain = [trace(1000 * 100, *([(1000, A, WRITE)] * 100))]
    (found,) = replay(plain, (2,))
    assert rates([found]) == pytest.approx([2], rel=0.001)
    assert transfers(found) > 0
    # The same with a locked write to a line of the core's own right after.
    own = [trace(1000 * 100, *([(999, A, WRITE), (1, B, LOCKED)] * 100))] * 2
    (found,) = replay(own, (1,))
    assert rates([found]) == [1]
    (found,) = replay([*own[:1], trace(1000 * 100, *([(1000, A, WRITE)] * 100))], (2,))
    first, second = found["lines"]
    assert first["wait_ns"] == pytest.approx(29 * first["transfers"] / 2, rel=0.05)
    assert second["wait_ns"] == 30  # to have it for writing, once


def test_a_falsely_shared_line_stays_with_as_many_cores_as_shared_it(replay: Replay) -> None:
    traces = [trace(40 * 500, *([(40, A, LOCKED)] * 500))] * 2
    (two, sixteen, odd) = replay(traces, (2, 16, 3), truly=(False, True))
    assert rates([sixteen])[0] == pytest.approx(8 * rates([two])[0], rel=0.02)
    assert sixteen["lines"][0]["copies"] == 8
    # The third core has nobody beside it.
    assert rates([odd])[0] == pytest.approx(rates([two])[0] + 1, rel=0.02)


def test_waits_for_lines_that_are_needed_soon_overlap(replay: Replay) -> None:
    # Two lines, 10 instructions apart: a core that looks 50 ahead waits for both at once.
    steps = [(990, A, LOCKED), (10, B, LOCKED)] * 100
    blind, seeing = (
        replay([trace(1000 * 100, *steps)], (2,), costs)[0]
        for costs in (COSTS, Costs(handover=30.0, hold=5.0, keep=0.0, ahead=20, instruction=1.0))
    )
    assert rates([blind]) == pytest.approx([2 * 1000 / 1060], rel=0.01)
    # Of the 40 ns from the first request to the second line, 10 are spent on the instructions between.
    assert rates([seeing])[0] > 2 * 1000 / 1040
    assert transfers(seeing) == pytest.approx(transfers(blind), abs=4)


def test_a_read_before_a_write_asks_for_writing_at_once(replay: Replay) -> None:
    steps = [(990, A, READ), (10, A, LOCKED)] * 100
    blind, seeing = (
        replay([trace(1000 * 100, *steps)], (2,), costs)[0]
        for costs in (COSTS, Costs(handover=30.0, hold=5.0, keep=0.0, ahead=10, instruction=1.0))
    )
    assert transfers(blind) == pytest.approx(2 * transfers(seeing), abs=4)


def test_a_core_goes_on_with_a_line_until_it_must_give_it_up(replay: Replay) -> None:
    burst = [trace(5 * 1000, *([(5, A, LOCKED)] * 1000))]
    prompt, slow = (
        replay(burst, (2,), costs)[0]
        for costs in (COSTS, Costs(handover=30.0, hold=5.0, keep=20.0, ahead=0, instruction=1.0))
    )
    assert rates([slow])[0] > 3 * rates([prompt])[0]


def test_the_same_traces_give_the_same_prediction(replay: Replay) -> None:
    traces = [trace(5000, *([(7, A, LOCKED), (13, B, READ), (11, B, WRITE)] * 100))] * 2
    assert replay(traces, (2, 4, 64)) == replay(traces, (2, 4, 64))


def test_steps_at_lines_that_are_not_shared_are_plain_instructions(replay: Replay) -> None:
    with_others = trace(1000, (100, 0x9000, LOCKED), (200, A, LOCKED), (50, 0x9040, READ))
    assert replay([with_others], (1, 2, 8)) == replay([trace(1000, (300, A, LOCKED))], (1, 2, 8))


def test_a_trace_that_says_more_than_it_has_is_refused(replay: Replay) -> None:
    with pytest.raises(Exception, match="more than the trace has"):
        replay([trace(10, (100, A, READ))], (1,))


def sample(wall: float, queued: float = 0.0, together: float = 1.0) -> Sample:
    return Sample(
        together=together,
        wall_ns=wall,
        queued_ns=queued,
        cpu_ns=wall - queued,
        minor_faults=0,
        major_faults=0,
        voluntary_switches=0,
        forced_switches=0,
    )


def times(two: Sequence[Sample], controls: Sequence[float], one: float = 100.0) -> Times:
    return Times(iterations=10, samples={1: tuple(sample(one) for _ in two), 2: tuple(two)}, controls=tuple(controls))


def test_the_measurement_is_relative_to_the_control_of_its_round() -> None:
    found, missing = model.validate(1.5, times([sample(150 * slow) for slow in (1, 2, 1, 4, 1)], (1, 2, 1, 4, 1)))
    assert found is not None
    assert (found.measured.median, found.measured.low, found.measured.high, found.rounds) == (1.5, 1.5, 1.5, 5)
    assert found.control.high == 2
    assert found.off == 0
    assert missing == ()


def test_rounds_in_which_threads_had_to_wait_for_a_processor_dont_count() -> None:
    good, queued, apart = sample(160), sample(300, queued=150), sample(110, together=0.5)
    found, _ = model.validate(1.8, times([good, queued, good, apart, good, good, good], [1.0] * 7))
    assert found is not None
    assert (found.rounds, found.measured.median) == (5, 1.6)
    assert found.off == pytest.approx(0.125)
    found, missing = model.validate(1.8, times([good, queued, apart, queued, good], [1.0] * 5))
    assert found is None
    assert "all but 2 of 5 rounds" in missing[0]


def cost(handover: float = 72.0, own: float = 5.0, contended: float = 15.4, ahead: int = 0) -> Handover:
    return Handover(
        cpus=(0, 1),
        handover=Spread.of([handover]),
        one_way=Spread.of([60]),
        own_add=Spread.of([own]),
        contended_add=Spread.of([contended]),
        ahead=ahead,
    )


def test_how_long_a_line_is_kept_follows_from_contended_adds() -> None:
    # A hand-over and a hold, 77 ns, for 5 adds of 15.4 each: 4 of 5 ns after the first.
    assert model.keep(cost()) == pytest.approx(20)
    # Every add moves the line.
    assert model.keep(cost(contended=77)) == 0
    assert model.keep(cost(contended=90)) == 0
    # Never more than the hand-over itself.
    assert model.keep(cost(contended=0.1)) == 72


def thread(instructions: int) -> Thread:
    return Thread(windows=1, instructions=instructions, lost=0)


def dump(threads: dict[int, Thread], steps: dict[int, list[Step]]) -> Dump:
    return Dump(
        line_size=64,
        burst=200,
        threads=threads,
        instructions={},
        lines=[],
        accesses=[],
        calls=[],
        steps=steps,
    )


def test_a_trace_that_was_cut_ends_at_its_last_step() -> None:
    steps = [Step(100, A, LOCKED), Step(900, A, LOCKED)]
    (whole, cut, idle) = model.read_traces(
        dump({1: thread(1100), 2: thread(9000), 3: thread(700)}, {1: steps, 2: steps}), instructions=100
    )
    assert (whole.instructions, cut.instructions, idle.instructions) == (1100, 1000, 700)
    assert idle.steps == []


def census(*lines: Line, instructions: float) -> Census:
    return Census(
        workload="add",
        variant="stock",
        python="3.13",
        numpy="",
        threads=2,
        iterations=100,
        instructions=instructions,
        lines=lines,
        syscalls=(),
        qemu="7.2",
        seconds=1,
    )


def test_a_prediction_says_what_it_is_made_of(settings: Settings, tmp_path: Path) -> None:
    steps = [Step(1000, A, LOCKED)] * 100
    found = model.predict(
        census(line(A), line(B), instructions=1000),
        dump({1: thread(100_000), 2: thread(100_000)}, {1: steps, 2: steps}),
        times([sample(160)] * 5, [1.0] * 5, one=500.0),
        cost(handover=50, own=10, contended=60),
        settings=settings,
        log=tmp_path / "log",
    )
    assert found.label == "a model"
    made = found.inputs
    assert (made.handover_ns, made.hold_ns, made.keep_ns, made.ns_per_instruction) == (50, 10, 0, 0.5)
    assert (made.iterations, made.traces, made.accesses, made.lines, made.passes) == (100, 2, 200, 2, model.PASSES)
    assert [point.cores for point in found.points] == [1, 2, 4, 8, 16, 32, 64]
    one, two, *_, most = found.points
    assert (one.speedup, one.wait_ns, one.iterations_per_second) == (1, 0, pytest.approx(1e9 / 500))
    assert two.speedup == pytest.approx(2 * 500 / 550, rel=0.01)
    assert two.wait_ns == pytest.approx(50, rel=0.02)
    # 60 ns of the line for each iteration: no more than 500 / 60 times one core.
    assert most.speedup == pytest.approx(500 / 60, rel=0.02)
    busiest, untouched = found.lines
    assert (busiest.name, untouched.name) == ("line 0x1000", "line 0x2000")
    assert busiest.ceiling == pytest.approx(1e9 / 60, rel=0.02)
    assert busiest.at[-1].busy == pytest.approx(1, rel=0.02)
    assert (untouched.ceiling, untouched.at[-1].wait_ns) == (0, 0)
    assert found.validation is not None
    assert found.validation.predicted == pytest.approx(1.1, rel=0.01)


def test_a_census_without_a_trace_is_refused(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="kept no trace"):
        model.predict(
            census(line(A), instructions=1000),
            dump({1: thread(100_000)}, {}),
            times([sample(160)] * 5, [1.0] * 5),
            cost(),
            settings=settings,
            log=tmp_path / "log",
        )


@pytest.mark.parametrize("name", ["replay", "handover"])
def test_our_c_compiles_without_a_warning(name: str, settings: Settings, tmp_path: Path) -> None:
    flags = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-pthread", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
    source = Path(model.__file__).with_name(f"{name}.c")
    process.run([settings.cc, *flags, source, "-lm", "-o", tmp_path / name], what=name, log=tmp_path / "log")
