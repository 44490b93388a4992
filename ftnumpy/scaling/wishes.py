"""What the user asks of a scaling run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """``words`` name workloads or classes of them, none for all; ``workers`` is a list such as ``1,2,4``, None for all
    from 1 to the machine's processors; ``launches`` is how many times each workload gets new processes.  ``docs`` asks
    for the figures to be written into docs/performance.md."""

    words: tuple[str, ...]
    workers: str | None
    launches: int
    docs: bool
