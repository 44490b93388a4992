"""A package index of plain files: the Simple API's pages (PEPs 503, 691, 700), and metadata by PEP 658."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from email.parser import BytesHeaderParser
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from ftnumpy.errors import BuildError

VERSION = "1.1"  # of the Simple API


@dataclass(frozen=True, kw_only=True)
class File:
    """A wheel as the index lists it.  ``size`` is in bytes; ``requires_python`` is empty where it doesn't say."""

    project: str
    filename: str
    version: str
    size: int
    sha256: str
    metadata: bytes
    requires_python: str

    @property
    def metadata_sha256(self) -> str:
        return hashlib.sha256(self.metadata).hexdigest()


def read_wheel(wheel: Path) -> File:
    """What the index says of ``wheel``.  Raises `BuildError` when that is none."""
    try:
        name, version, _, _ = parse_wheel_filename(wheel.name)
        with zipfile.ZipFile(wheel) as archive:
            (metadata,) = (entry for entry in archive.namelist() if _is_metadata(entry))
            content = archive.read(metadata)
    except (InvalidWheelFilename, zipfile.BadZipFile, ValueError) as error:
        raise BuildError(f"{wheel} can't be listed in the index, as it is no wheel: {error}") from None
    return File(
        project=canonicalize_name(name),
        filename=wheel.name,
        version=str(version),
        size=wheel.stat().st_size,
        sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        metadata=content,
        requires_python=BytesHeaderParser().parsebytes(content).get("Requires-Python", ""),
    )


def _is_metadata(entry: str) -> bool:
    folder, _, name = entry.rpartition("/")
    return folder.endswith(".dist-info") and "/" not in folder and name == "METADATA"


def pages(files: Sequence[File], above: str) -> dict[str, bytes]:
    """The files of the index, by their paths below its folder.

    The wheels and, beside each, its metadata are looked for in ``above``, a relative path from the index's folder.
    """
    projects = sorted({file.project for file in files})
    meta = {"api-version": VERSION}
    environment = Environment(
        loader=PackageLoader("ftnumpy.wheels", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    result = {
        "index.html": environment.get_template("root.html.jinja").render(projects=projects).encode(),
        "index.json": _json({"meta": meta, "projects": [{"name": project} for project in projects]}),
    }
    for project in projects:
        entries = [_entry(file, above) for file in files if file.project == project]
        page = environment.get_template("project.html.jinja").render(name=project, files=entries)
        result[f"{project}/index.html"] = page.encode()
        result[f"{project}/index.json"] = _json(_project(project, meta, files, entries))
    return result


def _entry(file: File, above: str) -> dict[str, str]:
    """What the HTML page says of ``file``."""
    return {
        "filename": file.filename,
        # A plus is a space to some servers.
        "url": f"../{above}/{quote(file.filename)}",
        "sha256": file.sha256,
        "requires_python": file.requires_python,
        "metadata_sha256": file.metadata_sha256,
    }


def _project(project: str, meta: dict[str, str], files: Iterable[File], entries: list[dict[str, str]]) -> object:
    """What the JSON page says of ``project``."""
    mine = [file for file in files if file.project == project]
    return {
        "meta": meta,
        "name": project,
        "versions": sorted({file.version for file in mine}),
        "files": [
            {
                "filename": file.filename,
                "url": entry["url"],
                "size": file.size,
                "hashes": {"sha256": file.sha256},
                **({"requires-python": file.requires_python} if file.requires_python else {}),
                "core-metadata": {"sha256": file.metadata_sha256},
            }
            for file, entry in zip(mine, entries, strict=True)
        ],
    }


def _json(data: object) -> bytes:
    return (json.dumps(data, indent=1) + "\n").encode()
