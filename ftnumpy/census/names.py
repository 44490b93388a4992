"""What lies at an address: the guest's live objects, objects told by their type's address, static variables."""

from __future__ import annotations

import bisect
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftnumpy.census.symbols import Symbols, read_maps
from ftnumpy.census.tally import Owner

# The object header of free-threaded CPython 3.13 and later, and of the build with the GIL, by offset.
FREE_THREADED = {0: "ob_tid", 8: "ob_mutex, ob_ref_local", 16: "ob_ref_shared", 24: "ob_type"}
WITH_GIL = {0: "ob_refcnt", 8: "ob_type"}
LARGE = 64  # bytes; of a larger variable the part is named, too
REACH = 128  # bytes from the start of a block or of an object whose size is not known


@dataclass(frozen=True, slots=True)
class Thing:
    """A live object: where, how large, of which type, and its name."""

    start: int
    size: int
    type_at: int
    kind: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Names:
    """What the guest found out.  ``types`` are names by address; ``things`` and ``blocks`` (start, which object points
    to it) are sorted by start."""

    python: str
    numpy: str
    free_threaded: bool
    symbols: Symbols
    types: dict[int, str]
    things: list[Thing]
    blocks: list[tuple[int, str]]


@dataclass(frozen=True)
class Memory:
    """Bytes of the guest's memory at the time of a dump: blocks by their start."""

    blocks: list[tuple[int, bytes]]

    def word(self, address: int) -> int | None:
        """The 8 bytes at ``address``, None when they were not kept."""
        at = bisect.bisect_right(self.blocks, address, key=lambda block: block[0]) - 1
        if at < 0:
            return None
        start, data = self.blocks[at]
        part = data[address - start : address - start + 8]
        return int.from_bytes(part, "little") if len(part) == 8 else None


def read_names(path: Path) -> Names:
    """What `ftnumpy/census/guest/naming.py` wrote into ``path``."""
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return Names(
        python=data["python"],
        numpy=data["numpy"],
        free_threaded=data["free_threaded"],
        symbols=read_maps(data["maps"]),
        types=dict(data["types"]),
        things=sorted((Thing(*values) for values in data["things"]), key=lambda thing: thing.start),
        blocks=sorted((start, name) for start, name in data["blocks"]),
    )


def read_memory(path: Path) -> Memory:
    """The memory round a dump's lines, as the guest kept it."""
    data = path.read_bytes()
    blocks, at = [], 0
    while at < len(data):
        start, length = (int.from_bytes(data[at + k : at + k + 8], "little") for k in (0, 8))
        blocks.append((start, data[at + 16 : at + 16 + length]))
        at += 16 + length
    # Blocks that touch are one: an object may lie across.
    joined: list[tuple[int, bytes]] = []
    for start, part in sorted(blocks):
        if joined and joined[-1][0] + len(joined[-1][1]) == start:
            joined[-1] = (joined[-1][0], joined[-1][1] + part)
        else:
            joined.append((start, part))
    return Memory(joined)


def owner(names: Names, memory: Memory, address: int) -> Owner | None:
    """What lies at ``address`` (of a word); None when nobody knows."""
    header = FREE_THREADED if names.free_threaded else WITH_GIL
    type_offset = 24 if names.free_threaded else 8
    at = bisect.bisect_right(names.things, address, key=lambda thing: thing.start) - 1
    if at >= 0:
        thing = names.things[at]
        # It may have been made after the dump, where something else was: then the type was another one.
        if address < thing.start + thing.size and memory.word(thing.start + type_offset) == thing.type_at:
            offset = address - thing.start
            return Owner(kind=thing.kind, name=thing.name, field=header.get(offset, f"+{offset}"))
    variable = names.symbols.variable(address)
    if variable is not None:
        symbol, file, offset = variable
        name = symbol.name if symbol.size <= LARGE else f"{symbol.name}+{offset // LARGE * LARGE}"
        return Owner(kind="static", name=f"{name} ({Path(file).name.partition('.')[0]})", field=f"+{offset}")
    at = bisect.bisect_right(names.blocks, address, key=lambda block: block[0]) - 1
    block = names.blocks[at] if at >= 0 and address - names.blocks[at][0] < REACH else None
    # Objects begin at multiples of 16; the nearest before the address whose type is known is the one.
    for start in range(address & ~15, block[0] if block else address - REACH, -16):
        kind = names.types.get(memory.word(start + type_offset) or 0)
        if kind is not None:
            offset = address - start
            return Owner(kind=kind, name="", field=header.get(offset, f"+{offset}"))
    return None if block is None else Owner(kind="block", name=f"of {block[1]}", field=f"+{address - block[0]}")
