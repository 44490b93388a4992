"""Many threads, hard: every kind of ``tests/stress`` in its own process, for a share of the time."""

from __future__ import annotations

import json
from pathlib import Path

from ftnumpy import console, environment, process, suites
from ftnumpy.console import Summary
from ftnumpy.errors import BuildError, CommandFailed, TestsFailed
from ftnumpy.options import Options
from ftnumpy.settings import Settings
from ftnumpy.stack import Stack

KINDS = (
    "kernel",
    "dispatch_cache",
    "tracemalloc_switch",
    "memory_handlers",
    "allocator",
    "forks",
    "large_arrays",
    "module_attributes",
)

PATIENCE = 120.0  # seconds; a kind that hangs ends itself before that, and says where


def run(stack: Stack, settings: Settings, options: Options, summary: Summary) -> None:
    """Every kind on the variant, a step of ``summary`` each, with its number of operations as result.

    A kind fails by a crash, a hang or a wrong result; after all have run, raises `TestsFailed`.
    """
    made = environment.test_environment(stack, settings, options, summary)
    seconds = options.minutes * 60 / len(KINDS)
    console.say(f"{len(KINDS)} kinds, {console.duration(seconds)} each, seed {options.seed}")
    total = 0
    failures: list[str] = []
    for kind in KINDS:
        log = options.logs / f"{kind}.log"
        try:
            with summary.step(f"stress: {kind.replace('_', ' ')}", log) as result:
                process.run(
                    [
                        *(made.python, settings.root / "tests" / "stress" / f"{kind}.py"),
                        *("--seconds", str(seconds), "--seed", str(options.seed)),
                    ],
                    what=f"stress: {kind}",
                    log=log,
                    cwd=options.logs,
                    env=suites.tests_variables(made),
                    timeout=3 * seconds + PATIENCE,
                )
                ops = operations(log)
                total += ops
                result.append(f"{ops:,} operations")
        except BuildError as error:
            failures.append(str(error))
    if failures:
        again = f"--minutes {options.minutes:g} --seed {options.seed} --variant {options.variant.name}"
        raise TestsFailed("\n".join([*failures, f"{len(failures)} of {len(KINDS)} kinds failed ({again})"]))
    console.say(f"{len(KINDS)} kinds passed, {total:,} operations")


def operations(log: Path) -> int:
    """The number of operations that a kind reports in the last line of ``log``.  Raises `CommandFailed`."""
    lines = process.last_lines(log)
    try:
        return int(json.loads(lines[-1])["ops"])
    except (IndexError, ValueError, TypeError, KeyError):
        raise CommandFailed("stress", "it ended well, but did not say what it did", log, lines) from None
