"""What a report says in tables, as text in rows: made once, shown by the console and by pages alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from ftnumpy.census.compare import Comparison
from ftnumpy.census.report import Report
from ftnumpy.census.shares import shares
from ftnumpy.census.tally import Census
from ftnumpy.census.timing import Native, Prediction, Spread, Validation
from ftnumpy.census.wording import chain, figure, per, sharing, writer


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table of text.  The columns of ``words`` hold words, the others figures; ``sums`` are rows that close it, and
    ``notes`` are sentences that belong to it."""

    title: str
    columns: tuple[str, ...]
    words: frozenset[int]
    rows: tuple[tuple[str, ...], ...]
    sums: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


def lines(census: Census) -> Grid:
    """The shared written lines, busiest first."""
    return Grid(
        title=f"{census.workload}, {census.variant}, {census.threads} threads: writes to shared lines, {per(census)}",
        columns=("object", "locked", "plain", "reads", "bursts", "threads", "sharing", "most writes by"),
        words=frozenset((0, 6, 7)),
        rows=tuple(
            (
                line.name,
                *(figure(count) for count in (line.locked, line.plain, line.reads, line.bursts, line.threads)),
                sharing(line),
                writer(line),
            )
            for line in census.lines
        ),
        sums=(("sum", figure(census.locked), figure(census.plain), "", "", "", "", ""),),
    )


def besides(found: Report) -> tuple[Grid, ...]:
    """What is known of a workload besides its lines: system calls, the native run, the model; what there is of it."""
    return (
        *([syscalls(found.census)] if found.census.syscalls else []),
        *([native(found.native)] if found.native else []),
        *([points(found.prediction), costs(found.prediction), inputs(found.prediction)] if found.prediction else []),
    )


def overview(censuses: Iterable[Census]) -> Grid:
    """One row for each workload."""
    found = tuple(censuses)
    return Grid(
        title=f"writes to shared lines, {per(found[0])}",
        columns=("workload", "locked", "plain", "lines", "instructions", "most locked writes to"),
        words=frozenset((0, 5)),
        rows=tuple(
            (
                census.workload,
                figure(census.locked),
                figure(census.plain),
                figure(len(census.lines)),
                figure(census.instructions),
                ", ".join(f"{share.name} {figure(share.locked)}" for share in shares(census)[:3] if share.locked),
            )
            for census in found
        ),
        sums=(
            (
                "sum",
                figure(sum(census.locked for census in found)),
                figure(sum(census.plain for census in found)),
                "",
                "",
                "",
            ),
        ),
    )


def comparison(found: Comparison) -> Grid:
    """Each object's locked writes in each census, plain ones in brackets."""
    return Grid(
        title=f"{found.workload}: locked writes to shared lines (and plain ones), {per(found.censuses[0])}",
        columns=("object", *found.labels, "most writes by"),
        words=frozenset((0, 1 + len(found.labels))),
        rows=tuple(
            (
                row.name,
                *(_both(row.locked(at), row.plain(at)) for at in range(len(found.labels))),
                next(writer(share.lines[0]) for share in row.shares if share),
            )
            for row in found.rows
        ),
        sums=(
            ("sum", *(_both(census.locked, census.plain) for census in found.censuses), ""),
            ("instructions", *(figure(census.instructions) for census in found.censuses), ""),
        ),
        notes=tuple(f"{label}: {_made_of(census)}" for label, census in zip(found.labels, found.censuses, strict=True)),
    )


def _made_of(census: Census) -> str:
    numpy = f", NumPy {census.numpy}" if census.numpy else ""
    return f"{census.variant}, {census.threads} threads, Python {census.python}{numpy}"


def comparisons(found: Sequence[Comparison]) -> Grid:
    """One row for each workload: locked and plain writes of all objects together."""
    censuses = [each.censuses for each in found]
    return Grid(
        title=f"locked writes to shared lines (and plain ones), {per(censuses[0][0])}",
        columns=("workload", *found[0].labels),
        words=frozenset((0,)),
        rows=tuple(
            (each.workload, *(_both(census.locked, census.plain) for census in each.censuses)) for each in found
        ),
        sums=(
            (
                "sum",
                *(
                    _both(sum(census.locked for census in column), sum(census.plain for census in column))
                    for column in zip(*censuses, strict=True)
                ),
            ),
        ),
    )


