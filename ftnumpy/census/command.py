"""The session ``census``: take censuses, show and keep them, hold them to their budgets, compare them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ftnumpy import console, environment
from ftnumpy.census import besides, budget, grids, known_answer, page, qemu, report, runner, table
from ftnumpy.census.compare import compare
from ftnumpy.census.grids import Grid
from ftnumpy.census.report import Report
from ftnumpy.census.target import Target, read_target
from ftnumpy.census.wishes import Wishes
from ftnumpy.census.wording import figure
from ftnumpy.census.workloads import NAMED
from ftnumpy.console import Summary
from ftnumpy.errors import BudgetExceeded, UsageError
from ftnumpy.options import Options
from ftnumpy.settings import Settings
from ftnumpy.stack import PATCHED, Stack, Variant, read_variant

COMPARE = "compare"
COMPARED = ("kernel-10",)  # by variants, when nothing else is named


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side of a comparison: ``variant`` when its censuses are still to be taken, else what files hold, by
    workload."""

    label: str
    variant: Variant | None
    found: dict[str, Report]


def run(wishes: Wishes, stack: Stack, settings: Settings, options: Options, summary: Summary) -> str:
    """Do as ``wishes`` say; returns where the pages are.  Raises `BudgetExceeded` after everything is kept."""
    if wishes.fetch_qemu:
        with summary.step("QEMU", options.logs / "qemu.log"):
            return f"\nQEMU  {qemu.fetch(settings, options.logs / 'qemu.log')}"
    if wishes.words[:1] == (COMPARE,):
        return _compare(wishes, stack, settings, options, summary)
    target = read_target(wishes.words)
    budgets = budget.read_budgets(settings.root / "census.toml", [workload.name for workload in NAMED])
    _prove(settings, options, summary)
    found = take(target, wishes, stack, settings, options, summary)
    folder = wishes.out or settings.root / ".build" / "census" / file_name(found[0].census.variant)
    first = keep(found, folder)
    for grid in _grids(found):
        table.show(grid)
    closing = f"\npage  {first}"
    if wishes.python or wishes.iterations or options.environment_name != PATCHED.name:
        return closing
    console.say(closing)
    return _hold(found, budgets)


def _prove(settings: Settings, options: Options, summary: Summary) -> None:
    """Count a program whose answer is known.  Raises `BuildError` when that comes out wrong."""
    log = options.logs / "known-answer.log"
    with summary.step("known answer", log) as result:
        result.append(known_answer.check(settings, options.logs / "known-answer", log))


def take(
    target: Target, wishes: Wishes, stack: Stack, settings: Settings, options: Options, summary: Summary
) -> list[Report]:
    """A report on each workload of ``target``, or on its program; builds what it needs, a step of ``summary`` each."""
    if wishes.python is None:
        python, name = environment.user_environment(stack, settings, options, summary).python, options.environment_name
    elif wishes.python.is_file():
        python, name = wishes.python, str(wishes.python)
    else:
        raise UsageError(f"--python names {wishes.python}, which is no file; give the path of an interpreter")
    # The whole list is taken for its counts.
    alone = not wishes.native or target.workloads == NAMED
    log = options.logs / f"census-{file_name(name)}.log"
    with summary.step(f"census of {target}, {name}", log) as result:
        taken = runner.take(
            target.workloads,
            target.program,
            python=python,
            variant=name,
            threads=wishes.threads,
            iterations=wishes.iterations,
            trace=0 if alone or target.program else besides.TRACE,
            settings=settings,
            folder=options.logs / f"dumps-{file_name(name)}",
            log=log,
        )
        result.append(f"{figure(sum(each.census.locked for each in taken))} locked writes to shared lines")
    if alone:
        return [Report(census=each.census, native=None, prediction=None) for each in taken]
    log = options.logs / f"native-{file_name(name)}.log"
    with summary.step(f"native run of {target}, {name}", log):
        if target.program:
            return [besides.program(taken[0], target.program, python, settings=settings, log=log)]
        return [
            besides.workload(each, workload, python, settings=settings, log=log)
            for each, workload in zip(taken, target.workloads, strict=True)
        ]


def keep(found: Sequence[Report], folder: Path) -> Path:
    """Write each report as JSON and as a page into ``folder``; returns the page to begin with."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = []
    for each in found:
        name = file_name(each.census.workload)
        report.save(each, folder / f"{name}.json")
        pages.append(folder / f"{name}.html")
        report.write(pages[-1], page.report(each))
    if len(found) == 1:
        return pages[0]
    report.write(folder / "index.html", page.overview(found, pages))
    return folder / "index.html"


def file_name(text: str) -> str:
    """``text`` as the name of a file: ``module:function`` and paths have signs that don't belong there."""
    return re.sub(r"[^\w.+-]+", "-", text).strip("-.")


