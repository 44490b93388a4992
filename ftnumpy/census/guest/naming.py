"""Names for what lies at an address, from inside the interpreter that is counted.

Names come from live references only: what the garbage collector lists and what can be reached from there.  Memory that
nothing alive refers to may have been freed; its bytes are read through /proc/self/mem, where a bad address is an error
and no crash, to compare them with the addresses of known types, and are never taken for objects.
"""

# pathlib would be imported into the interpreter that is counted.
# ruff: noqa: PTH104, PTH119, PTH123

from __future__ import annotations

import gc
import json
import os
import re
import struct
import sys
import sysconfig
import types
from typing import Any

LINE = 64
BEHIND = 2048  # bytes before a line in which the object that reaches into it may begin
BLOCK = 1024  # the grain in which objects are taken to be near a line
FIRST_BYTES = 64  # of a block, in which a pointer to a further one is looked for
SHORT = {"numpy": "np", "builtins": ""}

# Objects that are all there is of them, or whose parts are objects.
NO_BLOCKS = (
    *(str, bytes, int, float, complex, bool, type(None), tuple, frozenset, types.FunctionType, types.CodeType),
    *(types.MethodType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, property),
)


def lines_of(dump: str) -> set[int]:
    """The addresses of the shared written lines of the file ``dump``."""
    with open(dump, "rb") as file:
        return {int(word, 16) for word in re.findall(rb"^line \d+ ([0-9a-f]+)", file.read(), re.MULTILINE)}


def keep_memory(dump: str) -> None:
    """Write ``dump``.memory: the memory round the lines of ``dump``, as records of start, length and bytes."""
    spans: list[list[int]] = []
    for line in sorted(lines_of(dump)):
        start, end = max(0, line - BEHIND), line + LINE
        if spans and start <= spans[-1][1]:
            spans[-1][1] = end
        else:
            spans.append([start, end])
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    with open(f"{dump}.memory", "wb") as out:
        for start, end in spans:
            for page in range(start & ~4095, end, 4096):
                first, last = max(start, page), min(end, page + 4096)
                try:
                    data = os.pread(memory, last - first, first)
                except (OSError, OverflowError):  # not mapped, no address
                    continue
                out.write(first.to_bytes(8, "little") + len(data).to_bytes(8, "little") + data)
    os.close(memory)


