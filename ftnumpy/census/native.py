"""A workload on the machine itself: what the clock and the kernel say of it, without QEMU.

    times = native.take_times(workload, python, threads=2, settings=settings, log=log)
    found = native.count(workload, python, times, threads=2, settings=settings, log=log)

Wall clock on a shared machine is noise, so the numbers of threads, and a control that only computes in registers, take
turns within a fraction of a second; one process differs from another of the same program by several percent, so every
few rounds have a new one; and every figure has its spread.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import compiler, process
from ftnumpy.census import handover, tracing
from ftnumpy.census.timing import Call, Native, Spread
from ftnumpy.census.tracing import Traced
from ftnumpy.census.workloads import Workload
from ftnumpy.errors import CommandFailed
from ftnumpy.settings import Settings

RACE = Path(__file__).with_name("guest") / "race.py"
SECONDS = 0.02  # what a window should take: long beside the start of threads, short beside a time slice
LAUNCHES = 3  # of new processes
ROUNDS = 10  # with each of them
WARM_UP = 50  # iterations
MOST_ITERATIONS = 10_000_000
TRACED_ITERATIONS = 2000
PROGRAM_RUNS = 3
TIMEOUT = 600.0  # seconds for a whole program


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Means over the threads of one run, per iteration; of a whole program, of the program.

    ``queued_ns`` is the time that a thread could have run but was given no processor; 0 where nobody knows.
    ``together`` is the share of the time in which all of them were in their windows.
    """

    together: float
    wall_ns: float
    queued_ns: float
    cpu_ns: float
    minor_faults: float
    major_faults: float
    voluntary_switches: float
    forced_switches: float


@dataclass(frozen=True, kw_only=True)
class Times:
    """Runs that took turns: samples by number of threads, one a round, and in the same rounds the ``controls``, see
    `handover.control`; none on a machine with one processor."""

    iterations: int  # per thread
    samples: Mapping[int, tuple[Sample, ...]]
    controls: tuple[float, ...]


def take_times(
    workload: Workload,
    python: Path,
    *,
    threads: int,
    settings: Settings,
    log: Path,
    launches: int = LAUNCHES,
) -> Times:
    """Run ``workload`` in the interpreter ``python`` with 1, 2 and ``threads`` threads by turns.

    1 and 2 threads are bound to the processors of `handover.pair`.  Takes about 1.3 s a launch.  Raises `CommandFailed`
    when the workload fails.
    """
    counts = sorted({1, 2, threads})
    samples: dict[int, list[Sample]] = {count: [] for count in counts}
    controls: list[float] = []
    iterations = 0
    for launch in range(launches):
        with _racer(python, settings, log) as racer:
            iterations = iterations or _calibrate(racer, workload, log)
            # Who goes first changes from launch to launch.
            order = counts if launch % 2 else counts[::-1]
            for _ in range(ROUNDS):
                for count in order:
                    samples[count].append(_race(racer, workload, count, iterations, log))
                if handover.processors() > 1:
                    controls.append(handover.control(settings, log))
    return Times(
        iterations=iterations,
        samples={count: tuple(found) for count, found in samples.items()},
        controls=tuple(controls),
    )


def count(
    workload: Workload,
    python: Path,
    times: Times,
    *,
    threads: int,
    settings: Settings,
    log: Path,
) -> Native:
    """What ``times`` says of ``threads`` threads, and the system calls of one more run under a tracer."""
    iterations = min(times.iterations, TRACED_ITERATIONS)
    command: list[str | Path] = [python, RACE, _request(workload, threads, iterations)]
    traced = tracing.trace(command, environment(settings), settings, log, windows=True)
    return _native(
        times.samples[threads],
        traced,
        threads=threads,
        iterations=times.iterations,
        traced_iterations=iterations,
        share=threads * iterations,
    )


def count_program(program: Sequence[str], python: Path, *, threads: int, settings: Settings, log: Path) -> Native:
    """The same of a whole program (a Python file and its arguments), all threads together, from its start to its end:
    figures per run.

    ``threads`` is how many the census counted.  Times, faults and switches include those of child processes.  There is
    nothing to say about other numbers of threads.  Raises `CommandFailed` when the program fails.
    """
    command: list[str | Path] = [python, *program]
    samples = [_run_whole(command, settings, log) for _ in range(PROGRAM_RUNS)]
    traced = tracing.trace(command, environment(settings), settings, log, windows=False)
    return _native(samples, traced, threads=threads, iterations=1, traced_iterations=1, share=1)


