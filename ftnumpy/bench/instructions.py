"""Instructions of a benchmark's calls, by valgrind's callgrind: the same from run to run, however busy the machine.

Callgrind writes its counts down, and begins anew, whenever the worker makes a mark (`worker`): the count at the second
mark of a request is that of its timed calls, and of a little around them.  So each benchmark is asked for one call and
for N more than one, and the difference is N calls.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import console
from ftnumpy.bench import workers
from ftnumpy.bench.workers import Worker
from ftnumpy.environment import Environment
from ftnumpy.errors import BuildError, PrerequisiteError

MARK = "getpgrp"
FEW = 4  # calls that tell how many are enough
ENOUGH = 5_000_000  # instructions of all calls: what an allocator or a collector does now and then is then in both


def require() -> None:
    """Raises `PrerequisiteError` where valgrind is missing."""
    if shutil.which("valgrind") is None:
        raise PrerequisiteError(
            "valgrind is missing, which counts instructions where the clock can't decide; "
            "install it (package valgrind on Debian and Ubuntu)"
        )


def count(sides: Sequence[Environment], benchmarks: Path, names: Sequence[str], log: Path) -> list[dict[str, float]]:
    """Instructions per call of each benchmark in ``names``, on each of ``sides``; of what asv times in a fresh
    interpreter, once.  The sides run at the same time: no count depends on what else the machine does."""
    found: list[dict[str, float]] = [{} for _ in sides]
    with console.counter("counted", len(names)) as progress:
        with _counters(sides, benchmarks, log) as counters:
            for name in names:
                if not is_fresh(name):
                    for kept, each in zip(found, _per_call(counters, name), strict=True):
                        kept[name] = each
                    progress.update(progress.task_ids[0], advance=1)
        for name in filter(is_fresh, names):
            with _counters(sides, benchmarks, log) as counters:
                for kept, each in zip(found, _totals(counters, name, 0), strict=True):
                    kept[name] = each
            progress.update(progress.task_ids[0], advance=1)
    return found


def is_fresh(name: str) -> bool:
    """Whether asv times this benchmark in an interpreter of its own."""
    return name.rpartition(".")[2].startswith("timeraw_")


@dataclass
class Counter:
    """A worker under callgrind, which writes into ``folder``; it has made ``marks`` so far."""

    worker: Worker
    folder: Path
    marks: int = 0


def _per_call(counters: Sequence[Counter], name: str) -> list[float]:
    around = _totals(counters, name, 1)
    found = _differences(around, _totals(counters, name, 1 + FEW), FEW)
    number = round(ENOUGH / max(1.0, min(found)))
    return found if number <= FEW else _differences(around, _totals(counters, name, 1 + number), number)


def _differences(fewer: Sequence[int], more: Sequence[int], number: int) -> list[float]:
    return [(above - below) / number for below, above in zip(fewer, more, strict=True)]


def _totals(counters: Sequence[Counter], name: str, number: int) -> list[int]:
    """Instructions of ``number`` calls, and of a little around them, on each side."""
    for counter in counters:
        counter.worker.ask(name, number)
    for counter in counters:
        counter.worker.answer(name)
        counter.marks += 2
    return [total(counter.folder, counter.marks) for counter in counters]


def total(folder: Path, mark: int) -> int:
    """Instructions between the mark of this number (from 1) and the one before."""
    file = folder / f"out.{mark}"
    try:
        found = re.search(r"^totals: (\d+)$", file.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    except FileNotFoundError:
        found = None
    if found is None:
        raise BuildError(f"callgrind wrote no count to {file}; this valgrind may not know the interpreter's symbols")
    return int(found[1])


@contextmanager
def _counters(sides: Sequence[Environment], benchmarks: Path, log: Path) -> Iterator[list[Counter]]:
    with ExitStack() as running:
        counters = []
        for made in sides:
            folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="callgrind-")))
            tool = ("valgrind", "--tool=callgrind", f"--dump-before={MARK}", f"--callgrind-out-file={folder}/out")
            worker = running.enter_context(workers.started(made, benchmarks, log, under=tool))
            counters.append(Counter(worker, folder))
        yield counters
