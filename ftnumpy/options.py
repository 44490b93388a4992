"""What the user asks the sessions for, the same for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ftnumpy.stack import Variant


@dataclass(frozen=True, kw_only=True)
class Options:
    """One run's wishes: which ``variant`` in which build ``profile``, how many ``minutes`` of stress from which
    ``seed``, and the folder for this run's ``logs``, one file per step."""

    variant: Variant
    profile: str
    minutes: float
    seed: int
    logs: Path

    @property
    def environment_name(self) -> str:
        """The variant's, with the profile behind it where that is not the default."""
        return self.variant.name + ("" if self.profile == "default" else f"-{self.profile}")
