"""Names from inside the counted interpreter: here the one that runs the tests."""

from __future__ import annotations

import ctypes
import json
import sys
import types
import weakref
from array import array
from pathlib import Path

import pytest

from ftnumpy.census import names
from ftnumpy.census.guest import naming


def dump_of(folder: Path, *lines: int) -> str:
    file = folder / "dump.0"
    file.write_text("".join(f"line 1 {line:x} 1 1 1\n" for line in lines) + "end\n", encoding="ascii")
    return str(file)


def test_memory_round_a_line_is_kept_and_what_is_not_mapped_is_passed_over(tmp_path: Path) -> None:
    buffer = ctypes.create_string_buffer(b"\0" * 8192, 8192)
    line = (ctypes.addressof(buffer) + 4096) // 64 * 64
    ctypes.c_uint64.from_address(line + 8).value = 0x1234567890
    path = dump_of(tmp_path, line, 0x10, 0x7FFF_FFFF_F000, 0xFFFF_FFFF_FFFF_FFC0)
    naming.keep_memory(path)
    memory = names.read_memory(Path(f"{path}.memory"))
    assert memory.word(line + 8) == 0x1234567890
    assert memory.word(line - naming.BEHIND) is not None
    assert memory.word(0x10) is None
    assert memory.word(line + 64) is None


def test_all_that_is_alive_is_found_objects_that_no_collector_tracks_too() -> None:
    untracked = float("1.25")
    holder = {"deep": [(untracked, "never")]}
    found = naming.reachable()
    for thing in (untracked, holder, holder["deep"], int, naming, type(types)):
        assert found[id(thing)] is thing
    assert any(thing is sys.modules for thing in found.values())


def test_subclasses_that_nothing_else_refers_to_are_types_all_the_same() -> None:
    found = naming.reachable()
    assert all(id(sub) in found for sub in object.__subclasses__())


def test_the_shortest_public_name_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    thing = object()
    for name in ("numpy", "numpy._core.multiarray", "b.c"):
        module = types.ModuleType(name)
        module.thing = thing  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
    given = naming.name_all({})
    assert given[id(thing)] == "np.thing"
    assert given[id(sys.modules["numpy"])] == "np"
    assert given[id(vars(sys.modules["b.c"]))] == "b.c.__dict__"


def test_what_no_module_names_is_named_after_the_thread_that_has_it() -> None:
    mine = object()
    assert naming.name_all({"Thread-1": [{"a": mine}]})[id(mine)] == "a of Thread-1"


@pytest.mark.parametrize(
    ("thing", "name"),
    [
        ("text", "'text'"),
        (12, "12"),
        (Path.exists, "Path.exists"),
        (str.join, "str.join"),
        ([], ""),
    ],
)
def test_things_describe_themselves_without_code_of_the_program_s(thing: object, name: str) -> None:
    assert naming.describe(thing, type(thing)).removeprefix("pathlib.") == name


def test_describing_runs_no_code_of_the_program_s() -> None:
    class Trap:
        def __repr__(self) -> str:
            raise AssertionError("called")

        __str__ = __sizeof__ = __repr__  # type: ignore[assignment]

    assert naming.describe(Trap(), Trap) == ""
    assert naming.size_of(Trap(), Trap) > 0


def test_a_proxy_is_taken_for_itself() -> None:
    class Thing:
        pass

    kept = Thing
    proxy = weakref.proxy(kept)
    assert naming.subclasses([proxy]) == []
    assert naming.describe(proxy, type(proxy)) == ""


def test_a_block_is_found_by_the_object_that_points_to_it() -> None:
    numbers = array("q", [0] * 100)
    pointer, _ = numbers.buffer_info()
    wanted = {pointer // naming.BLOCK}
    found = naming.blocks({id(numbers): numbers}, {id(numbers): "numbers"}, wanted)
    assert found[pointer].startswith("array numbers +")
    assert naming.blocks({id(numbers): numbers}, {id(numbers): "numbers"}, set()) == {}


def test_a_block_is_found_through_another_one() -> None:
    inner, outer = array("q", [0] * 1000), array("Q", [0] * 8)
    outer[2], outer[3], outer[4] = inner.buffer_info()[0], 0x10, 0xFFFF_FFFF_FFFF_FFF8  # and two that lead nowhere
    pointer = inner.buffer_info()[0]
    found = naming.blocks({id(outer): outer}, {id(outer): "outer"}, {pointer // naming.BLOCK})
    assert found[pointer].endswith(" +16")


def test_what_is_written_is_what_the_toolchain_reads(tmp_path: Path) -> None:
    kept = [object() for _ in range(3)]
    path = dump_of(tmp_path, id(kept[0]) // 64 * 64)
    naming.write(str(tmp_path / "dump"), [path], {"Thread-1": [{"first": kept[0]}]})
    found = names.read_names(tmp_path / "dump.names")
    thing = next(thing for thing in found.things if thing.start == id(kept[0]))
    assert (thing.kind, thing.name, thing.type_at, thing.size) == ("object", "first of Thread-1", id(object), 16)
    assert found.types[id(object)] == "object"
    assert found.python == sys.version
    assert json.loads((tmp_path / "dump.names").read_text())["maps"][0].count(" ") >= 4
