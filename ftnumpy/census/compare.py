"""Censuses of one workload side by side: what each object costs in one and in the others.

Rows are objects, not lines: a line's name tells everything written in it, and changes when a neighbour goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ftnumpy.census.shares import Share, shares
from ftnumpy.census.tally import Census
from ftnumpy.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Row:
    """An object in each census of a comparison, None where it does not appear."""

    name: str
    shares: tuple[Share | None, ...]

    def locked(self, at: int) -> float:
        share = self.shares[at]
        return share.locked if share else 0.0

    def plain(self, at: int) -> float:
        share = self.shares[at]
        return share.plain if share else 0.0


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """``censuses`` of one workload, ``labels`` to tell them apart, and one row per object, in the order of what the
    first census has most of."""

    workload: str
    labels: tuple[str, ...]
    censuses: tuple[Census, ...]
    rows: tuple[Row, ...]


def compare(labels: Sequence[str], censuses: Sequence[Census]) -> Comparison:
    """``censuses`` side by side.  Raises `UsageError` unless there are two or more, all of one workload."""
    workloads = sorted({census.workload for census in censuses})
    if len(censuses) < 2 or len(workloads) > 1:
        raise UsageError(
            f"a comparison needs two or more censuses of one workload; got {len(censuses)} of {', '.join(workloads)}"
        )
    columns = [{share.name: share for share in shares(census)} for census in censuses]
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [Row(name=name, shares=tuple(column.get(name) for column in columns)) for name in names]
    return Comparison(
        workload=workloads[0], labels=tuple(labels), censuses=tuple(censuses), rows=tuple(sorted(rows, key=_order))
    )


def _order(row: Row) -> tuple[float, ...]:
    """The first census decides, then the next: what one patch removed stands together."""
    return tuple(figure for at in range(len(row.shares)) for figure in (-row.locked(at), -row.plain(at)))
