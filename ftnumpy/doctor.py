"""What this machine has, what it lacks, and what is built already."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path

from rich.table import Table

from ftnumpy import console, fingerprint, prerequisites
from ftnumpy.settings import Settings
from ftnumpy.stack import Stack

GIB = 1 << 30
NEEDED_DISK = 6 * GIB  # one variant: trees, objects, interpreter, wheel and environments


def run(stack: Stack, settings: Settings) -> None:
    """Show it all; raises `PrerequisiteError` when something that a build needs is missing."""
    findings = prerequisites.check(settings)
    table = Table(title="what builds need", title_justify="left")
    for column in ("what", "", "version", "for"):
        table.add_column(column)
    for finding in findings:
        state = "found" if finding.found else "missing, optional" if finding.need.optional else "MISSING"
        table.add_row(finding.need.name, state, finding.version, finding.need.why)
    console.out.print(table)

    table = Table(title="this machine", title_justify="left")
    table.add_column("what")
    table.add_column("")
    for name, value in _machine(stack, settings):
        table.add_row(name, value)
    console.out.print(table)

    optional = [finding.need for finding in findings if not finding.found and finding.need.optional]
    if optional:
        console.warn(f"optional: {', '.join(need.name for need in optional)}. {prerequisites.advice(optional)}")
    free = shutil.disk_usage(_existing(settings.cache)).free
    if free < NEEDED_DISK:
        console.warn(f"{settings.cache} has {free / GIB:.1f} GiB free; a variant needs about {NEEDED_DISK // GIB} GiB")
    prerequisites.raise_for_missing(findings)


def _machine(stack: Stack, settings: Settings) -> list[tuple[str, str]]:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    usage = shutil.disk_usage(_existing(settings.cache))
    channels = [name for name in stack.channels if not settings.offline or name in ("cache", "folder")]
    if settings.sources is None:
        channels = [name for name in channels if name != "folder"]
    builds = sorted(settings.builds.iterdir()) if settings.builds.is_dir() else []
    return [
        ("system", f"{platform.platform()}, {os.cpu_count()} cores, {memory / GIB:.0f} GiB memory"),
        ("toolchain's Python", f"{platform.python_version()}, {sys.executable}"),
        ("compiler processes", str(settings.jobs)),
        ("releases", f"CPython {stack.cpython.releases[0].version}, NumPy {stack.numpy.releases[0].version}"),
        ("channels for archives", ", ".join(channels)),
        ("cache", f"{settings.cache}, {usage.free / GIB:.0f} GiB free of {usage.total / GIB:.0f} GiB"),
        *((folder.name, fingerprint.describe_times(folder)) for folder in builds),
    ]


def _existing(folder: Path) -> Path:
    """The nearest of ``folder`` and its parents that exists."""
    return next(place for place in (folder, *folder.parents) if place.exists())
