"""The index's pages, from wheels alone; the list for uv."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from urllib.parse import unquote

import pytest

from ftnumpy.download import Route
from ftnumpy.errors import BuildError
from ftnumpy.pip_index import PipConfig, find
from ftnumpy.wheels import downloads, index
from ftnumpy.wheels.archive import Contents

METADATA = b"Metadata-Version: 2.1\nName: My.Thing\nVersion: 2+ft1\nRequires-Python: >=3.11,<4\n\nRequires-Python: no\n"


def wheel(folder: Path, name: str = "My.Thing-2+ft1-cp313-cp313t-linux_x86_64.whl", metadata: bytes = METADATA) -> Path:
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / name, "w") as archive:
        archive.writestr("my_thing/METADATA", "not this")
        archive.writestr("my_thing/vendored-1.dist-info/METADATA", "nor this")
        archive.writestr("my_thing-2+ft1.dist-info/METADATA", metadata)
    return folder / name


def test_a_wheel_is_read_as_pip_reads_it(tmp_path: Path) -> None:
    file = wheel(tmp_path)
    assert index.read_wheel(file) == index.File(
        project="my-thing",
        filename=file.name,
        version="2+ft1",
        size=file.stat().st_size,
        sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
        metadata=METADATA,
        requires_python=">=3.11,<4",
    )
    assert index.read_wheel(wheel(tmp_path, metadata=b"Name: My.Thing\n")).requires_python == ""


def test_what_is_no_wheel_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a-1-py3-none-any.whl").write_bytes(b"PK")
    with zipfile.ZipFile(tmp_path / "b-1-py3-none-any.whl", "w") as archive:
        archive.writestr("b.py", "")
    for name in ("a-1-py3-none-any.whl", "b-1-py3-none-any.whl"):
        with pytest.raises(BuildError, match=f"{name} can't be listed"):
            index.read_wheel(tmp_path / name)
    with pytest.raises(BuildError, match="no wheel"):
        index.read_wheel(wheel(tmp_path, "unnamed.whl"))


def test_pages_lead_to_the_wheels(tmp_path: Path) -> None:
    files = [
        index.read_wheel(wheel(tmp_path / "served")),
        index.read_wheel(wheel(tmp_path / "served", "other-1-py3-none-any.whl", b"Name: other\n")),
    ]
    for name, content in index.pages(files, above="..").items():
        page = tmp_path / "served" / "simple" / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_bytes(content)
    pages = tmp_path / "served" / "simple"
    assert sorted(str(file.relative_to(pages)) for file in pages.rglob("*.*")) == [
        "index.html",
        "index.json",
        "my-thing/index.html",
        "my-thing/index.json",
        "other/index.html",
        "other/index.json",
    ]
    assert json.loads((pages / "index.json").read_text()) == {
        "meta": {"api-version": "1.1"},
        "projects": [{"name": "my-thing"}, {"name": "other"}],
    }
    config = PipConfig(indexes=(pages.as_uri(),), find_links=(), route=Route())
    (place,) = find("My_Thing", files[0].filename, config, pytest.fail)
    assert unquote(place.url) == unquote((tmp_path / "served" / files[0].filename).as_uri()), place
    html = (pages / "my-thing" / "index.html").read_text()
    assert 'data-requires-python="&gt;=3.11,&lt;4"' in html
    assert f'data-core-metadata="sha256={hashlib.sha256(METADATA).hexdigest()}"' in html
    assert "requires" not in (pages / "other" / "index.html").read_text()
    assert json.loads((pages / "my-thing" / "index.json").read_text()) == {
        "meta": {"api-version": "1.1"},
        "name": "my-thing",
        "versions": ["2+ft1"],
        "files": [
            {
                "filename": files[0].filename,
                "url": "../../My.Thing-2%2Bft1-cp313-cp313t-linux_x86_64.whl",
                "size": files[0].size,
                "hashes": {"sha256": files[0].sha256},
                "requires-python": ">=3.11,<4",
                "core-metadata": {"sha256": hashlib.sha256(METADATA).hexdigest()},
            }
        ],
    }


@pytest.mark.parametrize("base", ["https://host/wheels", "https://host/wheels/"])
def test_uvs_list_names_the_archive_where_it_is_served(base: str) -> None:
    contents = Contents(
        base="cpython-3.13.15+ft1-manylinux_2_35_aarch64",
        epoch=1_700_000_000,
        machine="aarch64",
        glibc="2.35",
        libraries=(),
    )
    assert json.loads(downloads.listing(contents, "3.13.15", "ab" * 32, base)) == {
        "cpython-3.13.15+freethreaded-linux-aarch64-gnu": {
            "name": "cpython",
            "arch": {"family": "aarch64", "variant": None},
            "os": "linux",
            "libc": "gnu",
            "major": 3,
            "minor": 13,
            "patch": 15,
            "prerelease": "",
            "url": "https://host/wheels/cpython-3.13.15%2Bft1-manylinux_2_35_aarch64.tar.gz",
            "sha256": "ab" * 32,
            "variant": "freethreaded",
            "build": "20231114",
        }
    }
