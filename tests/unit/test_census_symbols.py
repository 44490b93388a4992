"""Addresses to functions, lines and variables, on a program compiled for the purpose."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ftnumpy.census import symbols

SOURCE = """
int counted[4] = {1, 2, 3, 4};
int zeroed[40];
static inline __attribute__((always_inline)) int inner(int k) {
    return counted[k & 3] + zeroed[k];
}
int outer(int k) {
    return inner(k);
}
int main(void) { return outer(0); }
"""

pytestmark = pytest.mark.skipif(
    not (shutil.which("gcc") and shutil.which("addr2line")), reason="needs gcc and binutils; install them"
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    (folder / "p.c").write_text(SOURCE, encoding="utf-8")
    subprocess.run(["gcc", "-g", "-O1", "-no-pie", "p.c", "-o", "p"], cwd=folder, check=True)
    return folder / "p"


def address(program: Path, name: str) -> int:
    rows = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.splitlines()
    return next(int(row.split()[0], 16) for row in rows if row.endswith(f" {name}"))


def mapped(program: Path, base: int) -> symbols.Symbols:
    """The program as if its loadable parts had been mapped ``base`` bytes further on."""
    rows = []
    for offset, linked, size in symbols._read_segments(program, False):
        start, first = (linked + base) & ~4095, offset & ~4095
        rows.append(f"{start:x}-{(linked + base + size + 4095) & ~4095:x} r-xp {first:08x} 08:01 7    {program}")
    return symbols.read_maps([*rows, "7ffe00000000-7ffe00021000 rw-p 00000000 00:00 0    [stack]"])


@pytest.mark.parametrize("base", [0, 0x4000000])
def test_a_place_in_the_code_has_its_function_and_line_inlined_ones_first(program: Path, base: int) -> None:
    known = mapped(program, base)
    start = address(program, "outer") + base
    frames = known.frames([start + 1, start])
    assert frames[start][-1].function == "outer"
    chains = {tuple(frame.function for frame in known.frames([start + k])[start + k]) for k in range(12)}
    assert ("inner", "outer") in chains
    inlined = next(known.frames([start + k])[start + k] for k in range(12) if len(known.frames([])[start + k]) == 2)
    assert inlined[0].line == 5
    assert inlined[0].file.endswith("p.c")


@pytest.mark.parametrize("name", ["counted", "zeroed"])
@pytest.mark.parametrize("base", [0, 0x4000000])
def test_a_static_variable_has_its_name_whether_it_lies_in_the_file_or_not(program: Path, name: str, base: int) -> None:
    found = mapped(program, base).variable(address(program, name) + base + 8)
    assert found is not None
    assert (found[0].name, found[1], found[2]) == (name, str(program), 8)


def test_what_is_no_file_has_no_symbol(program: Path) -> None:
    known = mapped(program, 0)
    assert known.variable(0x7FFE00000100) is None
    assert known.frames([0x12])[0x12][0].function == "?"


def test_names_lose_arguments_and_what_the_compiler_appended() -> None:
    assert symbols.short("array_dealloc.part.0") == "array_dealloc"
    assert symbols.short("f(int, char*) const") == "f"
    assert symbols.short("std::shared_mutex::lock_shared()") == "std::shared_mutex::lock_shared"
    assert symbols.short("work.constprop.0.isra.2") == "work"
