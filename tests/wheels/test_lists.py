"""The sums, the manifest and the bill of materials say what is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from handling import said

from ftnumpy.settings import read_settings

ROOT = Path(__file__).parents[2]


def test_the_sums_are_right_and_complete(wheelhouse: Path) -> None:
    done = subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=wheelhouse)
    assert done.returncode == 0
    listed = {line.split("  ", 1)[1] for line in (wheelhouse / "SHA256SUMS").read_text().splitlines()}
    assert {"downloads.json", "manifest.json", "sbom.cdx.json", "simple/numpy/index.html"} <= listed


def test_the_manifest_names_all_that_went_in(wheelhouse: Path) -> None:
    manifest = json.loads((wheelhouse / "manifest.json").read_text())
    for name, folder in (("cpython", "cpython-patches"), ("numpy", "patches")):
        series = [line for line in (ROOT / folder / "series").read_text().splitlines() if line.endswith(".patch")]
        assert [patch["file"] for patch in manifest[name]["patches"]] == [f"{folder}/{patch}" for patch in series]
        assert len(manifest[name]["source"]["sha256"]) == 64 and "gcc" in manifest[name]["compiler"]
    assert all((wheelhouse / file["name"]).stat().st_size == file["size"] for file in manifest["files"])
    for folder in (wheelhouse.parent, read_settings(os.environ).cache):
        assert f"{folder}/" not in json.dumps(manifest)


def test_the_bill_names_each_library(wheelhouse: Path) -> None:
    bill = (wheelhouse / "sbom.cdx.json").read_text()
    names = {component["name"] for component in json.loads(bill)["components"]}
    libraries = {
        library["soname"] for library in json.loads((wheelhouse / "manifest.json").read_text())["archive"]["libraries"]
    }
    assert {"cpython", "numpy", "libssl.so.3"} <= names and libraries < names


def test_the_wheel_keeps_what_its_name_promises(wheelhouse: Path) -> None:
    (wheel,) = wheelhouse.glob("numpy-*+ft1-*.whl")
    shown = said(sys.executable, "-m", "auditwheel", "show", wheel)
    tag = wheel.stem.rpartition("-")[2]
    assert f'is consistent with the following platform tag: "{tag}".' in " ".join(shown.split())
