"""What the user asks of a run of upstream's suites."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """``words`` name suites, none for all; ``fast`` asks for the modules about what the patches change, instead of the
    whole suites."""

    words: tuple[str, ...]
    fast: bool
