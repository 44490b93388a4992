"""Record a workload on one interpreter with Linux's perf: from samples of the processors' time to folded stacks.

perf's event ``cpu-clock`` is a timer, so it works in virtual machines that have no hardware counters.  The interpreter
runs with ``-X perf_jit``: it tells perf of a piece of code for each Python function, with the information that finds
the caller, so that the stacks hold Python frames without an interpreter that was built for it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ftnumpy import prerequisites, process
from ftnumpy.errors import BuildError, CommandFailed
from ftnumpy.flames.stacks import Folded, fold
from ftnumpy.prerequisites import Need
from ftnumpy.scaling import workloads
from ftnumpy.scaling.workloads import Workload
from ftnumpy.settings import Settings

PERF = Need(
    name="perf",
    why="samples of where threads spend their time; on Ubuntu its package may be linux-tools-generic",
    packages=("linux-perf", "perf", "perf", "perf", "perf"),
    command="perf",
)
SAMPLES = 251  # a second and thread; not a round number, so that nothing beats with it
STACK = 16384  # bytes of each thread's stack that a sample holds
UNITS = 1000  # of the workload, before it starts again
PATIENCE = 300.0  # seconds for each of perf's own steps
WORKER = Path(__file__).with_name("worker.py")
DUMPS = Path("/tmp")  # where the interpreter writes what perf is told, whatever TMPDIR says


def record(
    python: Path,
    workload: Workload,
    *,
    threads: int,
    seconds: float,
    environment: Mapping[str, str],
    settings: Settings,
    log: Path,
) -> Folded:
    """The stacks of ``threads`` threads that repeat ``workload`` for ``seconds`` in ``python``.

    Raises `PrerequisiteError` without perf, `CommandFailed` where perf can't sample, and `BuildError` when no sample
    has the workload in its stack.
    """
    prerequisites.raise_for_missing(prerequisites.check(settings, [PERF]))
    settings.work.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="flames-", dir=settings.work))
    try:
        job = {
            "program": workloads.program(workload),
            "threads": threads,
            "units": UNITS,
            "seconds": seconds,
            "pid": str(work / "pid"),
        }
        (work / "job.json").write_text(json.dumps(job), encoding="utf-8")
        # perf keeps copies of what it saw in the home folder.
        variables = {**environment, "HOME": str(work)}
        script = _perf(python, work, variables, threads * seconds, log)
        with script.open(encoding="utf-8", errors="replace") as lines:
            found = fold(lines)
    finally:
        _clear(work)
    if not found.counts:
        raise BuildError(f"perf saw {found.samples} samples, none of them of the workload (log: {log})")
    return found


def _perf(python: Path, work: Path, variables: Mapping[str, str], seconds: float, log: Path) -> Path:
    """Record, add what the interpreter wrote of its Python functions, and write the samples as text."""
    raw, whole, script = (work / name for name in ("raw.data", "whole.data", "script"))
    process.run(
        [
            *("perf", "record", "--quiet", "-o", raw, "-e", "cpu-clock", "-F", str(SAMPLES), "-k", "CLOCK_MONOTONIC"),
            *("--call-graph", f"dwarf,{STACK}", "--", python, "-X", "perf_jit", WORKER, work / "job.json"),
        ],
        what="record",
        log=log,
        env=variables,
        timeout=seconds + PATIENCE,
    )
    process.run(
        ["perf", "inject", "--jit", "-i", raw, "-o", whole],
        what="add the Python functions",
        log=log,
        env=variables,
        timeout=PATIENCE,
    )
    with script.open("wb") as out, log.open("ab") as sink:
        status = subprocess.run(
            ["perf", "script", "--no-inline", "-F", "tid,ip,sym,dso", "-i", whole],
            stdout=out,
            stderr=sink,
            env=dict(variables),
            check=False,
        ).returncode
    if status != 0:
        raise CommandFailed("perf script", f"exit status {status}", log, process.last_lines(log))
    return script


def _clear(work: Path) -> None:
    """Remove ``work``, and what the interpreter and perf wrote elsewhere about the process of ours."""
    if (work / "pid").exists():
        pid = (work / "pid").read_text(encoding="utf-8")
        for file in [DUMPS / f"jit-{pid}.dump", *DUMPS.glob(f"jitted-{pid}-*.so")]:
            file.unlink(missing_ok=True)
    shutil.rmtree(work, ignore_errors=True)
