"""``sanitizers.toml``: upstream's own races and other mistakes that our runs are known to meet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import permutations
from pathlib import Path
from typing import Any

from ftnumpy import tomlfile
from ftnumpy.errors import UsageError
from ftnumpy.sanitizers.reports import Frame, Report
from ftnumpy.sanitizers.touched import Touched

TOOLS = ("tsan", "asan")
FIELDS = ("tool", "kind", "functions", "project", "reference", "why")
# Issues of the project's tracker, a list of suppressions in the release itself, or that we know of no report.
REFERENCE = re.compile(r"(?:gh-\d+(?:, gh-\d+)*|[Tt]ools/[\w./-]+|not reported)\Z")


@dataclass(frozen=True, kw_only=True)
class Known:
    """A mistake of upstream's.  ``kind`` and ``functions`` are those of `Report.key`, or patterns of such with ``*``;
    ``why`` says what it is, and why it is not ours."""

    tool: str
    kind: str
    functions: tuple[str, ...]
    project: str
    reference: str
    why: str

    @property
    def key(self) -> tuple[str, tuple[str, ...]]:
        return self.kind, tuple(sorted(self.functions))

    def knows(self, kind: str, functions: tuple[str, ...]) -> bool:
        return (
            fnmatchcase(kind, self.kind)
            and len(functions) == len(self.functions)
            and any(all(map(fnmatchcase, functions, order)) for order in permutations(self.functions))
        )


@dataclass(frozen=True, kw_only=True)
class Finding:
    """All reports of one mistake: how often it came, the runs that it came in, the first report, and the entry that
    knows it.  ``ours`` is the frame that lies in code which our patches touch, as text."""

    kind: str
    functions: tuple[str, ...]
    count: int
    runs: tuple[str, ...]
    example: str
    known: Known | None
    ours: str | None

    @property
    def name(self) -> str:
        return f"{self.kind}: {' and '.join(self.functions)}"


def read_known(file: Path, tool: str) -> tuple[Known, ...]:
    """The entries of ``file`` for ``tool``.  Raises `UsageError` for what can't be meant."""
    data = tomlfile.read(file)
    if data.keys() - {"known"}:
        raise UsageError(f"{file}: {min(data.keys() - {'known'})!r} is not meant here; the file has [[known]] tables")
    entries = [_entry(table, file) for table in data.get("known", ())]
    twice = {
        (entry.tool, entry.key)
        for entry in entries
        if [(e.tool, e.key) for e in entries].count((entry.tool, entry.key)) > 1
    }
    if twice:
        raise UsageError(f"{file} has {min(twice)} twice; keep one")
    return tuple(entry for entry in entries if entry.tool == tool)


def _entry(table: dict[str, Any], file: Path) -> Known:
    where = f"{file}: the entry of {table.get('functions', '?')}"
    if set(table) != set(FIELDS):
        raise UsageError(f"{where} has {', '.join(sorted(table))}; give {', '.join(FIELDS)}")
    functions = table["functions"]
    if not isinstance(functions, list) or not 1 <= len(functions) <= 2 or not all(map(_word, functions)):
        raise UsageError(f"{where}: give one function, or the two of a race")
    if table["tool"] not in TOOLS or table["project"] not in ("cpython", "numpy"):
        raise UsageError(f"{where}: the tools are {' and '.join(TOOLS)}, the projects cpython and numpy")
    if not _word(table["kind"]) or not _word(table["why"]):
        raise UsageError(f"{where}: say its kind as the sanitizer does, and why it is not ours")
    if not isinstance(table["reference"], str) or not REFERENCE.match(table["reference"]):
        raise UsageError(
            f"{where}: the reference is an issue such as 'gh-12345', a list of the release such as "
            "'tools/ci/suppressions.txt', or 'not reported'"
        )
    return Known(**(table | {"functions": tuple(functions)}))


def _word(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def sort_out(reports: Iterable[tuple[str, Report]], known: Sequence[Known], touched: Touched) -> tuple[Finding, ...]:
    """One finding a mistake, from ``reports`` and the name of the run that each came from; new ones first, then by how
    often they came.

    A report that lies in code which our patches touch is ours, whatever is known.
    """
    by_key: dict[tuple[str, tuple[str, ...]], list[tuple[str, Report]]] = {}
    for run, report in reports:
        by_key.setdefault(report.key, []).append((run, report))
    findings = []
    for key, group in by_key.items():
        ours = [(report, frame) for _, report in group for frame in _frames(report) if touched.holds(frame)]
        example = ours[0][0] if ours else group[0][1]
        findings.append(
            Finding(
                kind=key[0],
                functions=key[1],
                count=len(group),
                runs=tuple(dict.fromkeys(run for run, _ in group)),
                example=example.text,
                known=None if ours else next((entry for entry in known if entry.knows(*key)), None),
                ours=str(ours[0][1]) if ours else None,
            )
        )
    return tuple(sorted(findings, key=lambda finding: (finding.known is not None, -finding.count, finding.name)))


def _frames(report: Report) -> list[Frame]:
    return [frame for access in report.accesses for frame in access.culprits]
