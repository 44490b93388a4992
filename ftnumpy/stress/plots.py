"""What a run's kinds held over time, as a picture: SVG and PNG."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ftnumpy.stress.level import warm
from ftnumpy.stress.samples import Sample

COLOUR = "#1f6fb2"
DOTS_PER_INCH = 150
# Columns of the picture: title and value.
PANELS: tuple[tuple[str, Callable[[Sample], float]], ...] = (
    ("resident memory, MiB", lambda sample: sample.resident / (1 << 20)),
    ("allocated blocks", lambda sample: sample.blocks),
    ("objects that the collector knows", lambda sample: sum(sample.objects.values())),
    ("descriptors + threads", lambda sample: sample.descriptors + sample.threads),
)


def draw(kinds: Mapping[str, Sequence[Sample]], folder: Path, name: str) -> Path:
    """Write ``name``.svg and ``name``.png into ``folder``, a row for each of ``kinds`` that has samples; returns the
    SVG file."""
    rows = {kind: samples for kind, samples in kinds.items() if samples}
    # Without this the same figures would give another file each time.
    with matplotlib.rc_context(
        {"svg.hashsalt": "ftnumpy", "font.size": 8, "axes.spines.top": False, "axes.spines.right": False}
    ):
        figure = Figure(figsize=(12, 0.6 + 1.7 * len(rows)), layout="constrained")
        panels = figure.subplots(len(rows), len(PANELS), squeeze=False)
        for line, (kind, samples) in zip(panels, rows.items(), strict=True):
            for axes, (title, value) in zip(line, PANELS, strict=True):
                _panel(axes, samples, [value(sample) for sample in samples])
                axes.set_title(f"{kind.replace('_', ' ')}: {title}", fontsize=8, loc="left")
        for axes in panels[-1]:
            axes.set_xlabel("minutes; grey: warm-up")
        for suffix in ("svg", "png"):
            part = folder / f".{name}.{os.getpid()}.{suffix}"
            figure.savefig(part, dpi=DOTS_PER_INCH, metadata={"Date": None} if suffix == "svg" else {})
            part.rename(folder / f"{name}.{suffix}")
    return folder / f"{name}.svg"


def _panel(axes: Axes, samples: Sequence[Sample], values: Sequence[float]) -> None:
    minutes = [sample.seconds / 60 for sample in samples]
    axes.axvspan(0, warm(samples)[0].seconds / 60, color="#f0f0f0")
    axes.plot(minutes, values, color=COLOUR, linewidth=1)
    # From zero on: what is level must look level.
    axes.set_ylim(0, 1.15 * max(*values, 1))
    axes.set_xlim(left=0)
