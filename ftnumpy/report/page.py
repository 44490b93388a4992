"""The report as a page: one file that needs nothing else, readable in light and dark, without scripts."""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import ChoiceLoader, PackageLoader

from ftnumpy.census.page import PAGES
from ftnumpy.report.chapters import Chapter

_PAGES = PAGES.overlay(
    loader=ChoiceLoader([PackageLoader("ftnumpy.report", "pages"), PackageLoader("ftnumpy.census", "pages")])
)


def page(chapters: Sequence[Chapter], written: str) -> str:
    """The page of ``chapters``; ``written`` says when."""
    links = {text.anchor: f"#{text.anchor}" for chapter in chapters for text in chapter.texts}
    return _PAGES.get_template("team.html.jinja").render(
        title="ftnumpy: what was built and what was found out",
        written=written,
        chapters=chapters,
        missing=[missing for chapter in chapters for missing in chapter.missing],
        links=links,
    )
