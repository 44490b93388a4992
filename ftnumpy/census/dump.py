"""What the plugin wrote, as data; docs/census-dump.md describes the file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ftnumpy.errors import BuildError

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread that had windows: how many, the instructions in them, and accesses that are told nowhere because the
    plugin's tables were full."""

    windows: int
    instructions: int
    lost: int


@dataclass(frozen=True, slots=True)
class Instruction:
    pc: int
    locked: bool


@dataclass(frozen=True, slots=True)
class LineCount:
    """What one thread did to one line."""

    thread: int
    line: int
    reads: int
    writes: int
    bursts: int


@dataclass(frozen=True, slots=True)
class Access:
    """How often one thread touched one word by one instruction in one call context (return addresses, innermost
    first)."""

    thread: int
    word: int
    instruction: int
    context: tuple[int, ...]
    reads: int
    writes: int


@dataclass(frozen=True, slots=True)
class Call:
    """A system call: its number, a futex's operation or madvise's advice, and how often from where."""

    thread: int
    number: int
    detail: int
    context: tuple[int, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Step:
    """One access in a thread's order: instructions since the step before, the line, and 0 for a read, 1 for a write, 2
    for a locked write."""

    delta: int
    line: int
    kind: int


@dataclass(frozen=True, kw_only=True)
class Dump:
    """One dump.  ``line_size`` in bytes, ``burst`` in instructions; ``steps`` by thread, in order."""

    line_size: int
    burst: int
    threads: dict[int, Thread]
    instructions: dict[int, Instruction]
    lines: list[LineCount]
    accesses: list[Access]
    calls: list[Call]
    steps: dict[int, list[Step]]


def read(path: Path) -> Dump:
    """The dump in ``path``.  Raises `BuildError` for a file that is cut short or of another format."""
    records: dict[str, list[list[str]]] = {}
    with path.open(encoding="ascii") as file:
        for row in file:
            kind, *values = row.split()
            records.setdefault(kind, []).append(values)
    (head,) = records.get("census", [["0"]])
    if int(head[0]) != FORMAT or "end" not in records:
        raise BuildError(f"{path} is no whole dump of format {FORMAT}; take the census again")
    contexts = {
        (int(thread), int(number)): tuple(int(frame, 16) for frame in frames)
        for thread, number, *frames in records.get("context", [])
    }
    steps: dict[int, list[Step]] = {}
    for thread, delta, line, step_kind in records.get("step", []):
        steps.setdefault(int(thread), []).append(Step(int(delta), int(line, 16), int(step_kind)))
    return Dump(
        line_size=int(head[1]),
        burst=int(head[2]),
        threads={int(t): Thread(int(a), int(b), int(c)) for t, a, b, c in records.get("thread", [])},
        instructions={
            int(number): Instruction(int(pc, 16), locked == "1")
            for number, pc, locked in records.get("instruction", [])
        },
        lines=[
            LineCount(int(t), int(line, 16), int(reads), int(writes), int(bursts))
            for t, line, reads, writes, bursts in records.get("line", [])
        ],
        accesses=[
            Access(int(t), int(word, 16), int(number), contexts[int(t), int(context)], int(reads), int(writes))
            for t, word, number, context, reads, writes in records.get("access", [])
        ],
        calls=[
            Call(int(t), int(number), int(detail), contexts[int(t), int(context)], int(count))
            for t, number, detail, context, count in records.get("syscall", [])
        ],
        steps=steps,
    )
