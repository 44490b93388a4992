"""Names for what lies at an address, from inside the interpreter that is counted.

Names come from live references only: what the garbage collector lists and what can be reached from there.  Memory that
nothing alive refers to may have been freed; its bytes are kept (read through /proc/self/mem, where a bad address is an
error and no crash) for `ftnumpy.census.count` to compare with the addresses of known types, and never taken for objects.
"""

from __future__ import annotations

import gc
import json
import os
import re
import sys
import sysconfig
import types

LINE = 64
BEHIND = 2048  # bytes before a line in which the object that reaches into it may begin
BLOCK = 1024  # the grain in which objects are taken to be near a line
SHORT = {"numpy": "np", "builtins": ""}


def lines_of(dump):
    """The addresses of the shared written lines of the file ``dump``."""
    with open(dump, "rb") as file:
        return {int(word, 16) for word in re.findall(rb"^line \d+ ([0-9a-f]+)", file.read(), re.MULTILINE)}


def keep_memory(dump):
    """Write ``dump``.memory: the memory round the lines of ``dump``, as records of start, length and bytes."""
    spans = []
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
                except OSError:  # not mapped
                    continue
                out.write(first.to_bytes(8, "little") + len(data).to_bytes(8, "little") + data)
    os.close(memory)


def write(out, dumps, namespaces):
    """Write ``out``.names: one JSON value a line.

    First what the interpreter is and its memory map, then every type as [address, its name], then an empty list, then
    the objects near the lines of ``dumps`` (files) as [address, size, type's address, type's name, name].
    ``namespaces`` are dictionaries by the name of their owner.
    """
    gc.disable()
    wanted = set()
    for dump in dumps:
        for line in lines_of(dump):
            wanted.update(range((line - BEHIND) // BLOCK, (line + LINE) // BLOCK + 1))
    found = reachable()
    types_found = {address: thing for address, thing in found.items() if isinstance(thing, type)}
    near = {address: thing for address, thing in found.items() if address // BLOCK in wanted}
    names = name_all(near, namespaces)
    with open("/proc/self/maps", encoding="utf-8") as file:
        maps = file.read().splitlines()
    about = {
        "python": sys.version,
        "numpy": getattr(sys.modules.get("numpy"), "__version__", ""),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "maps": maps,
    }
    with open(f"{out}.names.part", "w", encoding="utf-8") as file:
        values = [about]
        values += [[address, thing.__name__] for address, thing in types_found.items()]
        values.append([])
        for address, thing in near.items():
            kind = type(thing)
            name = names.get(address) or describe(thing, kind)
            values.append([address, size_of(thing, kind), id(kind), kind.__name__, name])
        file.write("".join(json.dumps(value) + "\n" for value in values))
    os.rename(f"{out}.names.part", f"{out}.names")


def reachable():
    """Every object that is tracked by the collector or reached from one that is, by address."""
    tracked = gc.get_objects()
    found = {}
    new = {id(thing): thing for thing in tracked}
    # What is made here refers to everything and grows while it is walked.
    own = {id(tracked), id(found), id(new), id(sys._getframe())}
    while new:
        for address in own:
            new.pop(address, None)
        found.update(new)
        level = list(new.values())
        new = {id(thing): thing for thing in gc.get_referents(*level) if id(thing) not in found}
        own = {id(level), id(new)}
    return found


def size_of(thing, kind):
    """The bytes from the object's address on that belong to it; without what it keeps in other blocks."""
    items = 0
    if kind.__itemsize__:
        if kind is str or kind is bytes:
            return object.__sizeof__(thing) if kind is bytes else str.__sizeof__(thing)
        if isinstance(thing, tuple):
            items = tuple.__len__(thing)
        elif isinstance(thing, type):
            return type.__basicsize__
        elif isinstance(thing, int):
            return int.__sizeof__(thing)
    return kind.__basicsize__ + items * kind.__itemsize__


def describe(thing, kind):
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
    if isinstance(thing, type):
        return qualified(thing)
    if kind.__name__ == "ContextVar":
        return thing.name
    if kind.__module__ == "numpy" and kind.__name__.endswith("DType"):
        return str(thing)
    return ""


def qualified(thing):
    module = getattr(thing, "__module__", None)
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", "")
    return f"{module}.{name}" if isinstance(module, str) and module != "builtins" else str(name)


def name_all(near, namespaces):
    """Names of the objects ``near``, by address: ``np.sin``, ``np.__dict__``, ``numpy.ma`` and so on; the shortest
    public path wins."""
    names = {}

    def give(thing, name):
        if id(thing) not in near:
            return
        old = names.get(id(thing))
        if old is None or rank(name) < rank(old):
            names[id(thing)] = name

    for module in list(sys.modules.values()):
        if not isinstance(module, types.ModuleType):
            continue
        name = module.__name__
        short = SHORT.get(name, name)
        prefix = f"{short}." if short else ""
        give(module, short or name)
        content = vars(module)
        give(content, f"{prefix}__dict__")
        for key, value in list(content.items()):
            if isinstance(value, types.ModuleType) or type(value) in (str, int, float, bool, type(None)):
                continue
            give(value, f"{prefix}{key}")
            if isinstance(value, types.FunctionType):
                for part, what in ((value.__code__, "__code__"), (value.__defaults__, "__defaults__")):
                    if part:
                        give(part, f"{prefix}{key}.{what}")
            if type(value) is dict and len(value) < 1000:
                for inner, item in list(value.items()):
                    if type(inner) is str and type(item) not in (str, int, float, bool, type(None)):
                        give(item, f"{prefix}{key}[{inner!r}]")
            if isinstance(value, type):
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


def rank(name):
    """Order of preference: public, few dots, short, alphabet."""
    return (any(part.startswith("_") for part in name.split(".")), name.count("."), len(name), name)
