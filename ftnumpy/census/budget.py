"""``census.toml``: the locked shared writes that each workload may make to each object, and what goes beyond them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import tomlfile
from ftnumpy.census.shares import Share, shares
from ftnumpy.census.tally import Census
from ftnumpy.census.wording import chain, figure
from ftnumpy.errors import UsageError

# A count is exact, but something that happens once in a window of a hundred iterations is nobody's hot path.
TOLERANCE = 0.05

Budgets = Mapping[str, Mapping[str, float]]  # workload to object to locked writes per iteration and thread


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One workload against its budget: what goes beyond it, and what stays so far below that it can be tightened."""

    exceeded: tuple[str, ...]
    loose: tuple[str, ...]


def read_budgets(file: Path, workloads: Iterable[str]) -> Budgets:
    """The budgets in ``file``: one table for each of ``workloads``, and what it does not name is not allowed at all.

    Raises `UsageError` for what can't be meant, and where a workload has no table.
    """
    data = tomlfile.read(file)
    known = set(workloads)
    for name in sorted(known ^ data.keys()):
        what = "has no table; add one, empty if it may write nothing" if name in known else "is no workload of the list"
        raise UsageError(f"{file}: {name!r} {what}")
    for name, table in data.items():
        if not isinstance(table, dict):
            raise UsageError(f"{file}: {name!r} is {table!r}; give a table of objects and the writes allowed to each")
        for thing, allowed in table.items():
            # bool is an int to Python, and a NaN would allow everything.
            if type(allowed) not in (int, float) or not 0 < allowed < float("inf"):
                raise UsageError(
                    f"{file}: {name!r} allows {thing!r} {allowed!r}; give a number of writes above 0, "
                    "or no line at all to allow none"
                )
    return data


def check(census: Census, allowed: Mapping[str, float]) -> Verdict:
    """``census`` against what is ``allowed`` to each object."""
    found = {share.name: share for share in shares(census)}
    exceeded = [
        _exceeded(census.workload, share, allowed.get(share.name, 0.0))
        for share in found.values()
        if share.locked > allowed.get(share.name, 0.0) + TOLERANCE
    ]
    loose = [
        f"{census.workload}: {name} may make {figure(limit)} locked writes and makes {figure(locked)}"
        for name, limit in allowed.items()
        if (locked := found[name].locked if name in found else 0.0) < limit - TOLERANCE
    ]
    return Verdict(exceeded=tuple(exceeded), loose=tuple(loose))


def _exceeded(workload: str, share: Share, limit: float) -> str:
    """With the place that makes most of the locked writes to the object's lines."""
    busiest = max((site for line in share.lines for site in line.sites), key=lambda site: site.locked, default=None)
    where = f", most at {chain(busiest.frames)}" if busiest else ""
    return f"{workload}: {share.name} makes {figure(share.locked)} locked shared writes, {figure(limit)} allowed{where}"
