"""What threads may do with a shared array: the patterns of ``tests/semantics``, measured, as a table."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import compiler, environment, suites
from ftnumpy.census import report
from ftnumpy.census.grids import Grid
from ftnumpy.console import Summary
from ftnumpy.environment import Environment
from ftnumpy.errors import CommandFailed, UsageError
from ftnumpy.options import Options
from ftnumpy.scaling import markdown
from ftnumpy.settings import Settings
from ftnumpy.stack import Stack

PAGE = Path("docs", "atomicity.md")
BEGIN = "<!-- semantics: written by nox -s semantics; edits are lost -->"
END = "<!-- semantics: end -->"

THREADS = 4
LAUNCHES = 3
SECONDS = 1.0
PATIENCE = 180.0  # seconds; a trial that hangs ends itself before that


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A pattern as ``tests/semantics/patterns.py`` declares it, and what its launches found: counts by kind, or under
    ``signal`` the number of the signal that ended the process."""

    title: str
    code: str
    verdict: str
    note: str
    launches: tuple[dict[str, int], ...]


def run(docs: bool, stack: Stack, settings: Settings, options: Options, summary: Summary) -> str:
    """Measure every pattern on the variant; with ``docs`` the table goes into docs/atomicity.md.  Returns it.

    The measurements are kept in ``.build/semantics/<variant>.json``.  Raises `UsageError` when the page lacks marks.
    """
    page = settings.root / PAGE
    if docs:
        _marked(page)
    made = environment.test_environment(stack, settings, options, summary)
    script = settings.root / "tests" / "semantics" / "trial.py"
    measured = []
    for name, (title, code, verdict, note) in json.loads(_child(made, script, "list").stdout).items():
        with summary.step(title) as result:
            launches = tuple(_launch(made, script, name, options.logs) for _ in range(LAUNCHES))
            measured.append(Measured(title=title, code=code, verdict=verdict, note=note, launches=launches))
            result.append(f"{verdict}: {_found(launches)}")
    kept = settings.root / ".build" / "semantics" / f"{options.environment_name}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    report.write(kept, json.dumps([vars(pattern) for pattern in measured], indent=1) + "\n")
    table = markdown.table(grid(measured, options.environment_name))
    if docs:
        before, after = _marked(page)
        report.write(page, f"{before}{BEGIN}\n\n{table}\n\n{END}{after}")
    return table


def grid(measured: list[Measured], variant: str) -> Grid:
    """The table: a row for each pattern, with what all its launches found."""
    return Grid(
        title=f"What was found on `{variant}`: {THREADS} threads, {os.cpu_count()} processors, "
        f"{LAUNCHES} processes of {SECONDS:g} s each",
        columns=("what threads do", "code", "verdict", "found", "note"),
        rows=tuple(
            (pattern.title, f"`{pattern.code}`", pattern.verdict, _found(pattern.launches), pattern.note)
            for pattern in measured
        ),
        words=frozenset(range(5)),
    )


def _launch(made: Environment, script: Path, name: str, logs: Path) -> dict[str, int]:
    done = _child(made, script, name, str(THREADS), str(SECONDS))
    if done.returncode < 0:
        return {"signal": -done.returncode}
    if done.returncode > 0:
        log = logs / f"{name}.log"
        log.write_text(done.stdout + done.stderr, encoding="utf-8")
        raise CommandFailed(f"pattern {name}", f"exit status {done.returncode}", log, done.stderr.splitlines()[-30:])
    counts: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return counts


def _child(made: Environment, script: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = compiler.clean_environment() | suites.tests_variables(made)
    return subprocess.run(
        [made.python, script, *words], env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
    )


def _found(launches: tuple[dict[str, int], ...]) -> str:
    """Such as ``1,000 operations; 20 lost (2%)``."""
    total: dict[str, int] = {}
    for launch in launches:
        for kind, count in launch.items():
            total[kind] = total.get(kind, 0) + (1 if kind == "signal" else count)
    crashes, operations = total.pop("signal", 0), total.pop("operations", 0)
    updates = total.pop("updates", operations)
    words = [f"{count:,} {kind} ({100 * count / updates:.2g}%)" for kind, count in total.items() if count]
    return "; ".join(
        [
            *([f"{crashes} of {len(launches)} processes crashed"] if crashes else []),
            *([f"{operations:,} operations"] if operations else []),
            *words,
        ]
    )


def _marked(page: Path) -> tuple[str, str]:
    """What stands before and behind the marks of ``page``.  Raises `UsageError` without marks."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UsageError(f"{page} lacks the lines {BEGIN} and {END}, between which the table belongs; restore them")
    return before, after
