"""The wheelhouse as a team serves it: wheel, archives, pages, lists and sums."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ftnumpy import wheelhouse
from ftnumpy.settings import Settings
from ftnumpy.wheels import downloads, index, manifest
from ftnumpy.wheels.manifest import Made, Product

BILL = "sbom.cdx.json"
MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
INDEX = "simple"


def publish(settings: Settings, made: Made, url: str | None) -> tuple[Path, tuple[Product, ...]]:
    """Fill the wheelhouse; returns the folder and what was put there.

    ``url`` is where the folder will be served, by default where it is.  What pages and lists name is there before them;
    what an earlier run has put there and this one does not is taken away.
    """
    with wheelhouse.opened(settings) as folder:
        before = _listed(folder / SUMS)
        products: list[Product] = []

        def put(name: str, content: Path | bytes) -> Product:
            file = wheelhouse.put(folder / name, content)
            with file.open("rb") as stream:
                sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            products.append(Product(name=name, size=file.stat().st_size, sha256=sha256))
            return products[-1]

        wheel = index.read_wheel(made.wheel.path)
        put(wheel.filename, made.wheel.path)
        put(f"{wheel.filename}.metadata", wheel.metadata)
        put(made.archive.zst.name, made.archive.zst)
        gz = put(made.archive.gz.name, made.archive.gz)
        for name, page in index.pages([wheel], above="..").items():
            put(f"{INDEX}/{name}", page)
        version = made.interpreter.release.version
        put(
            downloads.NAME,
            downloads.listing(made.archive.contents, version, gz.sha256, url or folder.as_uri()),
        )
        put(BILL, manifest.bill(made))
        put(MANIFEST, manifest.manifest(made, products))
        wheelhouse.put(folder / SUMS, manifest.sums(products))
        for name in before - {product.name for product in products}:
            (folder / name).unlink(missing_ok=True)
    return folder, tuple(products)


def _listed(sums: Path) -> set[str]:
    """The files that an earlier run's ``sums`` name; none where there is no such file."""
    if not sums.is_file():
        return set()
    return {line.split("  ", 1)[1] for line in sums.read_text(encoding="utf-8").splitlines()}
