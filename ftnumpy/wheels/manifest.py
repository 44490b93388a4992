"""What was made, from what, by what and how long it took: as JSON for people, as a bill of materials for scanners."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType, Pedigree
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from ftnumpy import fingerprint, patchqueue
from ftnumpy.cpython import Interpreter
from ftnumpy.numpy_wheel import Wheel
from ftnumpy.stack import Project, Release, Stack
from ftnumpy.wheels.archive import Archive
from ftnumpy.wheels.image import Image
from ftnumpy.wheels.libraries import Library

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Made:
    """What a run of the session has in hand: ``interpreter`` is the one in the archive; ``image`` is what the wheel was
    built in, by ``engine``, None where that was the machine itself; ``commit`` is the toolchain's own, None when it is
    in no git repository."""

    stack: Stack
    interpreter: Interpreter
    archive: Archive
    wheel: Wheel
    image: Image | None
    engine: str | None
    commit: str | None


@dataclass(frozen=True, kw_only=True)
class Product:
    """A file of the wheelhouse.  ``size`` is in bytes."""

    name: str
    size: int
    sha256: str


def manifest(made: Made, products: Sequence[Product]) -> bytes:
    """All of it but for the files that name themselves: the manifest and the sums."""
    data = {
        "format": FORMAT,
        "series": made.stack.series,
        "label": made.stack.local_version,
        "toolchain": {"commit": made.commit},
        "image": _image(made),
        "cpython": _project(made.stack.cpython, made.interpreter.prefix),
        "numpy": _project(made.stack.numpy, made.wheel.path.parent)
        | {"wheel": made.wheel.version, "requires": list(made.stack.numpy.requires)},
        "archive": asdict(made.archive.contents) | _times(made.archive.zst.parent),
        "files": [asdict(product) for product in products],
    }
    return (json.dumps(data, indent=1) + "\n").encode()


def _image(made: Made) -> dict[str, object] | None:
    """What the wheel was built in; None where that was the machine itself."""
    if made.image is None:
        return None
    base = made.image.base
    return {
        "engine": made.engine,
        "image": made.image.name,
        "id": made.image.identity,
        "base": {"kind": base.kind, "image": base.name, "id": base.identity, "glibc": base.glibc},
        "compiler": made.image.compiler,
    }


def _project(project: Project, build: Path) -> dict[str, object]:
    inputs, release = _inputs(build), _release(project, build)
    return {
        "version": release.version,
        "source": {"archive": release.archive, "sha256": release.sha256, "url": release.url},
        "patches": [
            {"file": f"{project.queue.folder.name}/{patch.file.name}", "sha256": patchqueue.sha256(patch.file)}
            for patch in patchqueue.read_queue(project.queue)
        ],
        "options": inputs["options"].split(),
        "compiler": inputs["compiler"],
        "fingerprint": fingerprint.fingerprint(inputs),
    } | _times(build)


def _inputs(build: Path) -> dict[str, str]:
    inputs: dict[str, str] = fingerprint.read_description(build)["inputs"]  # type: ignore[assignment]
    return inputs


def _release(project: Project, build: Path) -> Release:
    """The one that ``build`` was made from."""
    sha256 = _inputs(build)["archive"]
    return next(release for release in project.releases if release.sha256 == sha256)


def _times(build: Path) -> dict[str, object]:
    """When (UTC) the build of that folder began and how many seconds it took."""
    description = fingerprint.read_description(build)
    return {"started": description["started"], "seconds": description["seconds"]}


def bill(made: Made) -> bytes:
    """The bill of materials, in CycloneDX's JSON: the same bytes whenever the same is made.

    So each component gets its reference from us; the library would draw one by lot.
    """
    version = f"{made.interpreter.release.version}+{made.stack.local_version}"
    cpython = _component(made.stack.cpython, made.interpreter.prefix, version)
    numpy = _component(made.stack.numpy, made.wheel.path.parent, made.wheel.version)
    bundled = [_library(library) for library in made.archive.contents.libraries]
    inside = [_requirement(word) for word in made.stack.numpy.requires if "openblas" in word]
    bom = Bom(components=[cpython, numpy, *bundled, *inside])
    bom.metadata.component = Component(
        bom_ref="stack",
        name=f"ftnumpy-{made.stack.series}",
        version=made.stack.local_version,
        type=ComponentType.APPLICATION,
    )
    bom.metadata.timestamp = datetime.fromtimestamp(made.archive.contents.epoch, UTC)
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, f"{made.archive.fingerprint} {made.wheel.fingerprint}")
    bom.register_dependency(bom.metadata.component, [cpython, numpy])
    bom.register_dependency(cpython, bundled)
    bom.register_dependency(numpy, inside)
    return (JsonV1Dot6(bom).output_as_string(indent=1) + "\n").encode()


def _component(project: Project, build: Path, version: str) -> Component:
    """An upstream release with our patches, which is no longer upstream's: scanners find its ancestor."""
    release = _release(project, build)
    purl = (
        PackageURL("pypi", None, release.project, version)
        if release.index_project
        else PackageURL("generic", None, release.project, version, {"download_url": release.url or release.archive})
    )
    origin = Component(
        bom_ref=f"{release.project}-{release.version}",
        name=release.project,
        version=release.version,
        type=ComponentType.LIBRARY,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=release.sha256)],
    )
    return Component(
        name=release.project,
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref=str(purl),
        purl=purl,
        pedigree=Pedigree(ancestors=[origin]),
        properties=[
            Property(name=f"ftnumpy:patch:{patch.file.name}", value=f"sha256:{patchqueue.sha256(patch.file)}")
            for patch in patchqueue.read_queue(project.queue)
        ],
    )


def _library(library: Library) -> Component:
    package = library.package
    purl = PackageURL("deb", package.distribution, package.name, package.version)
    return Component(
        name=library.soname,
        version=package.version,
        type=ComponentType.LIBRARY,
        # Not the purl: a package may have brought several.
        bom_ref=library.name,
        purl=purl,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=library.sha256)],
        properties=[Property(name="ftnumpy:source-package", value=package.source)],
    )


def _requirement(pinned: str) -> Component:
    name, _, version = pinned.partition("==")
    purl = PackageURL("pypi", None, name, version)
    return Component(name=name, version=version, type=ComponentType.LIBRARY, bom_ref=str(purl), purl=purl)


def sums(products: Iterable[Product]) -> bytes:
    """What ``sha256sum --check`` reads."""
    return "".join(f"{product.sha256}  {product.name}\n" for product in products).encode()
