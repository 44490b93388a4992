"""What the patches are to take out, as it looks in a stack: the five bottlenecks of the article's kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ftnumpy.census.grids import Grid
from ftnumpy.flames.stacks import Folded, Stack

GONE = 0.05  # of what it was: a sample that strays is not a bottleneck


@dataclass(frozen=True, kw_only=True)
class Bottleneck:
    """``pattern`` finds it in a stack that is written as ``;outer;inner;``."""

    name: str
    about: str
    pattern: str

    def share(self, found: Folded) -> float:
        """The part of ``found``'s samples that has it, 0 to 1."""
        return sum(count for stack, count in found.counts.items() if self.place(stack) is not None) / found.total

    def place(self, stack: Stack) -> int | None:
        """Where in ``stack`` is the frame that it ends in; None when it isn't there."""
        text = f";{';'.join(frame.name for frame in stack)};"
        match = re.search(self.pattern, text)
        return text.count(";", 0, match.end()) - 2 if match else None


BOTTLENECKS = (
    Bottleneck(
        name="tracemalloc",
        about="each allocation and release of an array acquires a thread state to find tracemalloc off",
        pattern=r";PyTraceMalloc_(Track|Untrack);(.*;)?PyGILState_\w+;",
    ),
    Bottleneck(
        name="dispatch cache",
        about="each ufunc call takes a lock for reading, and detaches its thread state for it",
        pattern=r";promote_and_get_ufuncimpl;(.*;)?(PyArrayIdentityHash_GetItemWithLock|pthread_rwlock_\w+);",
    ),
    Bottleneck(
        name="memory handler",
        about="each array looks the handler up in the context and counts a reference to it, and down again",
        pattern=r";(PyDataMem_GetHandler;(.*;)?PyContextVar_Get|array_dealloc;_Py_DecRefShared);",
    ),
    Bottleneck(
        name="module attributes",
        about="each np.sin is searched for in the module's type and dict",
        pattern=r";_Py_module_getattro\w*;",
    ),
    Bottleneck(
        name="allocator",
        about="array data and shapes come from the C library's malloc",
        pattern=r";(array_dealloc|default_\w+|npy_\w+|PyDataMem_\w+);(malloc|calloc|realloc|cfree|free);",
    ),
)


def failures(stock: Folded, patched: Folded) -> list[str]:
    """The bottlenecks that can't be seen on ``stock``, or are not gone on ``patched``."""
    found = []
    for each in BOTTLENECKS:
        before, after = each.share(stock), each.share(patched)
        if not before:
            found.append(f"{each.name}: not seen on stock, so that nothing can be said of it")
        elif after > GONE * before:
            found.append(f"{each.name}: {before:.1%} of the samples on stock, still {after:.1%} on patched")
    return found


def grid(workload: str, found: Mapping[str, Folded]) -> Grid:
    """The share of each bottleneck of ``workload`` by variant."""
    return Grid(
        title=f"{workload}: part of the samples whose stack has a bottleneck",
        columns=("bottleneck", *found, "what it is"),
        words=frozenset((0, 1 + len(found))),
        rows=tuple(
            (each.name, *(f"{each.share(folded):.1%}" for folded in found.values()), each.about) for each in BOTTLENECKS
        ),
        sums=(("samples", *(f"{folded.total:,}" for folded in found.values()), ""),),
    )
