"""The article's kernel on stock and patched, side by side: what a second worker costs, and what one thread gains.

Wall clock on a shared machine is noise, so nothing is compared across time: the variants take turns within a fraction
of a second, and every figure is the median of the ratios of neighbouring runs.  One process differs from another of the
same program by several percent, by where its memory happens to lie; so every few rounds have new processes.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from ftnumpy import environment, suites
from ftnumpy.census import report, table
from ftnumpy.census.grids import Grid
from ftnumpy.console import Summary
from ftnumpy.environment import Environment
from ftnumpy.errors import BuildError
from ftnumpy.options import Options
from ftnumpy.settings import Settings
from ftnumpy.stack import PATCHED, STOCK, Stack

SIZES = (10, 500)  # elements of each worker's array
LOOPS = 50  # the article's larger n_loop
SECONDS = 0.2  # what one run of one worker should take
LAUNCHES = 12  # of new processes
ROUNDS = 4  # with each of them
CASES = (("main", 0, 1), ("1", 1, 1), ("2 threads", 2, 1), ("2 processes", 1, 2))  # name, threads, processes
WORKER = Path(__file__).with_name("kernel_worker.py")


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """Median and quartiles of the ratios of neighbouring runs."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


def ratio(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """Of two equally long series of seconds, run by run."""
    low, median, high = statistics.quantiles([a / b for a, b in zip(above, below, strict=True)], n=4)
    return Ratio(median=median, low=low, high=high)


def run(stack: Stack, settings: Settings, options: Options, summary: Summary) -> str:
    """Build what is missing, time, and return where the seconds are kept.  Shows the table of ratios."""
    made = {
        variant.name: environment.user_environment(stack, settings, replace(options, variant=variant), summary)
        for variant in (STOCK, PATCHED)
    }
    seconds: dict[str, dict[str, list[float]]] = {}
    for size in SIZES:
        with summary.step(f"kernel, {size} elements"):
            seconds[str(size)] = measure(made, size, options.logs / "kernel.log")
    table.show(ratios(seconds))
    kept = file(settings)
    kept.parent.mkdir(parents=True, exist_ok=True)
    report.write(kept, json.dumps({"loops": LOOPS, "seconds": seconds}, indent=1) + "\n")
    return f"\nseconds of every run: {kept}"


def file(settings: Settings) -> Path:
    """Where the last run's seconds are kept: by number of elements, then as `measure` returns them."""
    return settings.root / ".build" / "kernel" / "times.json"


def measure(made: Mapping[str, Environment], size: int, log: Path) -> dict[str, list[float]]:
    """Seconds by ``variant case``, in the order of time.

    The cases: the ``main`` thread alone, ``1`` other thread, ``2 threads``, ``2 processes`` of one thread each.
    """
    seconds: dict[str, list[float]] = {}
    calls = 0
    for launch in range(LAUNCHES):
        with ExitStack() as running, log.open("ab") as sink:
            pairs = {name: [running.enter_context(_worker(env, sink)) for _ in range(2)] for name, env in made.items()}
            calls = calls or _calibrate(pairs[STOCK.name][:1], log, size)
            # Who goes first changes from launch to launch.
            order = list(pairs) if launch % 2 else list(reversed(pairs))
            for _ in range(ROUNDS):
                for case, threads, processes in CASES:
                    for name in order:
                        took = _ask(pairs[name][:processes], log, threads=threads, size=size, calls=calls)
                        seconds.setdefault(f"{name} {case}", []).append(took)
    return seconds


def _calibrate(worker: Sequence[subprocess.Popen[str]], log: Path, size: int) -> int:
    """How many calls of the kernel take about `SECONDS`."""
    calls = 1
    while (took := _ask(worker, log, size=size, calls=calls)) < SECONDS / 4:
        calls *= 2
    return max(1, round(calls * SECONDS / took))


@contextmanager
def _worker(made: Environment, sink: IO[bytes]) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [made.python, WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=sink,
        text=True,
        env=suites.tests_variables(made) | {"OPENBLAS_NUM_THREADS": "1"},
    )
    try:
        yield child
    finally:
        child.kill()
        child.wait()


def _ask(workers: Sequence[subprocess.Popen[str]], log: Path, *, threads: int = 1, size: int, calls: int) -> float:
    """Seconds until the last of ``workers``, started together, is done."""
    request = json.dumps({"threads": threads, "size": size, "calls": calls, "loops": LOOPS})
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(request + "\n")
        worker.stdin.flush()
    answers = []
    for worker in workers:
        assert worker.stdout is not None
        answer = worker.stdout.readline()
        if not answer:
            raise BuildError(f"a process that ran the kernel ended before it answered; the log says why: {log}")
        answers.append(float(json.loads(answer)))
    return max(answers)


def ratios(seconds: Mapping[str, Mapping[str, Sequence[float]]]) -> Grid:
    """What the runs of each size (``seconds`` by number of elements) say, a row for each question."""
    runs = len(next(iter(seconds.values()))["stock 1"])
    return Grid(
        title=f"times of the article's kernel as ratios, median and quartiles of {runs} runs",
        columns=("", *(f"{size} elements" for size in seconds)),
        words=frozenset((0,)),
        rows=tuple(
            (heading, *(str(ratio(of_size[above], of_size[below])) for of_size in seconds.values()))
            for heading, above, below in (
                ("stock, 2 threads / 1", "stock 2 threads", "stock 1"),
                ("patched, 2 threads / 1", "patched 2 threads", "patched 1"),
                ("stock, 2 processes / 1", "stock 2 processes", "stock 1"),
                ("patched, 2 processes / 1", "patched 2 processes", "patched 1"),
                ("patched / stock, main thread alone", "patched main", "stock main"),
                ("patched / stock, 1 thread", "patched 1", "stock 1"),
                ("patched / stock, 2 threads", "patched 2 threads", "stock 2 threads"),
            )
        ),
    )
