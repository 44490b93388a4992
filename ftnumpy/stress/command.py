"""The session ``stress``: every kind of ``tests/stress`` in its own process, for a share of the time."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from ftnumpy import console, environment, process, suites
from ftnumpy.census.report import write
from ftnumpy.console import Summary
from ftnumpy.environment import Environment
from ftnumpy.errors import BuildError, CommandFailed, TestsFailed
from ftnumpy.options import Options
from ftnumpy.settings import Settings
from ftnumpy.stack import Stack
from ftnumpy.stress import kinds, level, plots, samples
from ftnumpy.stress.kinds import Kind
from ftnumpy.stress.samples import Sample

PATIENCE = 900.0  # seconds; a kind that hangs ends itself before that, and says where


def run(words: Sequence[str], stack: Stack, settings: Settings, options: Options, summary: Summary) -> str:
    """The kinds in ``words`` (all, where there are none) on the variant, a step of ``summary`` each; returns where the
    samples and their picture are.

    A kind fails by a crash, a hang, a wrong result, or by something that it holds more and more of; after all have run,
    raises `TestsFailed`.
    """
    chosen = kinds.chosen(words)
    shares = kinds.seconds(chosen, options.minutes)
    made = environment.test_environment(stack, settings, options, summary)
    console.say(f"{len(chosen)} kinds, {console.duration(60 * options.minutes)}, seed {options.seed}")
    held: dict[str, Sequence[Sample]] = {}
    failures: list[str] = []
    total = 0
    for kind in chosen:
        log = options.logs / f"{kind.name}.log"
        file = options.logs / f"{kind.name}.jsonl"
        try:
            with summary.step(f"stress: {kind.name.replace('_', ' ')}", log) as result:
                _run(kind, shares[kind.name], made, settings, options, file)
                ops = operations(log)
                total += ops
                held[kind.name] = samples.load(file)
                result.append(f"{ops:,} operations, {judge(kind, held[kind.name], file)}")
        except BuildError as error:
            failures.append(str(error))
    where = _keep(held, settings, options)
    if failures:
        again = f"--minutes {options.minutes:g} --seed {options.seed} --variant {options.variant.name}"
        again += f" {shlex.join(words)}" if words else ""
        raise TestsFailed("\n".join([*failures, f"{len(failures)} of {len(chosen)} kinds failed ({again})", where]))
    return f"{len(chosen)} kinds passed, {total:,} operations\n{where}"


def _keep(held: Mapping[str, Sequence[Sample]], settings: Settings, options: Options) -> str:
    """Put samples and their picture to where the report looks, in place of earlier ones; returns where that is."""
    folder = settings.root / ".build" / "stress" / options.environment_name
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    if any(held.values()):
        lines.append(f"picture  {plots.draw(held, folder, 'held')}")
    for kind in held:
        if (file := options.logs / f"{kind}.jsonl").exists():
            write(folder / file.name, file.read_text(encoding="utf-8"))
    return "\n".join([f"samples  {folder}", *lines])


def _run(kind: Kind, seconds: float, made: Environment, settings: Settings, options: Options, file: Path) -> None:
    process.run(
        [
            *(made.python, settings.root / "tests" / "stress" / f"{kind.name}.py"),
            *("--seconds", str(seconds), "--seed", str(options.seed), "--samples", file),
        ],
        what=f"stress: {kind.name}",
        log=options.logs / f"{kind.name}.log",
        cwd=options.logs,
        env=suites.tests_variables(made),
        timeout=1.5 * seconds + PATIENCE,
    )


def operations(log: Path) -> int:
    """The number of operations that a kind reports in the last line of ``log``.  Raises `CommandFailed`."""
    lines = process.last_lines(log)
    try:
        return int(json.loads(lines[-1])["ops"])
    except (IndexError, ValueError, TypeError, KeyError):
        raise CommandFailed("stress", "it ended well, but did not say what it did", log, lines) from None


def judge(kind: Kind, held: Sequence[Sample], file: Path) -> str:
    """In words, how level ``held`` is.  Raises `BuildError` for what grew."""
    found = level.levels(held, kind.grows)
    if not found:
        return f"too short to judge what it holds ({len(held)} samples)"
    grown = [f"  {each.measure}: {each.early:,.0f}, later {each.late:,.0f}" for each in found if each.grew]
    if grown:
        raise BuildError("\n".join([f"stress: {kind.name} holds more and more:", *grown, f"  all samples: {file}"]))
    resident = next(each for each in found if each.measure == "resident")
    return f"level ({resident.early / (1 << 20):,.0f} to {resident.late / (1 << 20):,.0f} MiB)"
