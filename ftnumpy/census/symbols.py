"""From an address to a function, a source line or a variable, by binutils and the program's memory map."""

from __future__ import annotations

import bisect
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ftnumpy.census.tally import Frame
from ftnumpy.errors import PrerequisiteError


@dataclass(frozen=True, slots=True)
class Mapping:
    start: int
    end: int
    offset: int
    path: str  # empty or in brackets for memory that is no file


@dataclass(frozen=True, slots=True)
class Symbol:
    start: int
    size: int
    name: str


@dataclass
class Symbols:
    """The code and the variables of one process, by its memory map (lines as in /proc/PID/maps)."""

    mappings: list[Mapping]
    _frames: dict[int, tuple[Frame, ...]] = field(default_factory=dict)
    _tables: dict[str, list[Symbol]] = field(default_factory=dict)
    _loads: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)

    def frames(self, addresses: Iterable[int]) -> dict[int, tuple[Frame, ...]]:
        """For each address the functions that it lies in, inlined ones first.  One call of addr2line per file."""
        wanted = {address for address in addresses if address not in self._frames}
        by_file: dict[str, dict[int, int]] = {}
        for address in wanted:
            place = self.linked(address)
            if place is None:
                self._frames[address] = (Frame(function="?", file="", line=0),)
            else:
                by_file.setdefault(place[0], {})[address] = place[1]
        for path, places in by_file.items():
            found = _addr2line(path, sorted(set(places.values())))
            for address, linked in places.items():
                self._frames[address] = found.get(linked) or (self._from_table(path, linked),)
        return self._frames

    def linked(self, address: int) -> tuple[str, int] | None:
        """The file that is mapped at ``address`` and the address that its linker gave to that place."""
        mapping = self._mapping(address)
        if mapping is None:
            return None
        if mapping.path.startswith("/"):
            offset = address - mapping.start + mapping.offset
            for file_offset, linked, size in self._segments(mapping.path):
                if file_offset <= offset < file_offset + size:
                    return mapping.path, linked + offset - file_offset
        return self._zeroed(address)

    def variable(self, address: int) -> tuple[Symbol, str, int] | None:
        """The static variable at ``address``: symbol, file, and how far into it; None when there is none."""
        place = self.linked(address)
        if place is None:
            return None
        symbol = self._symbol(*place)
        return None if symbol is None else (symbol, place[0], place[1] - symbol.start)

    def _mapping(self, address: int) -> Mapping | None:
        at = bisect.bisect_right(self.mappings, address, key=lambda mapping: mapping.start) - 1
        if at >= 0 and address < self.mappings[at].end:
            return self.mappings[at]
        return None

    def _zeroed(self, address: int) -> tuple[str, int] | None:
        """As `linked`, for variables that start as zero: they lie behind what is mapped from their file."""
        at = bisect.bisect_right(self.mappings, address, key=lambda mapping: mapping.start) - 1
        while at >= 0 and not self.mappings[at].path.startswith("/"):
            at -= 1
        if at < 0:
            return None
        last = self.mappings[at]
        for file_offset, linked, size in self._segments(last.path, memory=True):
            start = last.start - last.offset + file_offset
            if file_offset < last.offset + (last.end - last.start) and start <= address < start + size:
                return last.path, linked + address - start
        return None

    def _segments(self, path: str, *, memory: bool = False) -> list[tuple[int, int, int]]:
        """The loaded parts of an ELF file: offset, linked address, size in the file or in memory."""
        key = f"{path}\0{memory}"
        if key not in self._loads:
            self._loads[key] = _read_segments(Path(path), memory)
        return self._loads[key]

    def _symbol(self, path: str, linked: int) -> Symbol | None:
        if path not in self._tables:
            self._tables[path] = _nm(path)
        table = self._tables[path]
        at = bisect.bisect_right(table, linked, key=lambda symbol: symbol.start) - 1
        # Several symbols may begin at one place, and small ones inside larger ones.
        for symbol in reversed(table[max(0, at - 8) : at + 1]):
            if symbol.start <= linked < symbol.start + max(symbol.size, 1):
                return symbol
        return None

    def _from_table(self, path: str, linked: int) -> Frame:
        symbol = self._symbol(path, linked)
        name = Path(path).name
        return Frame(function=symbol.name if symbol else f"{name}+{linked:#x}", file=name, line=0)


def read_maps(lines: Iterable[str]) -> Symbols:
    """Symbols for the process whose memory map has these ``lines``."""
    mappings = []
    for line in lines:
        match = re.match(r"([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) \S+ \S+\s*(.*)", line)
        if match:
            mappings.append(Mapping(int(match[1], 16), int(match[2], 16), int(match[3], 16), match[4]))
    return Symbols(sorted(mappings, key=lambda mapping: mapping.start))


def short(name: str) -> str:
    """A function's name without its arguments and without what the compiler appended (``.part.0``, ``.cold``)."""
    name = re.sub(r"\.(part|isra|constprop|cold|lto_priv)(\.\d+)*", "", name)
    return re.sub(r"\(.*\)( const)?$", "", name)


def _run(command: list[str], text: str = "") -> str:
    try:
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        raise PrerequisiteError(f"the census needs {command[0]}; install binutils") from None


def _addr2line(path: str, places: list[int]) -> dict[int, tuple[Frame, ...]]:
    """Frames by linked address, for those with debug information."""
    text = "\n".join(f"{place:x}" for place in places)
    rows = _run(["addr2line", "-a", "-i", "-f", "-C", "-e", path], text).splitlines()
    found: dict[int, tuple[Frame, ...]] = {}
    place, at = 0, 0
    while at < len(rows):
        if re.fullmatch(r"0x[0-9a-f]{16}", rows[at]):
            place, at = int(rows[at], 16), at + 1
            continue
        function, where = rows[at], rows[at + 1] if at + 1 < len(rows) else "??:0"
        at += 2
        file, _, number = where.split(" (")[0].rpartition(":")
        if function != "??" and file not in ("", "??"):
            line = int(number) if number.isdecimal() else 0
            file = re.sub(r"^\./", "", file)
            found[place] = (*found.get(place, ()), Frame(function=short(function), file=file, line=line))
    return found


def _nm(path: str) -> list[Symbol]:
    """The symbols of a file by address; the dynamic ones when it was stripped."""
    for options in ([], ["-D"]):
        table = []
        for row in _run(["nm", "-n", "-S", "-C", *options, path]).splitlines():
            match = re.match(r"([0-9a-f]{16}) ([0-9a-f]{16}) . (.*)", row)
            if match:
                table.append(Symbol(int(match[1], 16), int(match[2], 16), short(match[3])))
        if table:
            return sorted(table, key=lambda symbol: (symbol.start, symbol.size))
    return []


def _read_segments(path: Path, memory: bool) -> list[tuple[int, int, int]]:
    try:
        with path.open("rb") as file:
            head = file.read(64)
            if head[:4] != b"\x7fELF":
                return []
            start = int.from_bytes(head[32:40], "little")
            size, count = int.from_bytes(head[54:56], "little"), int.from_bytes(head[56:58], "little")
            file.seek(start)
            headers = [file.read(size) for _ in range(count)]
    except OSError:
        return []
    segments = []
    for header in headers:
        offset, linked, _, in_file, in_memory = (
            int.from_bytes(header[at : at + 8], "little") for at in (8, 16, 24, 32, 40)
        )
        if int.from_bytes(header[:4], "little") == 1:  # PT_LOAD
            segments.append((offset, linked, in_memory if memory else in_file))
    return segments
