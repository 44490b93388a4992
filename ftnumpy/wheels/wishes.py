"""What the user asks of a run of the session ``wheels``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """``url`` is where the wheelhouse will be served, None where it is; ``image`` the base image that the user wants,
    if any; without ``container`` the wheel is the one that this machine has built for itself."""

    url: str | None
    image: str | None
    container: bool
