"""What a census counts, from the words that the user gave."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ftnumpy.census.workloads import Workload, select
from ftnumpy.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Target:
    """``workloads``, or else a ``program`` with its arguments, which is counted as it is."""

    workloads: tuple[Workload, ...]
    program: tuple[str, ...]

    def __str__(self) -> str:
        if self.program:
            return Path(self.program[0]).name
        return self.workloads[0].name if len(self.workloads) == 1 else f"{len(self.workloads)} workloads"


def read_target(words: Sequence[str]) -> Target:
    """``words``: none for all named workloads, names of some, ``module:function``, or a program and its arguments.

    Raises `UsageError` for anything else.
    """
    first = words[0] if words else ""
    if first.endswith(".py") or "/" in first:
        if not Path(first).is_file():
            raise UsageError(f"there is no program {first}")
        return Target(workloads=(), program=tuple(words))
    option = next((word for word in words if word.startswith("-")), None)
    if option is not None:
        raise UsageError(f"{option} stands behind what is to be counted; options of the census come before it")
    if ":" in first:
        if len(words) > 1:
            raise UsageError(f"{first} is called without arguments, and alone: what is {words[1]!r}?")
        return Target(workloads=(_function(first),), program=())
    return Target(workloads=select(words), program=())


def _function(name: str) -> Workload:
    """The call of ``module:function`` as a workload; the module is looked for in the current folder, too."""
    match = re.fullmatch(r"([\w.]+):(\w+(?:\.\w+)*)", name)
    if match is None:
        raise UsageError(f"{name!r} is no function; give it as module:function")
    module, function = match.groups()
    return Workload(name=name, setup=f"import {module}\n_function = {module}.{function}", statement="_function()")
