"""What a census counts, from the user's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from ftnumpy.census.target import read_target
from ftnumpy.census.workloads import NAMED
from ftnumpy.errors import UsageError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_no_word_is_the_whole_list() -> None:
    target = read_target([])
    assert target.workloads == NAMED and target.program == ()


def test_names_are_workloads_in_their_order() -> None:
    assert [workload.name for workload in read_target(["sum", "sin"]).workloads] == ["sum", "sin"]


def test_a_program_has_all_words_after_it(folder: Path) -> None:
    (folder / "own.py").touch()
    target = read_target(["own.py", "--threads", "3", "sin"])
    assert target.program == ("own.py", "--threads", "3", "sin") and target.workloads == ()


def test_a_function_becomes_a_workload_that_calls_it() -> None:
    (workload,) = read_target(["colorsys:rgb_to_hls"]).workloads
    assert workload.name == "colorsys:rgb_to_hls"
    names: dict[str, object] = {}
    exec(workload.setup, names)
    with pytest.raises(TypeError, match="missing 3 required"):
        exec(workload.statement, names)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sinn"], "no workload 'sinn'; the workloads are "),
        (["sin", "--threads", "4"], "--threads stands behind what is to be counted"),
        (["none.py"], "no program none.py"),
        (["./none"], "no program ./none"),
        (["a b:c"], "'a b:c' is no function"),
        (["module:"], "'module:' is no function"),
        (["colorsys:rgb_to_hls", "sin"], "what is 'sin'?"),
    ],
)
def test_what_can_not_be_meant_is_refused(words: list[str], told: str) -> None:
    with pytest.raises(UsageError) as error:
        read_target(words)
    assert told in str(error.value)
