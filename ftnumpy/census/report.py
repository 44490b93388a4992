"""All that is known of one workload: its census, what a native run adds, and what the model says; as a file."""

from __future__ import annotations

import dataclasses
import json
import os
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftnumpy.census.tally import FORMAT, Census
from ftnumpy.census.timing import Native, Prediction
from ftnumpy.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Report:
    """``native`` and ``prediction`` are None where nobody asked for them or the machine has no way to make them."""

    census: Census
    native: Native | None
    prediction: Prediction | None


def save(report: Report, path: Path) -> None:
    """Write ``report`` as JSON, whole or not at all."""
    write(path, json.dumps({"format": FORMAT} | dataclasses.asdict(report), indent=1) + "\n")


def write(path: Path, text: str) -> None:
    """Write ``text``, whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8")
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)


def load(path: Path) -> Report:
    """The report that `save` wrote to ``path``.  Raises `UsageError` when that isn't one, or one of another format."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        found = data.pop("format")
        if found != FORMAT:
            raise UsageError(f"{path} has format {found}, this ftnumpy reads format {FORMAT}; take the census again")
        report: Report = read(Report, data)
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UsageError(f"{path} is not a census; give a JSON file that 'ftnumpy census' wrote") from None
    return report


def read(kind: Any, data: Any) -> Any:
    """``data``, made of dicts and lists, as ``kind``: a dataclass, a tuple or a mapping of one kind, an optional, or a
    plain value.  Raises `TypeError` or `KeyError` when it is something else."""
    arguments = typing.get_args(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        kinds = typing.get_type_hints(kind)
        return kind(**{name: read(kinds[name], value) for name, value in data.items()})
    if isinstance(kind, types.UnionType):
        return None if data is None else read(arguments[0], data)
    if typing.get_origin(kind) is tuple:
        return tuple(read(arguments[0], value) for value in data)
    if typing.get_origin(kind) in (dict, Mapping):
        return {name: read(arguments[1], value) for name, value in data.items()}
    if not isinstance(data, (int, float) if kind is float else kind):
        raise TypeError
    return data
