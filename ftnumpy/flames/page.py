"""A flame graph as a page: one file that needs nothing else, to zoom into and to search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jinja2 import ChoiceLoader, PackageLoader

from ftnumpy.census.page import PAGES
from ftnumpy.flames.bottlenecks import BOTTLENECKS, grid
from ftnumpy.flames.stacks import KINDS, Folded, Frame

_PAGES = PAGES.overlay(
    loader=ChoiceLoader([PackageLoader("ftnumpy.flames", "pages"), PackageLoader("ftnumpy.census", "pages")])
)


@dataclass
class _Node:
    """A frame below one and the same callers; ``marks`` are the bottlenecks that end in it, by their place."""

    count: int = 0
    callees: dict[Frame, _Node] = field(default_factory=dict)
    marks: set[int] = field(default_factory=set)


def flames(
    workload: str, variant: str, found: Mapping[str, Folded], facts: Mapping[str, str], links: Mapping[str, str]
) -> str:
    """The page of ``variant``, one of those ``found``; ``facts`` say what was recorded how, ``links`` lead to the
    pages of the other variants."""
    folded = found[variant]
    return _PAGES.get_template("flames.html.jinja").render(
        title=f"Flame graph of {workload} on {variant}",
        facts=facts,
        links=links,
        grid=grid(workload, found),
        bottlenecks=[each.name for each in BOTTLENECKS],
        kinds=KINDS,
        tree=_tree(folded),
        total=folded.total,
    )


def _tree(folded: Folded) -> list[object]:
    """``[name, kind, count, marks, callees]`` of the root, the widest callee first; kinds by their place in `KINDS`."""
    root = _Node()
    for stack, count in folded.counts.items():
        ends = [each.place(stack) for each in BOTTLENECKS]
        node = root
        node.count += count
        for place, frame in enumerate(stack):
            node = node.callees.setdefault(frame, _Node())
            node.count += count
            node.marks |= {number for number, end in enumerate(ends) if end == place}
    return _plain(Frame("all threads", "library"), root)


def _plain(frame: Frame, node: _Node) -> list[object]:
    callees = sorted(node.callees.items(), key=lambda item: -item[1].count)
    return [
        frame.name,
        list(KINDS).index(frame.kind),
        node.count,
        sorted(node.marks),
        [_plain(callee, below) for callee, below in callees],
    ]
