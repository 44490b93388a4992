"""The index serves pip from a folder and from any web server, and says what is there."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from handling import said

from ftnumpy.download import Route
from ftnumpy.pip_index import PipConfig, find

VERSION = "import numpy, sys; print(numpy.__version__, sys._is_gil_enabled())"


@pytest.fixture
def environment(python: Path, tmp_path: Path) -> Path:
    """The python of a new virtual environment of the archive's interpreter."""
    said(python, "-m", "venv", tmp_path / "environment")
    return tmp_path / "environment" / "bin" / "python"


def install(python: Path, index: str) -> str:
    words = ("--isolated", "--disable-pip-version-check", "--no-cache-dir", "-v")
    return said(python, "-m", "pip", "install", *words, "--index-url", index, "numpy")


def test_pip_installs_from_the_folder(environment: Path, wheelhouse: Path) -> None:
    install(environment, (wheelhouse / "simple").as_uri())
    assert said(environment, "-W", "error", "-c", VERSION).split()[0].endswith("+ft1")


def test_pip_installs_from_a_web_server_by_the_wheels_metadata(environment: Path, served: str) -> None:
    told = install(environment, f"{served}/simple/")
    assert ".whl.metadata" in told
    assert said(environment, "-W", "error", "-c", VERSION).split()[0].endswith("+ft1")


def test_pip_refuses_a_wheel_that_was_changed(environment: Path, wheelhouse: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    (wheel,) = wheelhouse.glob("numpy-*+ft1-*.whl")
    shutil.copytree(wheelhouse / "simple", copy / "simple")
    for file in (wheel, wheel.with_name(f"{wheel.name}.metadata")):
        shutil.copy(file, copy)
    with (copy / wheel.name).open("ab") as stream:
        stream.write(b"more")
    words = ("--isolated", "--disable-pip-version-check", "--no-cache-dir")
    done = subprocess.run(
        [environment, "-m", "pip", "install", *words, "--index-url", (copy / "simple").as_uri(), "numpy"],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0 and "DO NOT MATCH THE HASHES" in done.stderr


def test_both_kinds_of_pages_name_the_same_files(wheelhouse: Path, tmp_path: Path) -> None:
    pages = wheelhouse / "simple"
    config = PipConfig(indexes=(pages.as_uri(),), find_links=(), route=Route())
    (root,) = json.loads((pages / "index.json").read_text())["projects"]
    assert root == {"name": "numpy"} and 'href="numpy/"' in (pages / "index.html").read_text()
    page = json.loads((pages / "numpy" / "index.json").read_text())
    assert page["meta"]["api-version"] == "1.1" and page["name"] == "numpy"
    for file in page["files"]:
        target = (pages / "numpy" / file["url"].replace("%2B", "+")).resolve()
        assert target == wheelhouse / file["filename"]
        assert file["hashes"]["sha256"] == hashlib.sha256(target.read_bytes()).hexdigest()
        assert file["size"] == target.stat().st_size
        metadata = target.with_name(f"{target.name}.metadata").read_bytes()
        assert file["core-metadata"]["sha256"] == hashlib.sha256(metadata).hexdigest()
        # The HTML page, as our own reader of such pages finds it.
        (place,) = find("numpy", file["filename"], config, pytest.fail)
        assert Path(url2pathname(urlsplit(place.url).path)).resolve() == target
        assert f"{file['url']}#sha256={file['hashes']['sha256']}" in (pages / "numpy" / "index.html").read_text()
