"""The session ``report``: the page for a team, from what other sessions have kept."""

from __future__ import annotations

import time

from ftnumpy.census.report import write
from ftnumpy.console import Summary
from ftnumpy.report.chapters import chapters
from ftnumpy.report.page import page
from ftnumpy.settings import Settings
from ftnumpy.stack import Stack


def run(stack: Stack, settings: Settings, summary: Summary) -> str:
    """Write the page; returns where it is, and which results are missing."""
    file = settings.root / ".build" / "report.html"
    with summary.step("report") as result:
        found = chapters(stack, settings)
        file.parent.mkdir(exist_ok=True)
        write(file, page(found, time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())))
        missing = [f"missing  {each.what}: {each.command}" for chapter in found for each in chapter.missing]
        result.append(f"{len(missing)} results are missing" if missing else "complete")
    return "\n".join(["", *missing, f"page     {file}"])
