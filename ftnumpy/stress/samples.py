"""What a kind of stress held at moments when nothing ran, as it left it: a line of JSON for each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ftnumpy.census.report import read
from ftnumpy.errors import BuildError


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What was held after ``seconds`` of the run.

    ``resident`` memory in bytes, ``blocks`` that `sys.getallocatedblocks` counts, open file ``descriptors``,
    ``threads`` of the process, ``uncollectable`` objects, ``collections`` so far, and how many ``objects`` of each type
    the garbage collector knows (without types of which there are few).
    """

    seconds: float
    resident: int
    blocks: int
    descriptors: int
    threads: int
    uncollectable: int
    collections: int
    objects: dict[str, int]


def load(file: Path) -> tuple[Sample, ...]:
    """All samples in ``file``, in the order of time; none where there is no file.  Raises `BuildError`."""
    try:
        return tuple(read(Sample, json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines())
    except FileNotFoundError:
        return ()
    except (ValueError, TypeError, KeyError, AttributeError):
        raise BuildError(f"{file} holds something else than samples; the kind that wrote it is broken") from None
