"""Prove the plugin: a program whose census is known in advance, counted by the same QEMU and the same plugin."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import process
from ftnumpy.census import dump, plugin, qemu
from ftnumpy.errors import BuildError
from ftnumpy.settings import Settings

VARIABLES = ("split", "swapped", "constant", "guarded")  # of known_answer.c, each on a line of its own


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What all threads together did to the line of one variable.  ``true_sharing``: two touched a written word."""

    locked: int
    plain: int
    true_sharing: bool


def expected(threads: int, iterations: int) -> dict[str, Counted]:
    """The answer, from known_answer.c's first comment; ``constant`` is on no line of the census.

    The plain writes in the mutex are the C library's own business and not told.
    """
    every_tenth = (iterations + 9) // 10
    return {
        "split": Counted(locked=3 * threads * iterations, plain=threads * iterations, true_sharing=True),
        "swapped": Counted(locked=threads * iterations, plain=0, true_sharing=True),
        "guarded": Counted(locked=2 * threads * every_tenth, plain=-1, true_sharing=True),
    }


def count(settings: Settings, threads: int, iterations: int, folder: Path, log: Path) -> dict[str, Counted]:
    """The census of known_answer.c by variable, or by address for a line that it should not have.

    ``folder`` is made and keeps the dump.  Raises as `runner.take` does.
    """
    machine = qemu.find(settings)
    library = plugin.plugin(settings, machine, log)
    program = plugin.known_answer(settings, log)
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / "known-answer"
    process.run(
        [
            *(machine.program, "-cpu", qemu.CPU, "-plugin", f"{library},out={out}"),
            *(program, str(threads), str(iterations)),
        ],
        what="the program with the known answer",
        log=log,
        timeout=300,
    )
    data = dump.read(out.with_suffix(".0"))
    where = _variables(program)
    found = {}
    for line in sorted({access.word // data.line_size * data.line_size for access in data.accesses}):
        accesses = [access for access in data.accesses if access.word // data.line_size * data.line_size == line]
        name = where.get(line, hex(line))
        locked = [access for access in accesses if data.instructions[access.instruction].locked]
        total = sum(access.writes for access in locked)
        written = {access.word for access in accesses if access.writes}
        found[name] = Counted(
            locked=total,
            plain=-1 if name == "guarded" else sum(access.writes for access in accesses) - total,
            true_sharing=any(len({a.thread for a in accesses if a.word == word}) > 1 for word in written),
        )
    return found


def check(settings: Settings, folder: Path, log: Path) -> str:
    """Hold the plugin to the known answer; returns what was held.  Raises `BuildError` when a count is not exact."""
    for threads, iterations in ((2, 1000), (4, 250)):
        found, answer = count(settings, threads, iterations, folder, log), expected(threads, iterations)
        if found != answer:
            raise BuildError(
                "the census does not count right on this machine, so its figures are worth nothing: "
                f"{threads} threads, {iterations} iterations\n  found    {found}\n  expected {answer}\n"
                f"  dump in {folder}, log {log}"
            )
    return "exact"


def _variables(program: Path) -> dict[int, str]:
    """The variables' names by address."""
    rows = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.splitlines()
    symbols = (row.split() for row in rows)
    return {int(row[0], 16): row[2] for row in symbols if len(row) == 3 and row[2] in VARIABLES}