def write(out: str, dumps: list[str], namespaces: dict[str, list[dict[str, Any]]]) -> None:
    """Write ``out``.names, JSON: what the interpreter is, its memory map, and what lies near the lines of ``dumps``.

    ``types``: [address, name].  ``things``: [address, size, type's address, type's name, name].  ``blocks``: [address,
    name], memory that is no object and that a named object points to.  ``namespaces`` are dictionaries by the name of
    their owner.
    """
    gc.disable()
    wanted: set[int] = set()
    for dump in dumps:
        for line in lines_of(dump):
            wanted.update(range((line - BEHIND) // BLOCK, (line + LINE) // BLOCK + 1))
    found = reachable()
    names = name_all(namespaces)
    things = []
    for address, thing in found.items():
        if address // BLOCK in wanted:
            kind = type(thing)
            name = names.get(address) or describe(thing, kind)
            things.append([address, size_of(thing, kind), id(kind), kind.__name__, name])
    with open("/proc/self/maps", encoding="utf-8") as file:
        maps = file.read().splitlines()
    whole = {
        "python": sys.version,
        "numpy": getattr(sys.modules.get("numpy"), "__version__", ""),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "maps": maps,
        "types": [[address, thing.__name__] for address, thing in found.items() if is_a(thing, type)],
        "things": things,
        "blocks": list(blocks(found, names, wanted).items()),
    }
    with open(f"{out}.names.part", "w", encoding="utf-8") as file:
        json.dump(whole, file)
    os.rename(f"{out}.names.part", f"{out}.names")


def blocks(found: dict[int, Any], names: dict[int, str], wanted: set[int]) -> dict[int, str]:
    """Memory in the ``wanted`` parts that a named object points to, itself or by way of another block, by address."""
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    best: dict[int, tuple[int, str]] = {}  # with the offset of the last pointer: what lies behind a block is not its

    def pointers(address: int, size: int) -> list[tuple[int, int]]:
        try:
            data = os.pread(memory, size & ~7, address)
        except (OSError, OverflowError):  # not mapped, no address
            return []
        values = enumerate(struct.unpack(f"<{len(data) // 8}Q", data[: len(data) & ~7]))
        return [(8 * k, value) for k, value in values if value > 4096 and value % 8 == 0 and value not in found]

    def give(pointer: int, offset: int, name: str) -> None:
        if pointer // BLOCK in wanted and (pointer not in best or (offset, name) < best[pointer]):
            best[pointer] = (offset, name)

    for address, name in names.items():
        thing = found.get(address)
        kind = type(thing)
        if thing is None or kind in NO_BLOCKS:
            continue
        for offset, pointer in pointers(address, size_of(thing, kind)):
            label = f"{kind.__name__} {name} +{offset}"
            give(pointer, 0, label)
            for inner_offset, inner in pointers(pointer, FIRST_BYTES):
                give(inner, inner_offset, f"{label} +{inner_offset}")
    os.close(memory)
    return {pointer: name for pointer, (_, name) in best.items()}


def reachable() -> dict[int, Any]:
    """Every object that is tracked by the collector or reached from one that is, by address."""
    tracked = gc.get_objects()
    found: dict[int, Any] = {}
    new = {id(thing): thing for thing in tracked}
    # What is made here refers to everything and grows while it is walked.
    own = {id(tracked), id(found), id(new), id(sys._getframe())}
    while new:
        for address in own:
            new.pop(address, None)
        found.update(new)
        level = list(new.values())
        # Built-in types don't let the collector see their subclasses.
        level += subclasses(level)
        new = {id(thing): thing for thing in level if id(thing) not in found}
        new.update((id(thing), thing) for thing in gc.get_referents(*level) if id(thing) not in found)
        own = {id(level), id(new)}
    return found


def is_a(thing: Any, kind: type) -> bool:
    """As isinstance, but what the object says itself is not asked: proxies say what they stand for, and run code."""
    return issubclass(type(thing), kind)


def subclasses(level: list[Any]) -> list[Any]:
    found: list[Any] = []
    for thing in level:
        if is_a(thing, type):
            found += type.__subclasses__(thing)
    return found


def size_of(thing: Any, kind: type) -> int:
    """The bytes from the object's address on that belong to it; without what it keeps in other blocks."""
    if kind is str:
        return str.__sizeof__(thing)
    if is_a(thing, int):
        return int.__sizeof__(thing)
    return object.__sizeof__(thing)


def describe(thing: Any, kind: type) -> str:
    """A name for what no module names, without running code of the program's."""
    if kind is str:
        return repr(thing[:60])
    if kind in (int, float, complex, bool, type(None), bytes):
        return repr(thing)[:60]
    if kind.__name__ == "PyCapsule":
        match = re.search(r'"(.*?)"', repr(thing))
        return match[1] if match else ""
    if kind in (types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.MethodDescriptorType):
        return qualified(thing)
    if kind is types.CodeType:
        return f"{thing.co_qualname} {os.path.basename(thing.co_filename)}:{thing.co_firstlineno}"
    if is_a(thing, type):
        return qualified(thing)
    if kind.__name__ == "ContextVar":
        return str(thing.name)
    if kind.__module__ == "numpy" and kind.__name__.endswith("DType"):
        return str(thing)
    return ""


def qualified(thing: Any) -> str:
    module = getattr(thing, "__module__", None)
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", "")
    return f"{module}.{name}" if is_a(module, str) and module != "builtins" else str(name)


def name_all(namespaces: dict[str, list[dict[str, Any]]]) -> dict[int, str]:
    """Names by address: ``np.sin``, ``np.__dict__``, ``numpy.ma`` and so on; the shortest public path wins."""
    names: dict[int, str] = {}

    def give(thing: object, name: str) -> None:
        old = names.get(id(thing))
        if old is None or rank(name) < rank(old):
            names[id(thing)] = name

    for module in list(sys.modules.values()):
        if not is_a(module, types.ModuleType):
            continue
        name = module.__name__
        short = SHORT.get(name, name)
        prefix = f"{short}." if short else ""
        give(module, short or name)
        content = vars(module)
        give(content, f"{prefix}__dict__")
        for key, value in list(content.items()):
            if is_a(value, types.ModuleType) or type(value) in (str, int, float, bool, type(None)):
                continue
            give(value, f"{prefix}{key}")
            if is_a(value, types.FunctionType):
                for part, what in ((value.__code__, "__code__"), (value.__defaults__, "__defaults__")):
                    if part:
                        give(part, f"{prefix}{key}.{what}")
            if type(value) is dict and len(value) < 1000:
                for inner, item in list(value.items()):
                    if type(inner) is str and type(item) not in (str, int, float, bool, type(None)):
                        give(item, f"{prefix}{key}[{inner!r}]")
            if is_a(value, type):
                members = type.__getattribute__(value, "__dict__")
                for inner, item in list(members.items()):
                    if type(item) not in (str, int, float, bool, type(None)):
                        give(item, f"{prefix}{key}.{inner}")
    for worker, several in namespaces.items():
        for namespace in several:
            for key, value in namespace.items():
                if id(value) not in names:
                    names[id(value)] = f"{key} of {worker}"
    return names


def rank(name: str) -> tuple[bool, int, int, str]:
    """Order of preference: public, few dots, short, alphabet."""
    return (any(part.startswith("_") for part in name.split(".")), name.count("."), len(name), name)
