"""The report's chapters: each reads what one kind of session has kept, and says what is missing."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ftnumpy import fingerprint, kernel_times, patchfile, patchqueue, results
from ftnumpy.census import grids
from ftnumpy.census import report as census_report
from ftnumpy.census.compare import compare
from ftnumpy.census.grids import Grid
from ftnumpy.census.report import Report
from ftnumpy.census.wording import figure
from ftnumpy.console import duration
from ftnumpy.environment import MARKER
from ftnumpy.errors import UsageError
from ftnumpy.flames import bottlenecks
from ftnumpy.flames.stacks import read_folded
from ftnumpy.results import Outcome
from ftnumpy.scaling import findings as scaling_findings
from ftnumpy.scaling import grids as scaling_grids
from ftnumpy.scaling.findings import Findings
from ftnumpy.settings import Settings
from ftnumpy.stack import PATCHED, STOCK, Project, Stack
from ftnumpy.upstream import findings as upstream_findings

# The rows of a table about a build.
BUILD = ("release", "queue", "begun", "options", "compilers", "archive's sha256", "fingerprint")

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Missing:
    """``what`` is not there; ``command`` makes it."""

    what: str
    command: str


@dataclass(frozen=True, kw_only=True)
class Text:
    """A long text below a chapter; ``anchor`` is what a table's first column links to."""

    title: str
    anchor: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Picture:
    """An SVG picture as a data address."""

    title: str
    address: str


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """``lead`` is one sentence on what it shows and where that comes from."""

    title: str
    lead: str
    grids: tuple[Grid, ...] = ()
    pictures: tuple[Picture, ...] = ()
    texts: tuple[Text, ...] = ()
    missing: tuple[Missing, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Environment:
    """What the marker of ``.build/<name>`` says is in it: fingerprints of the interpreter and of the wheel."""

    name: str
    interpreter: str
    wheel: str


def chapters(stack: Stack, settings: Settings) -> tuple[Chapter, ...]:
    """All of them.  Raises `UsageError` for a kept file that is not what its place says, `PatchError` for a queue."""
    environments = _environments(settings)
    outcomes = results.outcomes(settings)
    return (
        _built(environments, stack, settings),
        _sessions(environments, outcomes),
        _upstream(settings),
        _census(settings),
        _scaling(settings),
        _kernel(settings),
        _bench(settings),
        _profile(settings),
    )


def _environments(settings: Settings) -> dict[str, Environment]:
    """The users' environments by name: those that hold an interpreter and NumPy and nothing else."""
    found = {}
    for marker in sorted((settings.root / ".build").glob(f"*/{MARKER}")):
        data = _json(marker)
        if not data["requires"]:
            name = marker.parent.name
            found[name] = Environment(name=name, interpreter=data["interpreter"], wheel=data["wheel"])
    return found


def _built(environments: dict[str, Environment], stack: Stack, settings: Settings) -> Chapter:
    """Interpreters, wheels and patches, with all hashes."""
    missing = [
        Missing(what=f"a build of {name}", command=command)
        for name, command in (("stock", "nox -s build-ft -- --variant stock"), ("patched", "nox -s build-ft"))
        if name not in environments
    ]
    builds: list[Grid] = []
    applied: dict[str, str] = {}
    for each in environments.values():
        columns = []
        for project, whole in ((stack.cpython, each.interpreter), (stack.numpy, each.wheel)):
            folder = settings.builds / f"{project.name}-{whole[:16]}"
            if not folder.is_dir():
                command = f"nox -s build-ft -- --variant {each.name}"
                missing.append(Missing(what=f"{project.name} of {each.name}, not in the cache", command=command))
                continue
            description = fingerprint.read_description(folder)
            columns.append(_build(project, description))
            if each.name == PATCHED.name:
                applied[project.name] = columns[-1]["patches' sha256"]
        builds.append(
            Grid(
                title=f".build/{each.name}",
                columns=("", *(column["project"] for column in columns)),
                words=frozenset(range(1 + len(columns))),
                rows=tuple((what, *(column[what] for column in columns)) for what in BUILD),
            )
        )
    wheels = sorted((settings.root / "wheelhouse").glob("*.whl"))
    if not wheels:
        missing.append(Missing(what="a wheel in wheelhouse", command="nox -s build-ft"))
    texts = [text for project in (stack.cpython, stack.numpy) for text in _texts(project)]
    return Chapter(
        title="What was built",
        lead=f"Series {stack.series}. A build is kept under the fingerprint of all that went into it.",
        grids=(
            *builds,
            Grid(
                title="wheels",
                columns=("file", "bytes", "sha256"),
                words=frozenset((0, 2)),
                rows=tuple((file.name, f"{file.stat().st_size:,}", patchqueue.sha256(file)) for file in wheels),
            ),
            *(_patches(project, applied.get(project.name)) for project in (stack.cpython, stack.numpy)),
        ),
        texts=tuple(texts),
        missing=tuple(missing),
    )


def _build(project: Project, description: Mapping[str, object]) -> dict[str, str]:
    """What goes into a column about a build: the project's name, and what `BUILD` names."""
    inputs = description["inputs"]
    assert isinstance(inputs, dict)
    versions = {release.sha256: release.version for release in project.releases}
    return {
        "project": project.name,
        "release": versions.get(inputs["archive"], "none of stack.toml's"),
        "queue": f"{inputs['label']}, {len(inputs['patches'].split())} patches",
        "begun": f"{description['started']}, took {duration(float(str(description['seconds'])))}",
        "options": inputs["options"],
        "compilers": inputs["compiler"],
        "archive's sha256": inputs["archive"],
        "patches' sha256": inputs["patches"],
        "fingerprint": str(description["fingerprint"]),
    }


def _patches(project: Project, applied: str | None) -> Grid:
    """The queue as it is now, and which of it the environment ``patched`` has."""
    rows = []
    for patch in patchqueue.read_queue(project.queue):
        whole = patchqueue.sha256(patch.file)
        built = "" if applied is None else "yes" if whole in applied.split() else "no"
        rows.append((patch.file.name, patch.subject, built, whole))
    return Grid(
        title=f"{project.name}'s patches",
        columns=("file", "what it does", "in the build", "sha256"),
        words=frozenset((0, 1, 2, 3)),
        rows=tuple(rows),
    )


def _texts(project: Project) -> Iterable[Text]:
    for patch in patchqueue.read_queue(project.queue):
        content = patch.file.read_bytes()
        yield Text(
            title=f"{project.name}: {patchfile.parse(content).subject}",
            anchor=patch.file.name,
            text=content.decode(),
        )


def _sessions(environments: dict[str, Environment], outcomes: Sequence[Outcome]) -> Chapter:
    """How each session ended, and the steps of tests and stress."""
    wanted = (("test", "nox -s test"), ("stress", "nox -s stress"))
    done = {outcome.session for outcome in outcomes if outcome.variant == PATCHED.name}
    return Chapter(
        title="Tests, stress and other sessions",
        lead="The last run of each session on each variant. Of an earlier build: the environment has been built anew "
        "since, so that the session has to run again.",
        grids=(
            Grid(
                title="sessions",
                columns=("session", "variant", "ended", "took", "result", "on", "command"),
                words=frozenset((0, 1, 2, 4, 5, 6)),
                rows=tuple(
                    (
                        outcome.session,
                        outcome.variant,
                        outcome.ended,
                        duration(outcome.seconds),
                        f"failed: {outcome.error.partition(chr(10))[0]}" if outcome.error else "ok",
                        _age(outcome, environments),
                        outcome.command,
                    )
                    for outcome in outcomes
                ),
            ),
            *(
                Grid(
                    title=f"{outcome.session} on {outcome.variant}",
                    columns=("step", "took", "result"),
                    words=frozenset((0, 2)),
                    rows=tuple((step.what, duration(step.seconds), step.result) for step in outcome.steps),
                )
                for outcome in outcomes
                if outcome.session in dict(wanted)
            ),
        ),
        texts=tuple(
            Text(
                title=f"how {outcome.session} failed on {outcome.variant}",
                anchor=f"error-{outcome.session}-{outcome.variant}",
                text=outcome.error,
            )
            for outcome in outcomes
            if outcome.error
        ),
        missing=tuple(
            Missing(what=f"{session} on patched", command=command) for session, command in wanted if session not in done
        ),
    )


def _age(outcome: Outcome, environments: dict[str, Environment]) -> str:
    """Whether the session ran on what the environments hold now."""
    now = {each.name: (each.interpreter, each.wheel) for each in environments.values()}
    profile = outcome.variant.partition("-")[2]
    names = {name: f"{name}-{profile}" if profile else name for name in outcome.builds}
    if not names:
        return ""
    same = all(now.get(names[name]) == builds for name, builds in outcome.builds.items())
    return "these builds" if same else "an earlier build"


def _upstream(settings: Settings) -> Chapter:
    """Upstream's suites, before and after."""
    files = sorted((settings.root / ".build" / "upstream").glob("*.json"))
    found = [kept for file in files if (kept := _kept(file, "ftnumpy upstream", upstream_findings.from_json))]
    differ = any(each.differences for each in found)
    return Chapter(
        title="Upstream's suites",
        lead="What fails, crashes, hangs or is missing and did not on stock. What differs ran again, alone.",
        grids=(upstream_findings.counts(found), *([upstream_findings.differing(found)] if differ else []))
        if found
        else (),
        missing=() if found else (Missing(what="a run of upstream's suites", command="nox -s upstream"),),
    )


def _census(settings: Settings) -> Chapter:
    """Stock and patched side by side, for the workloads that both have."""
    folders = {name: settings.root / ".build" / "census" / name for name in (STOCK.name, PATCHED.name)}
    found = {name: _censuses(folder) for name, folder in folders.items()}
    commands = {STOCK.name: "nox -s census -- --variant stock", PATCHED.name: "nox -s census"}
    common = [name for name in found[STOCK.name] if name in found[PATCHED.name]]
    compared = [compare(list(found), [side[name].census for side in found.values()]) for name in common]
    missing = [Missing(what=f"a census of {name}", command=commands[name]) for name, side in found.items() if not side]
    if not missing and not common:
        missing.append(
            Missing(what="a workload that both were counted on", command="nox -s census -- compare stock patched")
        )
    return Chapter(
        title="Census",
        lead="Writes by which threads make each other wait, counted under QEMU; see docs/census.md.",
        grids=(
            *([grids.comparisons(compared)] if compared else []),
            *(grids.comparison(each) for each in compared[:1]),
        ),
        missing=tuple(missing),
    )


def _censuses(folder: Path) -> dict[str, Report]:
    return {each.census.workload: each for each in map(census_report.load, sorted(folder.glob("*.json")))}


def _scaling(settings: Settings) -> Chapter:
    """The plots, and the tables of classes, programs and latency."""
    folder = settings.root / ".build" / "scaling"
    found = _kept(folder / "scaling.json", "ftnumpy scaling", _findings)
    return Chapter(
        title="Scaling",
        lead="Throughput of more and more workers, threads of stock and of patched, and processes; see "
        "docs/performance.md.",
        pictures=tuple(map(_picture, _pictures(found, folder))) if found else (),
        grids=tuple(scaling_grids.short(found)) if found else (),
        missing=() if found else (Missing(what="a scaling run", command="nox -s scaling"),),
    )


def _findings(data: Any) -> Findings:
    if data.pop("format") != scaling_findings.FORMAT:
        raise TypeError
    found: Findings = census_report.read(Findings, data)
    return found


def _pictures(found: Findings, folder: Path) -> list[Path]:
    """Those that were drawn of ``found``: a run without a whole program leaves the picture of the run before."""
    return [file for file in sorted(folder.glob("*.svg")) if found.programs or file.stem != "scaling-article"]


def _picture(file: Path) -> Picture:
    content = base64.b64encode(file.read_bytes()).decode("ascii")
    return Picture(title=file.stem.replace("-", " "), address=f"data:image/svg+xml;base64,{content}")


def _kernel(settings: Settings) -> Chapter:
    found = _kept(kernel_times.file(settings), "ftnumpy kernel", lambda data: kernel_times.ratios(data["seconds"]))
    return Chapter(
        title="The article's kernel",
        lead="Times of stock and patched, which took turns.",
        grids=(found,) if found else (),
        missing=() if found else (Missing(what="the kernel's times", command="nox -s kernel"),),
    )


def _bench(settings: Settings) -> Chapter:
    """asv's own table, and the comparison of stock and patched in pairs on one thread."""
    folder = settings.root / ".build" / "bench"
    verdicts = _kept(folder / "paired.json", "ftnumpy bench", _verdicts)
    table = folder / "compare.txt"
    missing = Missing(what="a run of asv's benchmarks", command="nox -s bench")
    return Chapter(
        title="asv",
        lead="Benchmarks of stock and patched. asv's pages, with a step for each patch, are in the folder html.",
        grids=(verdicts,) if verdicts else (),
        texts=(Text(title="asv compare stock patched", anchor="asv-compare", text=table.read_text(encoding="utf-8")),)
        if table.exists()
        else (),
        missing=() if verdicts and table.exists() else (missing,),
    )


def _verdicts(data: Any) -> Grid:
    return Grid(
        title="one thread: what patched takes of stock's time or instructions, and of the reference's instructions",
        columns=("benchmark", "time, median and quartiles", "instructions", "verdict", "of the reference's"),
        words=frozenset((0,)),
        rows=tuple(
            (
                each["benchmark"],
                str(kernel_times.Ratio(**each["clock"])),
                f"{each['instructions']:.3f}",
                f"{each['ratio']:.3f}",
                f"{each['reference']:.3f}",
            )
            for each in sorted(data["verdicts"], key=lambda verdict: verdict["ratio"])
        ),
        sums=tuple((f"geometric mean: {name}", "", "", f"{mean:.3f}", "") for name, mean in data["means"].items()),
        notes=(f"{data['date']}, {data['machine']}, {figure(data['launches'])} pairs of processes",),
    )


def _profile(settings: Settings) -> Chapter:
    """The bottlenecks' shares; the flame graphs are pages of their own."""
    folder = settings.root / ".build" / "profile"
    workloads = sorted({file.stem.rpartition("-")[0] for file in folder.glob("*-stock.folded")})
    tables = []
    for workload in workloads:
        files = {name: folder / f"{workload}-{name}.folded" for name in (STOCK.name, PATCHED.name)}
        found = {name: read_folded(file.read_text(encoding="utf-8")) for name, file in files.items() if file.exists()}
        tables.append(bottlenecks.grid(workload, found))
    return Chapter(
        title="Flame graphs",
        lead="What threads do, by samples of their stacks. The graphs are pages of their own, in .build/profile.",
        grids=tuple(tables),
        missing=() if tables else (Missing(what="flame graphs", command="nox -s profile"),),
    )


def _kept(file: Path, by: str, read: Callable[[Any], T]) -> T | None:
    """What ``read`` makes of ``file``'s JSON; None when there is no file."""
    if not file.exists():
        return None
    try:
        return read(_json(file))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UsageError(f"{file} is not what '{by}' keeps; remove it and run that again") from None


def _json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))
