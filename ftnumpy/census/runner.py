"""Take a census: run an interpreter under QEMU with the plugin, and make of what it leaves a `tally.Census`."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import compiler, console, process
from ftnumpy.census import count, dump, names, plugin, qemu
from ftnumpy.census.count import Subject
from ftnumpy.census.tally import Census
from ftnumpy.census.workloads import Workload
from ftnumpy.errors import BuildError, UsageError
from ftnumpy.settings import Settings

GUEST = Path(__file__).parent / "guest" / "launch.py"
WARM_UP = 30  # iterations before the counted ones
TIMEOUT = 1800.0  # seconds


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A census and the plugin's dump that it was made of, for those who want the order of the accesses."""

    census: Census
    dump: Path


def take(
    workloads: Sequence[Workload],
    program: Sequence[str],
    *,
    python: Path,
    variant: str,
    threads: int,
    iterations: int | None,
    trace: int,
    settings: Settings,
    folder: Path,
    log: Path,
) -> list[Taken]:
    """Count ``workloads``, or else ``program`` (a Python file and its arguments), with the interpreter ``python``.

    ``variant`` is the censuses' label.  Each workload is run by ``threads`` threads; a program makes its own, and is
    counted as a whole, from its second thread on, or in its windows if it has any.  ``iterations`` (per thread)
    overrides the workloads' own, and divides a program's figures.  ``trace`` keeps that many accesses of each thread
    in order (`dump.Dump.steps`).  Dumps and names stay in ``folder``, which is made; what the program prints goes to
    ``log``.  Returns a census for each workload, in order.

    Raises `PrerequisiteError` without QEMU, binutils or a compiler, `CommandFailed` when the program fails,
    `BuildError` when it ends without a dump, `UsageError` for numbers that can't be meant.
    """
    if not 1 <= threads <= 64:
        raise UsageError(f"{threads} threads can't be meant; give 1 to 64")
    if iterations is not None and iterations < 1:
        raise UsageError(f"{iterations} iterations can't be meant; give at least 1")
    started = time.monotonic()
    what = f"the census of {Path(program[0]).name if program else f'{len(workloads)} workloads'}"
    machine = qemu.find(settings)
    library = plugin.plugin(settings, machine, log)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("dump.*"):
        old.unlink()
    out = folder / "dump"
    job = folder / "job.json"
    job.write_text(json.dumps(_job(workloads, program, threads, iterations, out), indent=1) + "\n", encoding="utf-8")
    options = [str(library), f"out={out}", f"trace={trace}", *(["whole=on"] if program else [])]
    # QEMU splits at commas, and takes two for one.
    joined = ",".join(option.replace(",", ",,") for option in options)
    process.run(
        [machine.program, "-cpu", qemu.CPU, "-plugin", joined, python, GUEST, job],
        what=what,
        log=log,
        env=environment(settings),
        timeout=TIMEOUT,
    )
    if not out.with_suffix(".names").exists():
        raise BuildError(
            f"{what} ended without telling what it had used, as by os._exit; let it come to its end (log: {log})"
        )
    labels = [(workload.name, iterations or workload.iterations) for workload in workloads]
    if program:
        labels = [(Path(program[0]).name, iterations or 1)]
    found = names.read_names(out.with_suffix(".names"))
    taken, lost = [], 0
    for number, (label, times) in enumerate(labels):
        path = out.with_suffix(f".{number}")
        data = dump.read(path)
        lost += sum(thread.lost for thread in data.threads.values())
        subject = Subject(
            workload=label,
            variant=variant,
            iterations=times,
            qemu=machine.version,
            seconds=time.monotonic() - started,
        )
        memory = names.read_memory(path.with_suffix(f"{path.suffix}.memory"))
        taken.append(Taken(census=count.census(data, found, memory, subject), dump=path))
    if lost:
        console.warn(
            f"{what}: {lost} accesses could not be kept, the program touches too much memory; count less of it"
        )
    return taken


def _job(
    workloads: Sequence[Workload], program: Sequence[str], threads: int, iterations: int | None, out: Path
) -> dict[str, object]:
    """What the guest is told to do."""
    return {
        "out": str(out),
        "threads": threads,
        "program": list(program),
        "workloads": [
            {
                "name": workload.name,
                "setup": workload.setup,
                "statement": workload.statement,
                "iterations": iterations or workload.iterations,
                "warm_up": WARM_UP,
            }
            for workload in workloads
        ],
    }


def environment(settings: Settings) -> dict[str, str]:
    """Ours, without what changes how Python or NumPy behave; the same hashes and one OpenBLAS thread in every run."""
    clean = {name: value for name, value in compiler.clean_environment().items() if not name.startswith("PYTHON")}
    return clean | {
        "FTNUMPY_CENSUS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": str(settings.root),
    }
