"""A census by object: what each of them has in the lines that threads share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ftnumpy.census.tally import Census, Line, Word


@dataclass(frozen=True, kw_only=True)
class Share:
    """What one object has in shared written lines, per iteration and thread; ``lines`` is how many it lies in, the
    ones with most locked writes to it first."""

    name: str
    locked: float
    plain: float
    reads: float
    lines: tuple[Line, ...]


def shares(census: Census) -> tuple[Share, ...]:
    """The objects that are written in shared lines, most locked writes first, then most plain ones."""
    words: dict[str, list[tuple[Line, Word]]] = {}
    for line in census.lines:
        for word in line.words:
            words.setdefault(str(word.owner), []).append((line, word))
    found = [_share(name, touched) for name, touched in words.items()]
    return tuple(sorted((share for share in found if share.locked or share.plain), key=_weight))


def _share(name: str, touched: Sequence[tuple[Line, Word]]) -> Share:
    by_line: dict[int, float] = {}
    for line, word in touched:
        by_line[line.address] = by_line.get(line.address, 0.0) + word.locked
    lines = {line.address: line for line, _ in touched}
    return Share(
        name=name,
        locked=sum(word.locked for _, word in touched),
        plain=sum(word.plain for _, word in touched),
        reads=sum(word.reads for _, word in touched),
        lines=tuple(lines[address] for address in sorted(by_line, key=lambda address: -by_line[address])),
    )


def _weight(share: Share) -> tuple[float, float, str]:
    return -share.locked, -share.plain, share.name
