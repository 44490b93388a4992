"""A report as a file: what is written is read again, and anything else is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from census_samples import REPORT, REPORT_WITH_ALL

from ftnumpy.census import report
from ftnumpy.census.report import Report
from ftnumpy.errors import UsageError


@pytest.mark.parametrize("saved", [REPORT, REPORT_WITH_ALL])
def test_what_is_saved_is_loaded_again(saved: Report, tmp_path: Path) -> None:
    report.save(saved, tmp_path / "kernel.json")
    assert report.load(tmp_path / "kernel.json") == saved
    assert [file.name for file in tmp_path.iterdir()] == ["kernel.json"]


def test_another_format_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    report.save(REPORT, file)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": report.FORMAT - 1}))
    with pytest.raises(UsageError, match=r"old\.json has format 0, .* take the census again"):
        report.load(file)


@pytest.mark.parametrize(
    "change",
    [{"census": 7}, {"native": 1}, {"unheard-of": 1}, {"census": {"workload": "np.sin"}}, {"format": None}],
)
def test_what_is_no_census_is_refused(change: dict[str, object], tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    report.save(REPORT_WITH_ALL, file)
    data = json.loads(file.read_text()) | change
    file.write_text(json.dumps({name: value for name, value in data.items() if value is not None}))
    with pytest.raises(UsageError, match=r"other\.json is not a census"):
        report.load(file)


@pytest.mark.parametrize("text", ["", "[1, 2]", "kernel", "\x00"])
def test_nor_is_any_other_file(text: str, tmp_path: Path) -> None:
    (tmp_path / "other").write_text(text)
    with pytest.raises(UsageError, match="other is not a census"):
        report.load(tmp_path / "other")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.json can't be read: No such file"):
        report.load(tmp_path / "none.json")


def test_a_figure_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    report.save(REPORT, file)
    file.write_text(file.read_text().replace('"threads": 2,', '"threads": "2",', 1))
    with pytest.raises(UsageError, match=r"other\.json is not a census"):
        report.load(file)
