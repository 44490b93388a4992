"""Whether a virtual environment still has what was installed into it.

Standard library only: ``ftnumpy.bootstrap`` asks, too, and that runs in the Python that nox has.
"""

from __future__ import annotations

import importlib.metadata
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
        for distribution in importlib.metadata.distributions(path=[str(site)]):
            name = distribution.metadata["Name"]
            if name is None:
                return f"{distribution.locate_file('')}: a package has lost its name"
            found[_plain(name)] = distribution.version
            for file in distribution.files or ():
                path = Path(str(file.locate()))
                # Only what is listed with a size is never written again.
                if file.size is not None and (not path.is_file() or path.stat().st_size != file.size):
                    return f"{file.name} of {name} is missing or has another size"
    for required in requires:
        name, version = _name_and_version(required)
        if name not in found:
            return f"{name} is missing"
        if version is not None and found[name] != version:
            return f"{name} is {found[name]}, not {version}"
    return None


def _name_and_version(required: str | Path) -> tuple[str, str | None]:
    """Of a wheel both; of a requirement, whose version may be a range, only the name."""
    if isinstance(required, Path):
        name, version = required.name.split("-")[:2]
        return _plain(name), version
    return _plain(re.split(r"[^\w.-]", required, maxsplit=1)[0]), None


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
