"""What a scaling run's tables say, as text in rows: for the console and for docs/performance.md alike."""

from __future__ import annotations

from collections.abc import Sequence

from ftnumpy.census.grids import Grid
from ftnumpy.census.timing import Spread
from ftnumpy.scaling.decay import Result
from ftnumpy.scaling.findings import Findings, Program
from ftnumpy.scaling.latency import Latency
from ftnumpy.scaling.series import CONTROL, PROCESSES


def short(found: Findings) -> list[Grid]:
    """What tells the whole in short: by class, not by workload."""
    return [
        decays(found, found.classes, "class"),
        gains(found, found.classes, "class"),
        *(program(found, each) for each in found.programs),
        *([latencies(found.latencies)] if found.latencies else []),
        facts(found),
    ]


def decays(found: Findings, results: Sequence[Result], what: str) -> Grid:
    """A row for each of ``results``, at the largest number of workers."""
    modes = (*found.variants, PROCESSES)
    return Grid(
        title=f"decay at {found.most} workers, by {what}",
        columns=(what, *modes, CONTROL, *(f"{mode}, relative" for mode in modes)),
        words=frozenset((0,)),
        rows=tuple(
            (
                result.name,
                *(percent(result.at(mode, found.most).decay) for mode in (*modes, CONTROL)),
                *(percent(result.at(mode, found.most).relative) for mode in modes),
            )
            for result in results
        ),
        notes=(
            f"decay: one minus throughput per worker with {found.most} workers over that with 1; relative: the same "
            "over the control's, threads that compute in registers. Median and quartiles of "
            f"{_count(results)}, each of neighbouring runs.",
        ),
    )


def gains(found: Findings, results: Sequence[Result], what: str) -> Grid:
    """What the second variant does over the first, and both over one thread of the first, in a row for each result."""
    before, after, most = found.before, found.after, found.most
    return Grid(
        title=f"throughput: {after} over {before}; and {most} workers over 1 thread of {before}; by {what}",
        columns=(
            what,
            "1 thread",
            f"{most} threads",
            *(f"{most} of {mode} / 1" for mode in (*found.variants, PROCESSES)),
        ),
        words=frozenset((0,)),
        rows=tuple(
            (
                result.name,
                ratio(result.at(after, 1).gain),
                ratio(result.at(after, most).gain),
                *(ratio(result.at(mode, most).speedup) for mode in (*found.variants, PROCESSES)),
            )
            for result in results
        ),
        notes=(f"Median and quartiles of {_count(results)}, each of neighbouring runs.",),
    )


def throughputs(found: Findings, results: Sequence[Result]) -> Grid:
    """Units per second and worker of each workload, with one worker and with the most."""
    cases = [(mode, count) for mode in (*found.variants, PROCESSES) for count in sorted({1, found.most})]
    return Grid(
        title="throughput per worker, units a second, by workload",
        columns=("workload", *(f"{mode}, {count}" for mode, count in cases)),
        words=frozenset((0,)),
        rows=tuple(
            (result.name, *(f"{result.at(*case).throughput.median:,.0f}" for case in cases)) for result in results
        ),
        notes=(f"Medians of {_count(results)}; compare them by the ratios above, which are made within rounds.",),
    )


def _count(results: Sequence[Result]) -> str:
    counts = sorted({result.rounds for result in results})
    return f"{counts[0]} rounds" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} rounds"


def program(found: Findings, whole: Program) -> Grid:
    """How long a program takes, by number of workers."""
    modes = (*found.variants, PROCESSES)
    return Grid(
        title=f"{whole.name}: seconds",
        columns=("workers", *modes),
        words=frozenset(),
        rows=tuple((str(count), *(f"{whole.seconds(mode, count):.1f}" for mode in modes)) for count in found.workers),
        notes=(f"{whole.about}; {_extent(whole)}, in parts that took turns with the other cases'",),
    )


def _extent(whole: Program) -> str:
    done, total = whole.times[0].units, whole.times[0].total
    return (
        "run whole" if done == total else f"only {done:,} of the {total:,} arrays were run: more launches do the rest"
    )


def latencies(found: Sequence[Latency]) -> Grid:
    """Median, p99 and the longest of single units, each without a collection and with one running."""
    cases: dict[tuple[str, str], dict[bool, Latency]] = {}
    for each in found:
        cases.setdefault((each.workload, each.variant), {})[each.collecting] = each
    workers = found[0].workers
    return Grid(
        title=f"time of a unit in µs, {workers} {'thread' if workers == 1 else 'threads'}; GC: another thread collects",
        columns=("workload", "variant", "median", "p99", "max", "median, GC", "p99, GC", "max, GC", "a collection, ms"),
        words=frozenset((0, 1)),
        rows=tuple(
            (
                *case,
                *(
                    micro(value)
                    for collecting in (False, True)
                    for value in (by[collecting].median, by[collecting].p99, by[collecting].max)
                ),
                f"{by[True].collection_ms:.1f}",
            )
            for case, by in cases.items()
        ),
    )


def facts(found: Findings) -> Grid:
    """What the figures were measured on and with."""
    return Grid(
        title="measured",
        columns=("what", "value"),
        words=frozenset((0, 1)),
        rows=(
            ("command", found.command),
            ("from, to", f"{found.begun}, {found.ended}"),
            ("machine", found.machine),
            ("processors used, in order", ", ".join(map(str, found.processors))),
            *found.variants.items(),
            (PROCESSES, f"of {found.before}, one thread each"),
            ("rounds", f"{found.rounds}, over {found.launches} launches of new processes"),
            ("highest load at a launch's start", f"{found.load:.1f}"),
            ("highest share of time that a hypervisor took", f"{found.stolen:.1%}"),
            *(("missing", what) for what in found.missing),
        ),
    )


def percent(spread: Spread) -> str:
    """``12% (9 to 15)``"""
    median, low, high = (round(100 * value) for value in (spread.median, spread.low, spread.high))
    return f"{median}% ({low} to {high})"


def ratio(spread: Spread) -> str:
    """``1.53 (1.48 to 1.60)``"""
    return f"{spread.median:.2f} ({spread.low:.2f} to {spread.high:.2f})"


def micro(nanoseconds: float) -> str:
    """In µs, with as many decimals as tell something."""
    value = nanoseconds / 1000
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
