"""The raw results of one workload as data, and as a file that a later run goes on with."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ftnumpy.census import report
from ftnumpy.errors import UsageError

FORMAT = 1

PROCESSES = "processes"
CONTROL = "control"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One run: ``workers`` did ``units`` in all, from the unit ``first`` on; ``seconds`` are each worker's, from the
    moment when all began to its own end.  ``mode`` is the variant that the threads ran on, `PROCESSES`, or `CONTROL`:
    threads that share nothing and touch no memory."""

    round: int
    mode: str
    workers: int
    first: int
    units: int
    seconds: tuple[float, ...]

    @property
    def wall(self) -> float:
        return max(self.seconds)

    @property
    def throughput(self) -> float:
        """Units per second and worker, until the last worker was done."""
        return self.units / self.workers / self.wall


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What new processes measured: ``started`` in UTC, the machine's ``load`` then, ``stolen`` the share of its
    processors' time that the hypervisor gave to others meanwhile."""

    started: str
    load: float
    stolen: float
    samples: tuple[Sample, ...]


@dataclass(frozen=True, kw_only=True)
class Series:
    """All runs of a workload.  ``key`` is the hash of what must be the same for runs to belong together; ``units`` is
    what a worker does in a run, or, of a whole program, what all do together."""

    workload: str
    task: str
    key: str
    units: int
    launches: tuple[Launch, ...]


def save(series: Series, path: Path) -> None:
    """Write ``series`` as JSON, whole or not at all."""
    report.write(path, json.dumps({"format": FORMAT} | asdict(series)) + "\n")


def load(path: Path) -> Series:
    """The series that `save` wrote to ``path``.  Raises `UsageError` when the file is none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.pop("format") != FORMAT:
            raise UsageError(f"{path} has another format; remove it, and what it holds is measured again")
        found: Series = report.read(Series, data)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(f"{path} does not hold a scaling run; remove it, and it is measured again") from None
    return found
