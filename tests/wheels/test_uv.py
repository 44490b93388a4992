"""uv installs the interpreter and the wheel as it installs any other, without a network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from handling import said, serve

UV = Path(sys.executable).parent / "uv"
VERSION = "import numpy, sys; print(sys.version, numpy.__version__, sys._is_gil_enabled())"

pytestmark = pytest.mark.skipif(not UV.exists(), reason="needs uv beside the python that runs this")


def settings(folder: Path, downloads: str) -> dict[str, str]:
    """uv's, with nothing of the user's: it keeps all in ``folder``."""
    return {
        "UV_PYTHON_DOWNLOADS_JSON_URL": downloads,
        "UV_PYTHON_INSTALL_DIR": str(folder / "pythons"),
        "UV_CACHE_DIR": str(folder / "cache"),
        "UV_PYTHON_PREFERENCE": "only-managed",
        "UV_NO_CONFIG": "1",
    }


def set_up(folder: Path, downloads: str, index: str, *before: str) -> str:
    """A team's whole set-up, with ``before`` in front of each command; returns what the environment says."""
    variables = settings(folder, downloads)
    python = folder / "venv" / "bin" / "python"
    said(*before, UV, "venv", "--python", "3.13t", folder / "venv", **variables)
    said(*before, UV, "pip", "install", "--python", python, "--index-url", index, "numpy", **variables)
    return said(python, "-W", "error", "-c", VERSION)


def test_from_the_folder_without_a_network(wheelhouse: Path, tmp_path: Path) -> None:
    alone = ("unshare", *(() if os.geteuid() == 0 else ("--map-root-user",)), "--net")
    if subprocess.run([*alone, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("needs the right to make a network namespace")
    told = set_up(tmp_path, (wheelhouse / "downloads.json").as_uri(), (wheelhouse / "simple").as_uri(), *alone)
    assert "(ft1-c" in told and told.endswith("+ft1 False\n")


def test_from_a_web_server(wheelhouse: Path, tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    for name in ("simple", *(file.name for file in wheelhouse.glob("*+ft1*"))):
        (folder / name).symlink_to(wheelhouse / name)
    listing = json.loads((wheelhouse / "downloads.json").read_text())
    (entry,) = listing.values()
    with serve(folder) as address:
        # As "--url" writes it.
        entry["url"] = f"{address}/{entry['url'].rpartition('/')[2]}"
        (folder / "downloads.json").write_text(json.dumps(listing))
        told = set_up(tmp_path, f"{address}/downloads.json", f"{address}/simple")
    assert "(ft1-c" in told and told.endswith("+ft1 False\n")


def test_sysconfig_says_where_uv_put_it(wheelhouse: Path, tmp_path: Path) -> None:
    variables = settings(tmp_path, (wheelhouse / "downloads.json").as_uri())
    said(UV, "python", "install", "--no-bin", "3.13t", **variables)
    python = said(UV, "python", "find", "3.13t", **variables).strip()
    code = "import sysconfig, sys; print(sysconfig.get_config_var('LIBDIR'), sysconfig.get_config_var('INCLUDEPY'))"
    libraries, include = said(python, "-c", code).split()
    assert Path(libraries).resolve() == Path(python).resolve().parents[1] / "lib"
    assert (Path(include) / "Python.h").is_file() and str(tmp_path) in include


def test_uv_refuses_an_archive_that_was_changed(wheelhouse: Path, tmp_path: Path) -> None:
    listing = json.loads((wheelhouse / "downloads.json").read_text())
    (entry,) = listing.values()
    entry["sha256"] = "0" * 64
    (tmp_path / "downloads.json").write_text(json.dumps(listing))
    variables = settings(tmp_path, (tmp_path / "downloads.json").as_uri())
    done = subprocess.run(
        [UV, "python", "install", "--no-bin", "3.13t"],
        capture_output=True,
        text=True,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"} | variables,
    )
    assert done.returncode != 0 and "ash mismatch" in done.stderr
