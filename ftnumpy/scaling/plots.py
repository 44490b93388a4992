"""Findings as pictures, each as SVG and as PNG: the article's figure, a map of decays, before and after."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, ScalarFormatter, StrMethodFormatter

from ftnumpy.census.timing import Spread
from ftnumpy.scaling.findings import Findings, Program
from ftnumpy.scaling.series import PROCESSES
from ftnumpy.scaling.workloads import TASKS

BEFORE, AFTER, OTHER = "#c44e1b", "#1f6fb2", "#6b6b6b"  # told apart by readers who don't see red and green, too
MARKERS = {BEFORE: "o", AFTER: "s", OTHER: "^"}
DOTS_PER_INCH = 150


def draw(found: Findings, folder: Path) -> list[tuple[str, Path]]:
    """Write all pictures that ``found`` has figures for into ``folder``; returns title and SVG file of each."""
    pictures = []
    # Without this the same figures would give another file each time.
    with matplotlib.rc_context(
        {"svg.hashsalt": "ftnumpy", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    ):
        for name, title, figure in _figures(found):
            for suffix in ("svg", "png"):
                part = folder / f".{name}.{os.getpid()}.{suffix}"
                metadata = {"Date": None} if suffix == "svg" else {}
                figure.savefig(part, dpi=DOTS_PER_INCH, metadata=metadata)
                part.rename(folder / f"{name}.{suffix}")
            pictures.append((title, folder / f"{name}.svg"))
    return pictures


def _figures(found: Findings) -> Iterator[tuple[str, str, Figure]]:
    if found.programs:
        yield "scaling-article", "The article's program: time over workers", article(found)
    yield "scaling-decay", f"Decay of throughput per worker at {found.most} workers", decays(found)
    yield "scaling-gain", f"Before and after, with {found.most} workers", gains(found)


def colours(found: Findings) -> dict[str, str]:
    """By mode, in the order of legends."""
    return {found.before: BEFORE, found.after: AFTER, PROCESSES: OTHER}


def name(found: Findings, mode: str) -> str:
    return f"processes, {found.before}" if mode == PROCESSES else f"threads, {mode}"


def article(found: Findings) -> Figure:
    """Seconds over workers: measured ones as lines with points, the model's beyond the machine dashed."""
    figure = Figure(figsize=(5.2 * len(found.programs), 4.4), layout="constrained")
    panels = figure.subplots(1, len(found.programs), squeeze=False)[0]
    for axes, program in zip(panels, found.programs, strict=True):
        _article_panel(axes, found, program)
    panels[0].set_ylabel("seconds")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=9, loc="outside lower center", ncols=3)
    figure.suptitle("The article's program: time over workers")
    return figure


def _article_panel(axes: Axes, found: Findings, program: Program) -> None:
    for mode, colour in colours(found).items():
        seconds = [program.seconds(mode, count) for count in found.workers]
        axes.plot(found.workers, seconds, color=colour, marker=MARKERS[colour], label=name(found, mode))
    last = found.most
    for curve in found.curves:
        one = program.seconds(curve.variant, 1)
        # From the last measured point on, where a gap shows how far off the model is.
        places = [place for place, cores in enumerate(curve.cores) if cores >= found.most]
        if curve.cores[-1] <= found.most:
            continue
        cores = [curve.cores[place] for place in places]
        times = [one / curve.speedup[place] for place in places]
        label = f"threads, {curve.variant}: {curve.label}, not measured"
        axes.plot(cores, times, color=colours(found)[curve.variant], linestyle="--", linewidth=1.2, label=label)
        last = max(last, *cores)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ticks = sorted({1 << power for power in range(math.ceil(math.log2(last)) + 1)} | {found.most})
    axes.set_xticks([tick for tick in ticks if tick <= last])
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("workers")
    axes.set_title(f"{program.name}{'' if program.share == 1 else f', {program.share:.0%} of it'}", fontsize=10)
    axes.grid(True, which="major", color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)


def decays(found: Findings) -> Figure:
    """A field for each class and mode, with the decay relative to the control."""
    modes = list(colours(found))
    fields = [[100 * result.at(mode, found.most).relative.median for mode in modes] for result in found.classes]
    figure = Figure(figsize=(7.4, 1.6 + 0.36 * len(fields)), layout="constrained")
    axes = figure.subplots()
    top = max(10.0, *(value for row in fields for value in row))
    image = axes.imshow(fields, cmap="YlOrRd", vmin=0, vmax=top, aspect="auto")
    axes.set_xticks(range(len(modes)), [name(found, mode).replace(", ", ",\n") for mode in modes])
    axes.set_yticks(range(len(fields)), [TASKS[result.name] for result in found.classes])
    axes.tick_params(length=0)
    for row, values in enumerate(fields):
        for column, value in enumerate(values):
            axes.text(
                column,
                row,
                f"{round(value)}%",
                ha="center",
                va="center",
                color="white" if value > 0.6 * top else "black",
            )
    bar = figure.colorbar(image, ax=axes, pad=0.02)
    bar.set_label("decay relative to the control, %")
    figure.suptitle(f"Throughput per worker lost at {found.most} workers")
    return figure


def gains(found: Findings) -> Figure:
    """A pair of bars for each class: what all workers do, in multiples of one thread of the first variant."""
    classes = list(reversed(found.classes))
    figure = Figure(figsize=(7.4, 1.6 + 0.46 * len(classes)), layout="constrained")
    axes = figure.subplots()
    for shift, mode in ((0.2, found.before), (-0.2, found.after)):
        spreads: list[Spread] = [result.at(mode, found.most).speedup for result in classes]
        axes.barh(
            [place + shift for place in range(len(classes))],
            [spread.median for spread in spreads],
            height=0.38,
            color=colours(found)[mode],
            label=name(found, mode),
            xerr=(
                [spread.median - spread.low for spread in spreads],
                [spread.high - spread.median for spread in spreads],
            ),
            error_kw={"elinewidth": 0.8, "ecolor": "#333333", "capsize": 2},
        )
    axes.plot(
        [result.at(PROCESSES, found.most).speedup.median for result in classes],
        range(len(classes)),
        linestyle="none",
        marker="|",
        markersize=16,
        markeredgewidth=2,
        color=OTHER,
        label=name(found, PROCESSES),
    )
    axes.set_yticks(range(len(classes)), [TASKS[result.name] for result in classes])
    axes.axvline(1, color="#333333", linewidth=0.8)
    axes.set_xlabel(f"throughput, in multiples of one thread on {found.before}")
    figure.legend(frameon=False, fontsize=9, loc="outside lower center", ncols=3)
    axes.set_title(f"Before and after, with {found.most} workers")
    return figure
