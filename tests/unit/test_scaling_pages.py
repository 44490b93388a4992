"""What readers see: tables, the page's section, pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from scaling_samples import sample

from ftnumpy.census.timing import Spread
from ftnumpy.errors import UsageError
from ftnumpy.scaling import grids, markdown, plots
from ftnumpy.scaling.findings import Findings
from ftnumpy.scaling.series import PROCESSES

SVG = "{http://www.w3.org/2000/svg}"


def test_decays_are_said_with_quartiles_and_beside_the_control() -> None:
    found = sample()
    grid = grids.decays(found, found.classes, "class")
    assert grid.columns == (
        "class",
        *("stock", "patched", PROCESSES, "control"),
        *("stock, relative", "patched, relative", "processes, relative"),
    )
    assert grid.rows[0] == (
        "operators",
        *("60% (60 to 60)", "20% (20 to 20)", "20% (20 to 20)", "20% (20 to 20)"),
        *("50% (50 to 50)", "0% (0 to 0)", "0% (0 to 0)"),
    )
    assert "4 rounds" in grid.notes[0] and "2 workers" in grid.title


def test_gains_are_said_as_ratios() -> None:
    found = sample()
    (row, _) = grids.gains(found, found.classes, "class").rows
    assert row[1:] == (
        *("2.00 (2.00 to 2.00)", "4.00 (4.00 to 4.00)"),
        *("0.80 (0.80 to 0.80)", "3.20 (3.20 to 3.20)", "1.60 (1.60 to 1.60)"),
    )


def test_throughput_is_each_workers_own() -> None:
    found = sample()
    grid = grids.throughputs(found, found.workloads)
    assert grid.columns[1:] == ("stock, 1", "stock, 2", "patched, 1", "patched, 2", "processes, 1", "processes, 2")
    # 100 units in 1 second of the first launch, in 2 seconds of the second.
    assert grid.rows[0] == ("small", "75", "30", "150", "120", "75", "60")


def test_a_program_is_said_in_seconds_and_only_when_whole_so() -> None:
    found = sample()
    (program,) = found.programs
    grid = grids.program(found, program)
    assert grid.rows == (("1", "6.0", "3.0", "6.0"), ("2", "7.5", "1.9", "3.8"))
    assert "run whole" in grid.notes[0]
    part = replace(program, times=tuple(replace(time, units=100) for time in program.times))
    assert "only 100 of the 400 arrays" in grids.program(found, part).notes[0]


def test_latencies_stand_beside_those_with_a_collection() -> None:
    grid = grids.latencies(sample().latencies)
    assert grid.rows[1] == ("small", "patched", "1.5", "2.5", "3.0", "1.5", "2.5", "250", "12.5")
    assert "1 thread;" in grid.title


def test_facts_say_what_is_missing() -> None:
    grid = grids.facts(sample(missing=("the model's curve of stock: no QEMU",)))
    rows = dict(grid.rows)
    assert rows["command"] == "nox -s scaling -- --launches 2"
    assert rows["patched"] == "Python 3.13.15 (ft1-c4), NumPy 2.4.6+ft1"
    assert rows["highest share of time that a hypervisor took"] == "1.0%"
    assert rows["missing"] == "the model's curve of stock: no QEMU"


def test_no_zero_is_negative() -> None:
    assert grids.percent(Spread(median=-0.001, low=-0.104, high=0.004)) == "0% (-10 to 0)"
    assert grids.percent(Spread(median=-0.1, low=-0.2, high=-0.004)) == "-10% (-20 to 0)"


def test_the_section_between_the_marks_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"# Head\n\n{markdown.BEGIN}\n\nold\n\n{markdown.END}\n\ntail\n")
    found = sample()
    text = markdown.section([grids.facts(found)], [("A picture", "picture.svg")])
    for _ in range(2):
        markdown.insert(page, text)
    new = page.read_text()
    assert new.startswith(f"# Head\n\n{markdown.BEGIN}\n\n**measured**\n") and new.endswith(f"{markdown.END}\n\ntail\n")
    assert "old" not in new and new.count("| machine | A processor, 2 processors on 2 cores") == 1
    assert "![A picture](picture.svg)" in new
    assert [path.name for path in tmp_path.iterdir()] == ["performance.md"]


def test_figures_are_set_to_the_right_in_a_table() -> None:
    table = markdown.table(grids.latencies(sample().latencies)).splitlines()
    assert table[3] == "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"


@pytest.mark.parametrize("text", [None, "# Head\n", f"{markdown.END}\n{markdown.BEGIN}\n"])
def test_a_page_without_marks_is_refused_and_left_alone(text: str | None, tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    if text is not None:
        page.write_text(text)
    with pytest.raises(UsageError, match=r"performance\.md lacks the lines"):
        markdown.insert(page, "x")
    assert (page.read_text() if page.exists() else None) == text


def test_the_repositorys_page_has_the_marks() -> None:
    markdown.check(Path(__file__).parents[2] / "docs" / "performance.md")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plots")
    titles = [title for title, _ in plots.draw(sample(), folder)]
    assert titles == [
        "The article's program: time over workers",
        "Decay of throughput per worker at 2 workers",
        "Before and after, with 2 workers",
    ]
    return folder


@pytest.mark.parametrize("name", ["scaling-article", "scaling-decay", "scaling-gain"])
def test_each_picture_is_there_as_svg_and_png(name: str, drawn: Path) -> None:
    assert ElementTree.parse(drawn / f"{name}.svg").getroot().tag == f"{SVG}svg"
    assert (drawn / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert len(list(drawn.iterdir())) == 6


def test_the_same_figures_give_the_same_files(drawn: Path, tmp_path: Path) -> None:
    for _, file in plots.draw(sample(), tmp_path):
        assert file.read_bytes() == (drawn / file.name).read_bytes()


def test_the_articles_figure_has_measured_lines_and_a_dashed_model_beyond_them() -> None:
    axes = plots.article(sample()).axes[0]
    lines = {str(line.get_label()): line for line in axes.get_lines()}
    measured = {label: line for label, line in lines.items() if "model" not in label}
    assert set(measured) == {"threads, stock", "threads, patched", "processes, stock"}
    assert all(line.get_linestyle() == "-" and list(line.get_xdata()) == [1, 2] for line in measured.values())
    model = lines["threads, stock: a model, not measured"]
    assert model.get_linestyle() == "--"
    assert list(model.get_xdata()) == [2, 4, 8]
    assert list(model.get_ydata()) == pytest.approx([6.0 / 1.9, 6.0 / 3.5, 6.0 / 4.0])


def test_a_machine_as_large_as_the_model_needs_none() -> None:
    found = sample()
    small = tuple(replace(curve, cores=curve.cores[:2], speedup=curve.speedup[:2]) for curve in found.curves)
    axes = plots.article(replace(found, curves=small)).axes[0]
    assert {line.get_linestyle() for line in axes.get_lines()} == {"-"}


def test_without_a_model_there_is_no_dashed_line() -> None:
    axes = plots.article(sample(curves=False)).axes[0]
    assert {line.get_linestyle() for line in axes.get_lines()} == {"-"}


def test_a_program_that_was_run_in_part_is_called_so_in_its_figure() -> None:
    found = sample()
    (program,) = found.programs
    part = replace(program, times=tuple(replace(time, units=100) for time in program.times))
    axes = plots.article(replace(found, programs=(part,))).axes[0]
    assert axes.get_title() == "whole, 25% of it"


def test_without_the_program_there_is_no_such_picture(tmp_path: Path) -> None:
    found: Findings = replace(sample(), programs=())
    assert [file.name for _, file in plots.draw(found, tmp_path)] == ["scaling-decay.svg", "scaling-gain.svg"]


def test_the_map_shows_every_class_in_every_mode() -> None:
    axes = plots.decays(sample()).axes[0]
    assert [text.get_text() for text in axes.texts] == ["50%", "0%", "0%", "50%", "0%", "0%"]
    assert [text.get_text() for text in axes.get_yticklabels()] == [
        "small binary ufuncs and operators",
        "the article's chain of ufuncs",
    ]


def test_the_bars_show_all_workers_over_one_of_stock() -> None:
    axes = plots.gains(sample()).axes[0]
    assert [round(bar.get_width(), 2) for bar in axes.patches] == [0.8, 0.8, 3.2, 3.2]
