"""The kinds of stress: which there are, how the time is shared, and what of them may grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ftnumpy.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Kind:
    """``name`` is that of its file in tests/stress, ``share`` its part of the time relative to others.

    ``grows``: measures (see `ftnumpy.stress.level`) that grow for as long as it runs, by what upstream does.
    """

    name: str
    share: int = 1
    grows: tuple[str, ...] = ()


KINDS = (
    Kind(name="kernel"),
    Kind(name="dispatch_cache"),
    Kind(name="tracemalloc_switch"),
    Kind(name="memory_handlers"),
    Kind(name="allocator"),
    Kind(name="forks"),
    Kind(name="large_arrays"),
    # Makes code all the time.  CPython 3.13 makes code objects and functions immortal on the free-threaded build once
    # a thread was started (gh-117783), and 3.14 no longer does.
    Kind(name="module_attributes", grows=("blocks", "objects: function")),
    Kind(name="together", share=8),
)


def chosen(names: Sequence[str]) -> tuple[Kind, ...]:
    """The kinds of ``names``, all where there are none.  Raises `UsageError` for one that does not exist."""
    known = {kind.name: kind for kind in KINDS}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no kind of stress {name!r}; there are {', '.join(known)}")
    return tuple(known[name] for name in names) or KINDS


def seconds(kinds: Sequence[Kind], minutes: float) -> dict[str, float]:
    """How long each of ``kinds`` runs if all of them take ``minutes``."""
    whole = sum(kind.share for kind in kinds)
    return {kind.name: 60 * minutes * kind.share / whole for kind in kinds}
