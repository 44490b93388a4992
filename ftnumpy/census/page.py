"""Reports as HTML: each page is one file that needs nothing else, readable in light and dark, without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from ftnumpy.census import grids, wording
from ftnumpy.census.compare import Comparison
from ftnumpy.census.report import Report

PAGES = Environment(
    loader=PackageLoader("ftnumpy.census", "pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
PAGES.filters |= {
    "figure": wording.figure,
    "place": wording.place,
    "sharing": wording.sharing,
    "writer": wording.writer,
}


def report(found: Report) -> str:
    """The page of one workload: its lines with their words and sites, system calls, the native run, the model."""
    return PAGES.get_template("report.html.jinja").render(
        title=f"Census of {found.census.workload} on {found.census.variant}",
        census=found.census,
        unit=wording.per(found.census),
        most=max((line.locked for line in found.census.lines), default=0),
        sections=grids.besides(found),
    )


def comparison(found: Sequence[Comparison]) -> str:
    """The page of the same censuses of one or more workloads, side by side."""
    return PAGES.get_template("tables.html.jinja").render(
        title=f"Census: {', '.join(found[0].labels)}",
        lead="Writes to each object that threads share, side by side.",
        sections=[
            *([grids.comparisons(found)] if len(found) > 1 else []),
            *(grids.comparison(each) for each in found),
        ],
        links={},
    )


def overview(found: Sequence[Report], links: Sequence[Path]) -> str:
    """The page of several workloads, with links to the page of each."""
    censuses = [each.census for each in found]
    return PAGES.get_template("tables.html.jinja").render(
        title=f"Census of {len(found)} workloads on {censuses[0].variant}",
        lead="Writes that make cache lines travel between cores, workload by workload.",
        sections=[grids.overview(censuses)],
        links={each.workload: link.name for each, link in zip(censuses, links, strict=True)},
    )