def environment(settings: Settings) -> dict[str, str]:
    """The whole environment of a native run: as under the census, but that windows count nothing."""
    clean = {name: value for name, value in compiler.clean_environment().items() if not name.startswith("PYTHON")}
    return clean | {"OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PYTHONPATH": str(settings.root)}


def _native(
    samples: Sequence[Sample], traced: Traced, *, threads: int, iterations: int, traced_iterations: int, share: int
) -> Native:
    """``share`` is among how many iterations of how many threads the traced calls are divided."""
    calls = sorted(
        (Call(name=name, detail=detail, count=found / share) for (name, detail), found in traced.counts.items()),
        key=lambda call: (-call.count, call.name, call.detail),
    )

    def spread(field: str) -> Spread:
        return Spread.of([getattr(sample, field) for sample in samples])

    return Native(
        threads=threads,
        iterations=iterations,
        rounds=len(samples),
        wall_ns=Spread.of([sample.wall_ns - sample.queued_ns for sample in samples]),
        cpu_ns=spread("cpu_ns"),
        minor_faults=spread("minor_faults"),
        major_faults=spread("major_faults"),
        voluntary_switches=spread("voluntary_switches"),
        forced_switches=spread("forced_switches"),
        tracer=traced.tracer,
        traced_iterations=traced_iterations,
        calls=tuple(calls),
        missing=traced.missing,
    )


def _request(workload: Workload, threads: int, iterations: int) -> str:
    return json.dumps(
        {
            "name": workload.name,
            "setup": workload.setup,
            "statement": workload.statement,
            "threads": threads,
            "iterations": iterations,
            "warm_up": WARM_UP,
        }
    )


@contextmanager
def _racer(python: Path, settings: Settings, log: Path) -> Iterator[subprocess.Popen[str]]:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as sink:
        child = subprocess.Popen(
            [python, RACE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
            env=environment(settings),
        )
        try:
            yield child
        finally:
            child.kill()
            child.communicate()


def _calibrate(racer: subprocess.Popen[str], workload: Workload, log: Path) -> int:
    """How many iterations take one thread about `SECONDS`."""
    iterations = 1
    while iterations < MOST_ITERATIONS:
        took = _race(racer, workload, 1, iterations, log).cpu_ns * iterations / 1e9
        if took >= SECONDS / 4:
            return max(1, round(iterations * SECONDS / took))
        iterations *= 8
    return MOST_ITERATIONS


def _race(racer: subprocess.Popen[str], workload: Workload, threads: int, iterations: int, log: Path) -> Sample:
    """The answer to one request."""
    assert racer.stdin is not None
    assert racer.stdout is not None
    if threads <= 2 <= handover.processors():
        # Threads inherit this from the one that makes them.
        os.sched_setaffinity(racer.pid, handover.pair())
    else:
        os.sched_setaffinity(racer.pid, os.sched_getaffinity(0))
    try:
        racer.stdin.write(_request(workload, threads, iterations) + "\n")
        racer.stdin.flush()
        answer = racer.stdout.readline()
    except BrokenPipeError:
        answer = ""
    if not answer:
        raise CommandFailed(f"native run of {workload.name}", "it ended early", log, process.last_lines(log))
    return mean(json.loads(answer), iterations)


def mean(windows: Sequence[Sequence[float]], iterations: int) -> Sample:
    """Over ``windows`` as race.py answers them, per iteration."""
    opened, *rest = zip(*windows, strict=True)
    closed = [start + wall for start, wall in zip(opened, rest[0], strict=True)]
    wall, queued, cpu, minor, major, voluntary, forced = (sum(column) / len(windows) for column in rest)
    return Sample(
        together=max(0.0, min(closed) - max(opened)) / wall,
        wall_ns=wall / iterations,
        queued_ns=queued / iterations,
        cpu_ns=cpu / iterations,
        minor_faults=minor / iterations,
        major_faults=major / iterations,
        voluntary_switches=voluntary / iterations,
        forced_switches=forced / iterations,
    )


def _run_whole(command: Sequence[str | Path], settings: Settings, log: Path) -> Sample:
    """One process from its start to its end."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter_ns()
    process.run(command, what="native run", log=log, env=environment(settings), timeout=TIMEOUT)
    wall, after = time.perf_counter_ns() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Sample(
        together=1,
        wall_ns=wall,
        queued_ns=0,
        cpu_ns=(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e9,
        minor_faults=after.ru_minflt - before.ru_minflt,
        major_faults=after.ru_majflt - before.ru_majflt,
        voluntary_switches=after.ru_nvcsw - before.ru_nvcsw,
        forced_switches=after.ru_nivcsw - before.ru_nivcsw,
    )
