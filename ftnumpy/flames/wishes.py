"""What the user asks of flame graphs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """``workload`` is the name of one of `ftnumpy.scaling.workloads`; ``threads`` run it for ``seconds``."""

    workload: str
    threads: int
    seconds: float
