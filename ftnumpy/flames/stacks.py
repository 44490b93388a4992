"""Samples of stacks, folded: each stack once, with how often it was seen."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

KINDS = {
    "python": "Python",
    "cpython": "CPython",
    "numpy": "NumPy",
    "library": "libraries",
    "kernel": "the kernel",
}
# What the interpreter calls each Python function through, only while it is profiled.
TRAMPOLINE = "py_trampoline_evaluator"


@dataclass(frozen=True)
class Frame:
    """A function in a stack; ``kind`` is a key of `KINDS` and says where its code is."""

    name: str
    kind: str


# `ftnumpy.flames.worker.repeat`: what runs below it is the workload.
REPEAT = Frame("repeat (worker.py)", "python")

Stack = tuple[Frame, ...]


@dataclass(frozen=True, kw_only=True)
class Folded:
    """``counts`` has the samples by stack, the outermost frame first, of those in which the workload was running;
    ``samples`` is how many there were in all, with those of the program's start and end."""

    samples: int
    counts: dict[Stack, int]

    @property
    def total(self) -> int:
        """Samples in which the workload was running."""
        return sum(self.counts.values())


def fold(lines: Iterable[str]) -> Folded:
    """What ``perf script -F tid,ip,sym,dso`` prints: a paragraph for each sample, its innermost frame first."""
    counts: Counter[Stack] = Counter()
    samples = 0
    inner: list[Frame] = []
    for line in [*lines, ""]:
        if match := re.match(r"\s+([0-9a-f]+) (.*) \((.*)\)$", line):
            inner.append(_frame(*match.groups()))
        elif not line.strip() and inner:
            samples += 1
            outer = [frame for frame in reversed(inner) if frame.name != TRAMPOLINE]
            if REPEAT in outer[:-1]:
                counts[tuple(outer[outer.index(REPEAT) + 1 :])] += 1
            inner = []
    return Folded(samples=samples, counts=dict(counts))


def _frame(address: str, name: str, file: str) -> Frame:
    if match := re.fullmatch(r"py::(.*?):([^:]*)", name):
        return Frame(f"{match[1]} ({PurePath(match[2]).name})", "python")
    # Versions of symbols, and the names of parts that compilers make of functions, say nothing here.
    name = re.sub(r"@@?[A-Z].*$|(\.(part|constprop|isra|cold)(\.\d+)?)+$", "", name)
    if len(address) == 16 and address.startswith("f"):
        return Frame(name, "kernel")
    base = PurePath(file).name
    if re.match(r"(lib)?python\d", base):
        return Frame(name, "cpython")
    return Frame(name, "numpy" if "/numpy/" in file and "umath" in base else "library")


def write_folded(found: Folded) -> str:
    """A line for each stack, ``outer;inner count``, as tools for flame graphs read it; the most frequent first."""
    lines = sorted(found.counts.items(), key=lambda item: -item[1])
    return "".join(f"{';'.join(frame.name.replace(';', ':') for frame in stack)} {count}\n" for stack, count in lines)


def read_folded(text: str) -> Folded:
    """What `write_folded` wrote.  That does not hold what kind of function each is, so all are ``library``."""
    counts: Counter[Stack] = Counter()
    for line in text.splitlines():
        names, _, count = line.rpartition(" ")
        counts[tuple(Frame(name, "library") for name in names.split(";"))] += int(count)
    return Folded(samples=counts.total(), counts=dict(counts))
