"""Whether a virtual environment still has what was installed into it.

Standard library only: ``ftnumpy.bootstrap`` asks, too, and that runs in the Python that nox has.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path


def damage(folder: Path, requires: Iterable[str | Path]) -> str | None:
    """What is wrong with the environment ``folder``, into which pip installed ``requires`` (names or wheels); None when
    every file that its packages list is there with its size.

    Files that changed and kept their size are not found, nor are ones that nobody lists, such as compiled modules.
    """
    if not (folder / "bin" / "python").exists():
        return "bin/python is missing"
    found: dict[str, str] = {}
    for site in folder.glob("lib/python*/site-packages"):
        # Not by importlib.metadata, which from Python 3.12 on leaves out of the list what is not there.
        for record in site.glob("*.dist-info/RECORD"):
            name, version = record.parent.name.removesuffix(".dist-info").split("-")
            found[_plain(name)] = version
            with record.open(encoding="utf-8", newline="") as lines:
                for path, _, size in csv.reader(lines):
                    # Only what is listed with a size is never written again.
                    if size and not _has_size(site / path, int(size)):
                        return f"{path} of {name} is missing or has another size"
    for required in requires:
        name, wanted = _name_and_version(required)
        if name not in found:
            return f"{name} is missing"
        if wanted is not None and found[name] != wanted:
            return f"{name} is {found[name]}, not {wanted}"
    return None


def _has_size(file: Path, size: int) -> bool:
    try:
        return file.stat().st_size == size
    except OSError:
        return False


def _name_and_version(required: str | Path) -> tuple[str, str | None]:
    """Of a wheel both; of a requirement, whose version may be a range, only the name."""
    if isinstance(required, Path):
        name, version = required.name.split("-")[:2]
        return _plain(name), version
    return _plain(re.split(r"[^\w.-]", required, maxsplit=1)[0]), None


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
