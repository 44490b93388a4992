"""The archive runs where nothing was prepared for it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import bare
import pytest
import zstandard
from handling import said, unpack

from ftnumpy.settings import read_settings

PYTHON = "/opt/a team's folder/python/bin/python3.13t"

MODULES = """
import bz2, ctypes, curses, dbm.gnu, hashlib, json, lzma, readline, sqlite3, ssl, sys, sysconfig, uuid, zlib
text = b"a line of text, " * 1000
for module in (bz2, lzma, zlib):
    assert module.decompress(module.compress(text)) == text, module
(version,) = sqlite3.connect(":memory:").execute("select sqlite_version()").fetchone()
assert ssl.create_default_context().minimum_version == ssl.TLSVersion.TLSv1_2
assert hashlib.new("sha3_256", text).hexdigest() == hashlib.sha3_256(text).hexdigest()
assert ctypes.CDLL(None).strlen(b"four") == 4
assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda x: x + 1)(1) == 2
assert uuid.uuid1().version == 1 and uuid._generate_time_safe is not None
readline.parse_and_bind("tab: complete")
assert not sys._is_gil_enabled()
print(json.dumps([ssl.OPENSSL_VERSION, version, sys.prefix, sysconfig.get_config_var("INCLUDEPY")]))
"""

# The article's, on threads.
KERNEL = """
import sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np

def kernel(x, n_loop):
    return sum(np.sin(np.cos(np.sin(np.cos(x + i)))).sum() for i in range(n_loop))

arrays = np.random.default_rng(1).random((200, 500))
with ThreadPoolExecutor(4) as pool:
    found = list(pool.map(lambda x: kernel(x, 10), arrays))
assert found == [kernel(x, 10) for x in arrays]
print(np.__version__, sys._is_gil_enabled())
"""


def test_both_archives_hold_the_same(wheelhouse: Path) -> None:
    (zst,), (gz,) = wheelhouse.glob("cpython-*.tar.zst"), wheelhouse.glob("cpython-*.tar.gz")
    contents = zstandard.ZstdDecompressor().stream_reader(zst.read_bytes()).read()
    with tarfile.open(gz) as tar, tarfile.open(fileobj=io.BytesIO(contents)) as other:
        assert [entry.get_info() for entry in tar] == [entry.get_info() for entry in other]
        names = tar.getnames()
        assert names == sorted(names, key=lambda name: name.split("/"))
        assert {(each.uid, each.gid, each.uname, each.gname) for each in tar} == {(0, 0, "root", "root")}
        assert len({each.mtime for each in tar}) == 1
        for entry in tar:
            if entry.isreg():
                one, two = tar.extractfile(entry), other.extractfile(entry.name)
                assert one is not None and two is not None
                assert hashlib.sha256(one.read()).digest() == hashlib.sha256(two.read()).digest(), entry.name


def test_it_names_no_folder_of_this_machine(python: Path, wheelhouse: Path) -> None:
    words = [os.fsencode(folder) + b"/" for folder in (wheelhouse.parent, read_settings(os.environ).cache)]
    for file in python.parents[1].rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert not [word for word in words if word in content], file


def test_its_libraries_come_with_their_licences(python: Path, wheelhouse: Path) -> None:
    archive = json.loads((wheelhouse / "manifest.json").read_text())["archive"]
    inside = python.parents[1]
    assert {each["name"] for each in archive["libraries"]} <= {each.name for each in (inside / "lib").iterdir()}
    for each in archive["libraries"]:
        assert (inside / "share" / "licenses" / each["package"]["name"] / "copyright").stat().st_size > 0


def test_every_module_works_in_a_bare_root(bare_root: bare.Root) -> None:
    assert not list(bare_root.folder.glob("**/libssl.so*")) and not list(bare_root.folder.glob("bin/*"))
    openssl, sqlite, prefix, include = json.loads(bare_root.said(PYTHON, "-I", "-c", MODULES))
    assert openssl.startswith("OpenSSL") and sqlite.startswith("3.")
    assert prefix == "/opt/a team's folder/python"
    assert include == f"{prefix}/include/python3.13t"


def test_every_extension_module_loads_in_a_bare_root(bare_root: bare.Root) -> None:
    code = """
import importlib, pathlib, sysconfig
folder = pathlib.Path(sysconfig.get_config_var("DESTSHARED"))
names = sorted(file.name.partition(".")[0] for file in folder.glob("*.so"))
for name in names:
    importlib.import_module(name)
print(len(names))
"""
    assert int(bare_root.said(PYTHON, "-I", "-c", code)) > 50


CERTIFICATES = "import ssl; print(len(ssl.create_default_context().get_ca_certs()))"


def test_it_finds_certificates_where_other_systems_have_them(bare_root: bare.Root) -> None:
    bundle = Path("/etc/ssl/certs/ca-certificates.crt")
    if not bundle.is_file():
        pytest.skip(f"needs {bundle}")
    assert bare_root.said(PYTHON, "-c", CERTIFICATES) == "0\n"
    fedoras = Path("/etc/pki/tls/certs/ca-bundle.crt")
    bare.copy(bundle, bare_root.folder, fedoras)
    count = int(bare_root.said(PYTHON, "-c", CERTIFICATES))
    assert count > 0
    assert int(bare_root.said(PYTHON, "-c", CERTIFICATES, SSL_CERT_FILE=str(fedoras))) == count
    assert bare_root.said(PYTHON, "-c", CERTIFICATES, SSL_CERT_FILE="/nowhere") == "0\n", "the user's word counts"
    (bare_root.folder / fedoras.relative_to("/")).unlink()


@pytest.mark.parametrize("first", ["curses", "readline", "ssl"])
def test_it_knows_terminals_where_the_system_knows_none(bare_root: bare.Root, first: str) -> None:
    code = f"import {first}, curses; curses.setupterm('xterm-256color', 1); print(curses.tigetnum('colors'))"
    assert bare_root.said(PYTHON, "-c", code) == "256\n"


def test_on_a_machine_that_has_all_that_nothing_is_named(python: Path) -> None:
    code = """
