"""From a dump, names and symbols to a `tally.Census`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ftnumpy.census import names as naming
from ftnumpy.census.dump import Access, Dump
from ftnumpy.census.names import Memory, Names
from ftnumpy.census.tally import Census, Frame, Line, Owner, Site, Syscall, Word

# x86-64, those that matter for scaling; others keep their number.
SYSCALLS = {
    0: "read", 1: "write", 3: "close", 9: "mmap", 10: "mprotect", 11: "munmap", 12: "brk", 24: "sched_yield",
    25: "mremap", 28: "madvise", 35: "nanosleep", 202: "futex", 228: "clock_gettime", 230: "clock_nanosleep",
    257: "openat", 262: "newfstatat", 318: "getrandom",
}  # fmt: skip
FUTEX = {0: "wait", 1: "wake", 9: "wait_bitset", 10: "wake_bitset"}
MADVISE = {4: "dontneed", 8: "free", 14: "hugepage", 15: "nohugepage"}

NAMED = 3  # of a line's owners are in its name

# Functions that only do what their caller asks; the caller is who uses a block.
HELPERS = re.compile(
    r"_?Py_(X?(In|De)c[Rr]ef|INCREF|DECREF|XINCREF|XDECREF|DecRefShared|Try\w*Ref|Try\w*ref|NewRef|XNewRef|atomic).*"
    r"|_Py_dict_lookup\w*|_?PyDict_GetItem\w*"
    r"|_Py_atomic_\w+|_?_?_?(GI_)?_*pthread_\w+|__lll_\w+|PyMutex_\w+|_PyMutex_\w+|std::.*|__gthread\w*|\?"
)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What was counted, as the runner knows it.  ``iterations`` is per thread."""

    workload: str
    variant: str
    iterations: int
    qemu: str
    seconds: float


@dataclass
class _Tally:
    locked: int = 0
    plain: int = 0
    reads: int = 0

    def add(self, access: Access, locked: bool) -> None:
        self.reads += access.reads
        if locked:
            self.locked += access.writes
        else:
            self.plain += access.writes


def census(dump: Dump, names: Names, memory: Memory, subject: Subject) -> Census:
    """The census of one workload."""
    threads = max(1, len(dump.threads))
    share = 1 / (subject.iterations * threads)
    accesses: dict[int, list[Access]] = defaultdict(list)
    for access in dump.accesses:
        accesses[access.word // dump.line_size * dump.line_size].append(access)
    # All at once: addr2line takes its time to start.
    names.symbols.frames(_addresses(dump))
    lines = [_line(dump, names, memory, address, found, share) for address, found in accesses.items()]
    return Census(
        workload=subject.workload,
        variant=subject.variant,
        python=names.python,
        numpy=names.numpy,
        threads=threads,
        iterations=subject.iterations,
        instructions=sum(thread.instructions for thread in dump.threads.values()) * share,
        lines=tuple(sorted(lines, key=lambda line: (-line.locked, -line.plain, line.name, line.address))),
        syscalls=_syscalls(dump, names, share),
        qemu=subject.qemu,
        seconds=subject.seconds,
    )


def _addresses(dump: Dump) -> set[int]:
    found = {dump.instructions[access.instruction].pc for access in dump.accesses}
    # A return address may already belong to the next line or function.
    found |= {frame - 1 for access in dump.accesses for frame in access.context}
    found |= {frame - 1 for call in dump.calls for frame in call.context}
    return found


def _chain(dump: Dump, names: Names, pc: int | None, context: tuple[int, ...]) -> tuple[Frame, ...]:
    known = names.symbols.frames(())
    own = known[pc] if pc is not None else ()
    return (*own, *(frame for address in context for frame in known[address - 1]))


def _line(dump: Dump, names: Names, memory: Memory, address: int, accesses: Sequence[Access], share: float) -> Line:
    words: dict[int, _Tally] = defaultdict(_Tally)
    threads: dict[int, set[int]] = defaultdict(set)
    sites: dict[tuple[Frame, ...], _Tally] = defaultdict(_Tally)
    users: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    total = _Tally()
    for access in accesses:
        instruction = dump.instructions[access.instruction]
        chain = _chain(dump, names, instruction.pc, access.context)
        for tally in (words[access.word], sites[chain], total):
            tally.add(access, instruction.locked)
        threads[access.word].add(access.thread)
        users[access.word][_user(chain)] += access.writes
    owners = {word: _owner(names, memory, word, users[word]) for word in words}
    written = [word for word, tally in words.items() if tally.locked + tally.plain]
    written.sort(key=lambda word: (-words[word].locked - words[word].plain, word))
    return Line(
        name=" + ".join(list(dict.fromkeys(str(owners[word]) for word in written))[:NAMED]),
        address=address,
        locked=total.locked * share,
        plain=total.plain * share,
        reads=total.reads * share,
        bursts=sum(count.bursts for count in dump.lines if count.line == address) * share,
        true_sharing=any(len(threads[word]) > 1 for word in written),
        threads=len(set().union(*threads.values())),
        words=tuple(
            Word(
                offset=word - address,
                owner=owners[word],
                locked=tally.locked * share,
                plain=tally.plain * share,
                reads=tally.reads * share,
                threads=len(threads[word]),
            )
            for word, tally in sorted(words.items())
        ),
        sites=tuple(
            Site(frames=chain, locked=tally.locked * share, plain=tally.plain * share, reads=tally.reads * share)
            for chain, tally in sorted(sites.items(), key=lambda item: _order(item[0], item[1]))
        ),
    )


def _owner(names: Names, memory: Memory, word: int, users: dict[str, int]) -> Owner:
    """What lies at ``word``; what has no name of its own is called after its busiest user."""
    found = naming.owner(names, memory, word) or Owner(kind="unknown", name="", field="")
    return found if found.name else replace(found, name=f"used by {_most(users)}")


def _order(chain: tuple[Frame, ...], tally: _Tally) -> tuple[object, ...]:
    return (-tally.locked - tally.plain, -tally.reads, [(frame.function, frame.line) for frame in chain])


def _user(chain: tuple[Frame, ...]) -> str:
    """The innermost function that is no mere helper."""
    functions = [frame.function for frame in chain]
    return next((name for name in functions if not HELPERS.fullmatch(name)), functions[0])


def _most(counts: dict[str, int]) -> str:
    return min(counts, key=lambda name: (-counts[name], name))


def _syscalls(dump: Dump, names: Names, share: float) -> tuple[Syscall, ...]:
    by_kind: dict[tuple[str, str], dict[tuple[Frame, ...], int]] = defaultdict(lambda: defaultdict(int))
    for call in dump.calls:
        name = SYSCALLS.get(call.number, f"number {call.number}")
        kinds = {"futex": FUTEX, "madvise": MADVISE}.get(name)
        detail = kinds.get(call.detail, str(call.detail)) if kinds is not None else ""
        by_kind[name, detail][_chain(dump, names, None, call.context)] += call.count
    found = []
    for (name, detail), chains in by_kind.items():
        busiest = max(chains, key=lambda chain: chains[chain])
        found.append(Syscall(name=name, detail=detail, count=sum(chains.values()) * share, frames=busiest))
    return tuple(sorted(found, key=lambda call: (-call.count, call.name, call.detail)))