def _both(locked: float, plain: float) -> str:
    """``16``, ``4 (+2)`` with 2 plain writes."""
    return f"{figure(locked)} (+{figure(plain)})" if plain else figure(locked)


def syscalls(census: Census) -> Grid:
    """The system calls that were counted along with the writes, with who made most of each."""
    return Grid(
        title=f"system calls under QEMU, {per(census)}",
        columns=("call", "count", "most by"),
        words=frozenset((0, 2)),
        rows=tuple(
            (f"{call.name} {call.detail}".strip(), figure(call.count), chain(call.frames)) for call in census.syscalls
        ),
    )


def native(found: Native) -> Grid:
    """A run on the machine itself: times, faults, switches, system calls."""
    spreads = (
        ("time, ns", found.wall_ns),
        ("processor time, ns", found.cpu_ns),
        ("page faults", found.minor_faults),
        ("page faults that waited for a disk", found.major_faults),
        ("switches because the thread waited", found.voluntary_switches),
        ("switches forced by the kernel", found.forced_switches),
    )
    traced = f" (under {found.tracer})" if found.tracer else ""
    whole = "per iteration and thread" if found.iterations > 1 else "from start to end, all together"
    return Grid(
        title=f"native run, {found.threads} threads, {whole}: median and quartiles of {found.rounds} runs",
        columns=("what", "figure"),
        words=frozenset((0,)),
        rows=(
            *((name, spread(value)) for name, value in spreads),
            *((f"{call.name} {call.detail}".strip() + traced, figure(call.count)) for call in found.calls),
        ),
        notes=tuple(f"missing: {what}" for what in found.missing),
    )


def points(found: Prediction) -> Grid:
    """The model's speed at each number of cores, and how it compares with the clock."""
    return Grid(
        title=f"{found.label}: what more cores would do, one thread each",
        columns=("cores", "iterations per second", "speed-up", "waiting, ns an iteration", "moves of lines"),
        words=frozenset(),
        rows=tuple(
            (
                str(point.cores),
                figure(round(point.iterations_per_second)),
                figure(point.speedup),
                figure(round(point.wait_ns)),
                figure(point.transfers),
            )
            for point in found.points
        ),
        notes=(
            *([validation(found.validation)] if found.validation else []),
            *(f"missing: {what}" for what in found.missing),
        ),
    )


def inputs(found: Prediction) -> Grid:
    """All that the model is made of."""
    return Grid(
        title=f"{found.label}: what it is made of",
        columns=("input", "value"),
        words=frozenset((0,)),
        rows=tuple((name.replace("_", " "), figure(value)) for name, value in asdict(found.inputs).items()),
        notes=(f"measured between processors {' and '.join(map(str, found.handover.cpus))}",),
    )


def costs(found: Prediction) -> Grid:
    """What each line costs in the model, at each number of cores; one alone never waits."""
    cores = [point.cores for point in found.points[1:]]
    return Grid(
        title=f"{found.label}: ns an iteration that a core waits for each line",
        columns=("line", "sharing", *(f"{count} cores" for count in cores), "in use", "at most, iterations per second"),
        words=frozenset((0, 1)),
        rows=tuple(
            (
                line.name,
                sharing(line),
                *(figure(round(at.wait_ns)) for at in line.at[1:]),
                f"{line.at[-1].busy:.0%}" if line.at else "",
                figure(round(line.ceiling)) if line.ceiling else "",
            )
            for line in found.lines
        ),
    )


def validation(found: Validation) -> str:
    """The model beside the clock, as a sentence."""
    return (
        f"at 2 threads an iteration takes {figure(found.predicted)} times as long as at 1 in the model and "
        f"{spread(found.measured)} times by the clock ({found.off:+.0%}; {found.rounds} rounds; a loop in registers: "
        f"{spread(found.control)})"
    )


def spread(found: Spread) -> str:
    """Median with quartiles, or the one value."""
    if found.low == found.high:
        return figure(found.median)
    return f"{figure(found.median)} ({figure(found.low)} to {figure(found.high)})"
