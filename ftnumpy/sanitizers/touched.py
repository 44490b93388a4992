"""Which code our patches touch, as lines of whole functions of the patched trees."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from ftnumpy import fingerprint, patchqueue, sources
from ftnumpy.census.report import read
from ftnumpy.git import git
from ftnumpy.patchqueue import BASE
from ftnumpy.sanitizers.reports import Frame
from ftnumpy.settings import Settings
from ftnumpy.stack import Project, Release, Stack, Variant

# Goes into the fingerprint: raise it when this file changes what it makes.
REVISION = "1"

SUPPRESSIONS = Path("Tools") / "tsan" / "suppressions_free_threading.txt"

# How git finds where a function begins.  CPython's interpreter loop is one function, its instructions are the parts.
ATTRIBUTES = """\
*.c diff=cpp
*.h diff=cpp
*.cpp diff=cpp
*.hpp diff=cpp
Python/bytecodes.c diff=instructions
Python/generated_cases.c.h diff=instructions
Python/executor_cases.c.h diff=instructions
"""
INSTRUCTION = (
    r"^ *(TARGET|case _|((tier1|tier2|override|specializing|replicate\([0-9]+\)|pure) )*(inst|op|macro|family)\().*"
)
# A line without a semicolon at its end, which would make it a declaration.
DEFINITION = re.compile(r"^(?!.*;\s*$)(?:[A-Za-z_][\w\s*&:<>,]*?[\s*&])?(?:\w+::)*(\w+)\(", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Touched:
    """By file, the first and last lines of each function or other piece of C that patches change; and the names of the
    functions that begin there."""

    lines: Mapping[str, tuple[tuple[int, ...], ...]]
    functions: tuple[str, ...]

    def holds(self, frame: Frame) -> bool:
        """Whether ``frame`` lies there: by file and line where they are known, else by the function's name."""
        if not frame.file:
            return frame.function in self.functions
        path = f"/{frame.file}"
        return any(
            first <= frame.line <= last
            for file, pieces in self.lines.items()
            if path.endswith(f"/{file}")
            for first, last in pieces
        )


@dataclass(frozen=True, kw_only=True)
class Touch:
    """What patches touch, and the text of the suppressions that the releases bring."""

    touched: Touched
    suppressions: str


def find(stack: Stack, settings: Settings, variant: Variant, cpython: Release, numpy: Release) -> Touch:
    """What the patches of ``variant`` touch in these releases, found again or found out now from their archives."""
    each = [
        _find(stack, settings, stack.cpython, variant.cpython_patches, cpython),
        _find(stack, settings, stack.numpy, variant.numpy_patches, numpy),
    ]
    return Touch(
        touched=Touched(
            lines={file: pieces for touch in each for file, pieces in touch.touched.lines.items()},
            functions=tuple(sorted({name for touch in each for name in touch.touched.functions})),
        ),
        suppressions="".join(touch.suppressions for touch in each),
    )


def _find(stack: Stack, settings: Settings, project: Project, count: int | None, release: Release) -> Touch:
    patches = patchqueue.read_queue(project.queue)[:count]
    inputs = {
        "archive": release.sha256,
        "patches": " ".join(patchqueue.sha256(patch.file) for patch in patches),
        "revision": REVISION,
    }

    def build(work: Path, final: Path) -> Path:
        tree, staged = work / "tree", work / "stage"
        patchqueue.make_tree(sources.fetch(release, stack.channels, settings).path, patches, tree)
        staged.mkdir()
        (staged / "touched.json").write_text(json.dumps(asdict(touched_in(tree))), encoding="utf-8")
        theirs = tree / SUPPRESSIONS
        text = theirs.read_text(encoding="utf-8") if theirs.is_file() else ""
        (staged / "suppressions.txt").write_text(text, encoding="utf-8")
        return staged

    folder, _ = fingerprint.build_once(settings, "touched", inputs, build)
    found: Touched = read(Touched, json.loads((folder / "touched.json").read_text(encoding="utf-8")))
    return Touch(touched=found, suppressions=(folder / "suppressions.txt").read_text(encoding="utf-8"))


def touched_in(tree: Path) -> Touched:
    """What the commits of ``tree``, which `patchqueue.make_tree` made, touch."""
    (tree / ".git" / "info" / "attributes").write_text(ATTRIBUTES, encoding="ascii")
    diff = git(
        tree,
        *("-c", f"diff.instructions.xfuncname={INSTRUCTION}", "diff", "--function-context", "--unified=0"),
        *("--no-color", "--no-ext-diff", BASE, "HEAD", "--", "*.c", "*.h", "*.cpp", "*.hpp", "*.src"),
    ).decode(errors="replace")
    lines: dict[str, list[tuple[int, int]]] = {}
    file = ""
    for line in diff.splitlines():
        if line.startswith("+++ b/"):
            file = line.removeprefix("+++ b/")
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            if count:
                lines.setdefault(file, []).append((first, first + count - 1))
    functions = {
        name
        for file, pieces in lines.items()
        for first, last in pieces
        for name in DEFINITION.findall(_text(tree / file, first, last))
    }
    return Touched(lines={file: tuple(pieces) for file, pieces in lines.items()}, functions=tuple(sorted(functions)))


def suppressions(touch: Touch) -> tuple[list[str], list[str]]:
    """The lines of ``touch.suppressions`` to go by, and those that aren't because they hide a function which patches
    touch."""
    lines = touch.suppressions.splitlines()
    hiding = [
        line for line in lines if not line.startswith("#") and line.partition(":")[2].strip() in touch.touched.functions
    ]
    return [line for line in lines if line not in hiding], hiding


def _text(file: Path, first: int, last: int) -> str:
    return "\n".join(file.read_text(encoding="utf-8", errors="replace").splitlines()[first - 1 : last])
