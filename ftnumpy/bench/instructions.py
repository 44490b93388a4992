"""Instructions of a benchmark's calls, by valgrind's callgrind: the same from run to run, however busy the machine.

Callgrind writes its counts down, and begins anew, whenever the worker makes a mark (`worker`): the count at the second
mark of a request is that of its timed calls, and of a little around them.  So each benchmark is asked for twice, with N
and with 2 N calls, and the difference is N calls.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ftnumpy import console
from ftnumpy.bench import workers
from ftnumpy.bench.workers import Worker
from ftnumpy.environment import Environment
from ftnumpy.errors import BuildError, PrerequisiteError

MARK = "getpgrp"
SECONDS = 0.15  # what N calls should take under callgrind
MOST = 5000  # calls


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
        with _counted(sides, benchmarks, log) as counted:
            for at, name in enumerate(name for name in names if not is_fresh(name)):
                numbers = [max(2, min(MOST, round(SECONDS / took))) for took in _all(counted, name, [1] * len(sides))]
                _all(counted, name, numbers)
                _all(counted, name, [2 * number for number in numbers])
                for (_, folder), number, kept in zip(counted, numbers, found, strict=True):
                    # Three requests for each benchmark, two marks for each request.
                    fewer, more = total(folder, 6 * at + 4), total(folder, 6 * at + 6)
                    kept[name] = (more - fewer) / number
                progress.update(progress.task_ids[0], advance=1)
        for name in filter(is_fresh, names):
            with _counted(sides, benchmarks, log) as counted:
                _all(counted, name, [0] * len(sides))
                for (_, folder), kept in zip(counted, found, strict=True):
                    kept[name] = total(folder, 2)
            progress.update(progress.task_ids[0], advance=1)
    return found


def _all(counted: Sequence[tuple[Worker, Path]], name: str, numbers: Sequence[int]) -> list[float]:
    """Seconds of each worker, which run at the same time."""
    for (worker, _), number in zip(counted, numbers, strict=True):
        worker.ask(name, number)
    return [worker.answer(name) for worker, _ in counted]


def is_fresh(name: str) -> bool:
    """Whether asv times this benchmark in an interpreter of its own."""
    return name.rpartition(".")[2].startswith("timeraw_")


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
def _counted(sides: Sequence[Environment], benchmarks: Path, log: Path) -> Iterator[list[tuple[Worker, Path]]]:
    """A worker under callgrind for each of ``sides``, with the folder of its counts."""
    with ExitStack() as running:
        counted = []
        for made in sides:
            folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="callgrind-")))
            tool = ("valgrind", "--tool=callgrind", f"--dump-before={MARK}", f"--callgrind-out-file={folder}/out")
            counted.append((running.enter_context(workers.started(made, benchmarks, log, under=tool)), folder))
        yield counted
