"""A census as a file: what is written is read again, and anything else is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from census_samples import STOCK

from ftnumpy.census import tally
from ftnumpy.errors import UsageError


def test_what_is_saved_is_loaded_again(tmp_path: Path) -> None:
    tally.save(STOCK, tmp_path / "kernel.json")
    assert tally.load(tmp_path / "kernel.json") == STOCK
    assert [file.name for file in tmp_path.iterdir()] == ["kernel.json"]


def test_another_format_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    tally.save(STOCK, file)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": tally.FORMAT - 1}))
    with pytest.raises(UsageError, match=r"old\.json has format 0, .* take the census again"):
        tally.load(file)


@pytest.mark.parametrize(
    "change",
    [{"lines": 7}, {"threads": "two"}, {"unheard-of": 1}, {"lines": [{"name": "np.sin"}]}, {"format": None}],
)
def test_what_is_no_census_is_refused(change: dict[str, object], tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    tally.save(STOCK, file)
    data = json.loads(file.read_text()) | change
    file.write_text(json.dumps({name: value for name, value in data.items() if value is not None}))
    with pytest.raises(UsageError, match=r"other\.json is not a census"):
        tally.load(file)


@pytest.mark.parametrize("text", ["", "[1, 2]", "kernel", "\x00"])
def test_nor_is_any_other_file(text: str, tmp_path: Path) -> None:
    (tmp_path / "other").write_text(text)
    with pytest.raises(UsageError, match="other is not a census"):
        tally.load(tmp_path / "other")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.json can't be read: No such file"):
        tally.load(tmp_path / "none.json")