def _grids(found: Sequence[Report]) -> list[Grid]:
    """What the console shows: all of one workload, or a row for each of several."""
    if len(found) > 1:
        return [grids.overview([each.census for each in found])]
    return [grids.lines(found[0].census), *grids.besides(found[0])]


def _hold(found: Sequence[Report], budgets: budget.Budgets) -> str:
    """Hold the named workloads among ``found`` to their ``budgets``; returns what can be tightened."""
    verdicts = [
        budget.check(each.census, budgets[each.census.workload]) for each in found if each.census.workload in budgets
    ]
    exceeded = [line for verdict in verdicts for line in verdict.exceeded]
    if exceeded:
        raise BudgetExceeded(
            "more locked shared writes than census.toml allows:\n"
            + "\n".join(f"  {line}" for line in exceeded)
            + "\nFind the change that brought them; raise a budget only with a reason."
        )
    if not verdicts:
        return ""
    loose = [f"could be tightened: {line}" for verdict in verdicts for line in verdict.loose]
    kept = f"{len(verdicts)} workload{'s keep' if len(verdicts) > 1 else ' keeps'} within census.toml"
    return "\n".join([f"budgets: {kept}", *loose])


def _compare(wishes: Wishes, stack: Stack, settings: Settings, options: Options, summary: Summary) -> str:
    """Take what has still to be taken, show all sides side by side, and keep the page."""
    sides, rest = read_sides(wishes.words[1:])
    held = [side.found for side in sides if side.variant is None]
    in_files = [name for name in held[0] if all(name in found for found in held)] if held else []
    if len(held) == len(sides) and rest:
        raise UsageError(f"{rest[0]!r} is no side, and there is no variant to count it on")
    folder = wishes.out or settings.root / ".build" / "census"
    if len(held) < len(sides):
        _prove(settings, options, summary)
    columns = []
    for side in sides:
        if side.variant is None:
            columns.append(side.found)
            continue
        target = read_target(rest or in_files or COMPARED)
        taken = take(target, wishes, stack, settings, replace(options, variant=side.variant), summary)
        keep(taken, folder / file_name(taken[0].census.variant))
        columns.append({each.census.workload: each for each in taken})
    common = [name for name in columns[0] if all(name in column for column in columns)]
    if not common:
        raise UsageError(f"{', '.join(side.label for side in sides)} have no workload in common")
    names = labels(sides, columns)
    found = [compare(names, [column[name].census for column in columns]) for name in common]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"compare-{'-'.join(map(file_name, names))}.html"
    report.write(file, page.comparison(found))
    table.show(grids.comparison(found[0]) if len(found) == 1 else grids.comparisons(found))
    return f"\npage  {file}"


def labels(sides: Sequence[Side], columns: Sequence[Mapping[str, Report]]) -> list[str]:
    """The variants, where they tell the sides apart, else the words that the sides were given by."""
    variants = [next(iter(column.values())).census.variant for column in columns]
    return variants if len(set(variants)) == len(sides) else [side.label for side in sides]


def read_sides(words: Sequence[str]) -> tuple[list[Side], list[str]]:
    """The sides of a comparison that stand first in ``words``, and the words that are left.

    A side is a variant, a JSON file of a report, or a folder of such files.  Raises `UsageError` unless there are two.
    """
    sides: list[Side] = []
    for word in words:
        path = Path(word)
        if path.is_dir() or word.endswith(".json"):
            files = sorted(path.glob("*.json")) if path.is_dir() else [path]
            found = {each.census.workload: each for each in map(report.load, files)}
            if not found:
                raise UsageError(f"{path} holds no census; 'ftnumpy census' writes them into .build/census/<variant>")
            sides.append(Side(label=word, variant=None, found=found))
        elif re.fullmatch(r"stock|patched|c\d+n\d+", word):
            sides.append(Side(label=word, variant=read_variant(word), found={}))
        else:
            break
    if len(sides) < 2:
        raise UsageError(
            f"compare needs two sides or more, got {len(sides)}; a side is 'stock', 'patched', a prefix such as "
            "'c2n1', a JSON file that 'ftnumpy census' wrote, or a folder of them"
        )
    return sides, list(words[len(sides) :])