import ctypes, curses, readline, ssl
get = ctypes.CDLL(None).getenv
get.restype = ctypes.c_char_p
print(get(b"SSL_CERT_FILE"), get(b"TERMINFO_DIRS"))
"""
    for needed in ("/lib/terminfo/x", "/usr/lib/ssl/certs"):
        if not Path(needed).exists():
            pytest.skip(f"needs {needed}")
    assert said(python, "-c", code) == "None None\n"


def test_a_venv_installs_numpy_from_the_index_and_runs_the_kernel_in_a_bare_root(wheels_root: bare.Root) -> None:
    wheels_root.said(PYTHON, "-m", "venv", "/opt/an environment")
    own = "/opt/an environment/bin/python"
    words = ("--isolated", "--disable-pip-version-check", "--no-cache-dir")
    installed = wheels_root.said(
        own, "-m", "pip", "install", *words, "--index-url", "file:///srv/wheelhouse/simple", "numpy"
    )
    assert "Successfully installed numpy" in installed
    version, gil = wheels_root.said(own, "-W", "error", "-c", KERNEL).split()
    assert version.endswith("+ft1") and gil == "False"


def test_no_index_at_all_is_needed(wheels_root: bare.Root) -> None:
    wheels_root.said(PYTHON, "-m", "venv", "/opt/another")
    words = ("--isolated", "--no-index", "--find-links", "/srv/wheelhouse", "numpy")
    wheels_root.said("/opt/another/bin/python", "-m", "pip", "install", "--disable-pip-version-check", *words)
    assert wheels_root.said("/opt/another/bin/python", "-W", "error", "-c", KERNEL).endswith("False\n")


def test_compiled_files_are_taken_whatever_time_an_unpacker_sets(python: Path, tmp_path: Path) -> None:
    tree = tmp_path / "python"
    shutil.copytree(python.parents[1], tree, symlinks=True)
    for file in tree.rglob("*.py"):
        os.utime(file, (1, 1))
    done = subprocess.run(
        [tree / "bin" / python.name, "-I", "-v", "-c", "import argparse"], capture_output=True, text=True, check=True
    )
    assert f"code object from '{tree}/lib/python3.13t/__pycache__/argparse.cpython-313.pyc'" in done.stderr
    assert "could not" not in done.stderr and "wrote" not in done.stderr


def test_its_commands_are_found_through_links(python: Path, tmp_path: Path) -> None:
    for name in ("pip", "pip3.13", "pydoc3.13", "python", "python3", "python3.13"):
        (tmp_path / name).symlink_to(python.parent / name)
    assert str(python.parents[1]) in said(tmp_path / "pip", "--version")
    assert str(python.parents[1]) in said(tmp_path / "pip3.13", "--version")
    assert "tomllib" in said(tmp_path / "pydoc3.13", "tomllib")
    for name in ("python", "python3", "python3.13"):
        assert said(tmp_path / name, "-c", "import sys; print(sys.prefix)").strip() == str(python.parents[1])


def test_pip_still_knows_its_own_files(python: Path) -> None:
    code = """
import base64, hashlib, importlib.metadata
for file in importlib.metadata.files("pip"):
    if file.hash:
        digest = hashlib.new(file.hash.mode, file.locate().read_bytes()).digest()
        assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == file.hash.value, file
        assert file.size == file.locate().stat().st_size, file
"""
    said(python, "-I", "-c", code)


EXTENSION = """
#include <Python.h>
static struct PyModuleDef_Slot slots[] = {{Py_mod_gil, Py_MOD_GIL_NOT_USED}, {0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "tiny", NULL, 0, NULL, slots};
PyMODINIT_FUNC PyInit_tiny(void) { return PyModuleDef_Init(&definition); }
"""


@pytest.mark.parametrize("tool", ["python3.13t-config", "pkg-config", "sysconfig"])
def test_extensions_compile_against_it(wheelhouse: Path, tmp_path: Path, tool: str) -> None:
    for needed in ("gcc", *(["pkg-config"] if tool == "pkg-config" else [])):
        if shutil.which(needed) is None:
            pytest.skip(f"needs {needed}")
    python = unpack(wheelhouse, tmp_path)
    if tool == "python3.13t-config":
        flags = said(python.parent / tool, "--includes")
    elif tool == "pkg-config":
        flags = said(
            "pkg-config", "--cflags", "python-3.13t", PKG_CONFIG_PATH=str(python.parents[1] / "lib" / "pkgconfig")
        )
    else:
        flags = "-I" + said(python, "-c", "import sysconfig; print(sysconfig.get_config_var('INCLUDEPY'))")
    assert str(tmp_path) in flags
    (tmp_path / "tiny.c").write_text(EXTENSION)
    suffix = said(python, "-c", "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))").strip()
    target = tmp_path / f"tiny{suffix}"
    said("gcc", "-shared", "-fPIC", *flags.split(), str(tmp_path / "tiny.c"), "-o", target)
    code = "import sys, tiny; print(sys._is_gil_enabled())"
    assert said(python, "-W", "error", "-c", code, PYTHONPATH=str(tmp_path)) == "False\n"
