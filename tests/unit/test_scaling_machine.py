"""The machine: which processors come first, how many workers can be meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ftnumpy.errors import UsageError
from ftnumpy.scaling import machine
from ftnumpy.scaling.machine import Processor, ordered, read_workers


def numbers(*processors: tuple[int, int, str]) -> list[int]:
    return [one.number for one in ordered([Processor(number=n, node=node, core=core) for n, node, core in processors])]


def test_physical_cores_come_before_their_second_threads() -> None:
    assert numbers((0, 0, "0-1"), (1, 0, "0-1"), (2, 0, "2-3"), (3, 0, "2-3")) == [0, 2, 1, 3]


def test_the_node_with_the_most_cores_is_filled_first() -> None:
    assert numbers((0, 0, "0"), (1, 1, "1"), (2, 0, "2"), (3, 1, "3"), (4, 1, "4")) == [1, 3, 4, 0, 2]
    # Two cores with two threads each are no more than two cores.
    assert numbers((0, 0, "0,1"), (1, 0, "0,1"), (2, 1, "2"), (3, 1, "3"), (4, 1, "4")) == [2, 3, 4, 0, 1]


def test_the_topology_is_read_from_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, (node, siblings) in enumerate([(1, "0,2"), (1, "1,3"), (1, "0,2"), (1, "1,3")]):
        folder = tmp_path / "cpu" / f"cpu{number}"
        (folder / "topology").mkdir(parents=True)
        (folder / f"node{node}").mkdir()
        (folder / "topology" / "thread_siblings_list").write_text(f"{siblings}\n")
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("model name\t: Fast (R)\nflags\t\t: fpu hypervisor\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 2, 3})
    found = machine.look(tmp_path, cpuinfo)
    assert [one.number for one in found.processors] == [1, 2, 3], "3 shares the core of 1"
    assert {one.node for one in found.processors} == {1}
    assert "Fast (R), 3 processors on 2 cores of 1 NUMA node, virtual," in str(found)


def test_a_machine_that_says_nothing_has_processors_all_the_same(tmp_path: Path) -> None:
    found = machine.look(tmp_path, tmp_path / "cpuinfo")
    assert [one.number for one in found.processors] == sorted(os.sched_getaffinity(0))
    assert found.model and not found.virtual


def test_workers_go_from_one_to_all_unless_told() -> None:
    assert read_workers(None, 4) == (1, 2, 3, 4)
    assert read_workers("8,2,2", 8) == (1, 2, 8), "one worker is what the others are compared with"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("3", "3 workers can't be measured here.*gives us 2"),
        ("0", "0 workers can't be measured"),
        ("-1,1", "-1 workers can't be measured"),
        ("two", "two is not a list of numbers"),
        ("1,,2", "is not a list of numbers"),
        ("", "is not a list of numbers"),
        ("1.5", "is not a list of numbers"),
    ],
)
def test_a_wrong_number_of_workers_is_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        read_workers(text, 2)


def test_stolen_time_is_the_eighth_column(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  1 2 3 4 5 6 7 250 9 10\ncpu0 0 0 0 0 0 0 0 0 0 0\n")
    assert machine.steal_seconds(stat) == 250 / os.sysconf("SC_CLK_TCK")
    assert machine.steal_seconds(tmp_path / "absent") == 0.0
