"""What a census found, as data: every figure is per iteration of the workload and per thread.

A line is a cache line of 64 bytes that at least two threads touched inside their windows and at least one wrote.
"""

from __future__ import annotations

from dataclasses import dataclass

FORMAT = 1  # raised whenever a field changes its meaning


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A place in the code.  Without debug information ``file`` is the object file's name and ``line`` is 0."""

    function: str
    file: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Site:
    """Who touches a line: the instruction's own place first (inlined ones before what they are inlined into), then
    its callers."""

    frames: tuple[Frame, ...]
    locked: float  # writes by locked instructions
    plain: float  # other writes
    reads: float


@dataclass(frozen=True, kw_only=True)
class Owner:
    """What lies at an address.

    ``kind``: a type's name (``ufunc``, ``PyCapsule``, ``module``, …), ``static``, ``block`` or ``unknown``.
    ``name``: ``np.sin``, ``mem_handler``, a variable's name, or the function that allocated the block.
    ``field``: the part of it, such as ``ob_ref_shared`` or ``+48``.
    """

    kind: str
    name: str
    field: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".strip()


@dataclass(frozen=True, kw_only=True)
class Word:
    """Eight bytes of a line, ``offset`` bytes from its start."""

    offset: int
    owner: Owner
    locked: float
    plain: float
    reads: float
    threads: int  # that touched it


@dataclass(frozen=True, kw_only=True)
class Line:
    """A shared written line.  ``name`` tells it apart in every run: the owners of its written words, busiest first."""

    name: str
    address: int
    locked: float
    plain: float
    reads: float
    bursts: float  # runs of accesses with a write, each run no more than 200 instructions from one access to the next
    true_sharing: bool  # a written word was touched by two threads; otherwise only the line is shared
    threads: int  # that touched it
    words: tuple[Word, ...]
    sites: tuple[Site, ...]  # busiest writers first


@dataclass(frozen=True, kw_only=True)
class Syscall:
    """A system call inside the windows; ``detail`` is a futex's operation or madvise's advice, else empty."""

    name: str
    detail: str
    count: float
    frames: tuple[Frame, ...]  # its busiest caller


@dataclass(frozen=True, kw_only=True)
class Census:
    """One workload's census.  ``iterations`` is per thread; 1 when the program was counted as a whole."""

    workload: str
    variant: str  # stock, patched, a prefix, or the interpreter's path
    python: str  # sys.version
    numpy: str  # numpy.__version__, or empty
    threads: int
    iterations: int
    instructions: float
    lines: tuple[Line, ...]  # most locked writes first, then most plain ones
    syscalls: tuple[Syscall, ...]
    qemu: str
    seconds: float  # from start to finished data

    @property
    def locked(self) -> float:
        """Locked writes to shared lines."""
        return sum(line.locked for line in self.lines)

    @property
    def plain(self) -> float:
        """Other writes to shared lines."""
        return sum(line.plain for line in self.lines)
