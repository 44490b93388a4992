"""What the user asks of a census."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """``words`` say what to count: none for the whole list, names of workloads, ``module:function``, a program and its
    arguments, or ``compare`` and the sides of a comparison with one of these.

    ``python`` is an interpreter to count instead of the variant's, ``iterations`` None for what fits the workload,
    ``out`` where reports go instead of ``.build/census``.  ``native`` asks for a native run and the model besides.
    ``fetch_qemu`` asks for QEMU to be unpacked into the cache, and for nothing else.
    """

    words: tuple[str, ...]
    python: Path | None
    threads: int
    iterations: int | None
    native: bool
    out: Path | None
    fetch_qemu: bool
