"""An installed interpreter made movable: what goes, what stays, what is rewritten."""

from __future__ import annotations

import csv
import runpy
import subprocess
from pathlib import Path, PurePath

import pytest

from ftnumpy.errors import BuildError
from ftnumpy.wheels import relocate

DATA = """# system configuration generated and used by the sysconfig module
build_time_vars = {
    'BINDIR': '/install/bin',
    'CONFIG_ARGS': "'--prefix=/install' '--disable-gil'",
    'DESTDIRS': '/install /install/lib',
    'FLAGS': '-I/install/include -L/install/lib -fdebug-prefix-map=/home/me/tree=.',
    'INSTALL': '/usr/bin/install -c',
    'SCRIPT': './install-sh -c',
    'SIZEOF_LONG': 8,
    'abs_srcdir': '/home/me/tree',
    'prefix': '/install',
}
"""


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """What `make install` leaves, in small."""
    root = tmp_path / "prefix"
    files = {
        "bin/python3.13t": '#!/bin/sh\necho "python runs: $*"\n',
        "bin/pip3": "#!/install/bin/python3.13t\nprint('pip')\n",
        "bin/idle3": "#!/install/bin/python3.13t\n",
        "bin/other": "#!/bin/sh\n",
        "lib/libpython3.13t.a": "",
        "lib/pkgconfig/python-3.13t.pc": "# See\nprefix=/install\nlibdir=${prefix}/lib\n",
        "lib/pkgconfig/python-3.13t-embed.pc": "prefix=/install\n",
        "lib/python3.13t/os.py": "",
        "lib/python3.13t/test/test_os.py": "",
        "lib/python3.13t/email/test/x.py": "",
        "lib/python3.13t/__pycache__/os.pyc": "",
        "lib/python3.13t/_sysconfigdata_t_linux.py": DATA,
        "lib/python3.13t/config-3.13t-linux/Makefile": "srcdir=/home/me/tree\n",
        "lib/python3.13t/config-3.13t-linux/python.o": "",
        "lib/python3.13t/lib-dynload/_ssl.so": "",
        "lib/python3.13t/lib-dynload/_testcapi.so": "",
        "lib/python3.13t/site-packages/pip/__init__.py": "",
        "lib/python3.13t/site-packages/pip-1.dist-info/RECORD": "../../../bin/pip3,sha256=x,9\npip/__init__.py,,0\n",
        "lib/python3.13t/site-packages/numpy/__init__.py": "",
        "build.json": "{}",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
        (root / name).chmod(0o755 if name.startswith("bin") else 0o644)
    (root / "bin" / "python3.13").hardlink_to(root / "bin" / "python3.13t")
    return root


@pytest.fixture
def tree(prefix: Path, tmp_path: Path) -> Path:
    tree = tmp_path / "with a space" / "python"
    relocate.copy(prefix, tree)
    relocate.make_movable(tree, "python3.13t")
    return tree


def test_what_is_useless_elsewhere_stays_behind(prefix: Path, tree: Path) -> None:
    kept = {str(file.relative_to(tree)) for file in tree.rglob("*") if file.is_file() and not file.is_symlink()}
    assert kept == {
        "bin/python3.13t",
        "bin/pip3",
        "bin/other",
        "lib/pkgconfig/python-3.13t.pc",
        "lib/python3.13t/os.py",
        "lib/python3.13t/email/test/x.py",
        "lib/python3.13t/_sysconfigdata_t_linux.py",
        "lib/python3.13t/config-3.13t-linux/Makefile",
        "lib/python3.13t/lib-dynload/_ssl.so",
        "lib/python3.13t/site-packages/pip/__init__.py",
        "lib/python3.13t/site-packages/pip-1.dist-info/RECORD",
    }
    everything = {file.relative_to(prefix) for file in prefix.rglob("*") if file.is_file()}
    gone = {str(file) for file in everything if relocate.left_out(PurePath(file))}
    assert gone == {str(file) for file in everything} - kept - {"bin/python3.13"}


def test_scripts_start_the_python_beside_them(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tree / "bin" / "pip")
    for script in (tree / "bin" / "pip3", tmp_path / "link"):
        said = subprocess.run([script, "a b"], capture_output=True, text=True, check=True).stdout
        assert said == f"python runs: {script} a b\n"
    # To Python the shell's lines are a string.
    compile((tree / "bin" / "pip3").read_text(), "pip3", "exec")
    assert (tree / "bin" / "other").read_text() == "#!/bin/sh\n"


def test_names_of_the_interpreter_are_links(tree: Path) -> None:
    assert {name: str((tree / "bin" / name).readlink()) for name in ("python", "python3.13", "pip")} == {
        "python": "python3.13t",
        "python3.13": "python3.13t",
        "pip": "pip3",
    }


def test_pips_list_of_files_knows_the_new_script(tree: Path) -> None:
    packages = tree / "lib" / "python3.13t" / "site-packages"
    with (packages / "pip-1.dist-info" / "RECORD").open(newline="") as stream:
        script, module = csv.reader(stream)
    assert script[0] == "../../../bin/pip3" and script[1].startswith("sha256=") and script[1] != "sha256=x"
    assert int(script[2]) == (tree / "bin" / "pip3").stat().st_size
    assert module == ["pip/__init__.py", "", "0"]


def test_sysconfig_says_where_the_tree_lies(tree: Path) -> None:
    data = tree / "lib" / "python3.13t" / "_sysconfigdata_t_linux.py"
    assert runpy.run_path(str(data))["build_time_vars"] == {
        "BINDIR": f"{tree}/bin",
        "CONFIG_ARGS": f"'--prefix={tree}' '--disable-gil'",
        "DESTDIRS": f"{tree} {tree}/lib",
        "FLAGS": f"-I{tree}/include -L{tree}/lib -fdebug-prefix-map=/build=.",
        "INSTALL": "/usr/bin/install -c",
        "SCRIPT": "./install-sh -c",
        "SIZEOF_LONG": 8,
        "abs_srcdir": "/build",
        "prefix": str(tree),
    }
    assert (data.parent / "config-3.13t-linux" / "Makefile").read_text() == "srcdir=/build\n"


def test_pkg_config_is_told_a_relative_folder(tree: Path) -> None:
    text = (tree / "lib" / "pkgconfig" / "python-3.13t.pc").read_text()
    assert text == "# See\nprefix=${pcfiledir}/../..\nlibdir=${prefix}/lib\n"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("lib/pkgconfig/python-3.13t.pc", "prefix=/usr\n", "does not have the one line 'prefix=/install'"),
        ("lib/python3.13t/_sysconfigdata_t_linux.py", "build_time_vars = {}", "doesn't say where"),
    ],
)
def test_another_cpython_than_we_know_is_an_error(
    prefix: Path, tmp_path: Path, name: str, text: str, told: str
) -> None:
    (prefix / name).write_text(text)
    relocate.copy(prefix, tmp_path / "tree")
    with pytest.raises(BuildError, match=told):
        relocate.make_movable(tmp_path / "tree", "python3.13t")
