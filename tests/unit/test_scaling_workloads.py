"""The workloads: twelve classes, found by name or class, each a module that compiles."""

from __future__ import annotations

import pytest

from ftnumpy.errors import UsageError
from ftnumpy.scaling.workloads import ARRAYS, CONTROL, NAMED, TASKS, Workload, program, select


def test_each_of_twelve_classes_has_several_workloads_under_names_of_their_own() -> None:
    assert len(TASKS) == 12
    counts = {task: sum(workload.task == task for workload in NAMED) for task in TASKS}
    assert min(counts.values()) >= 3 and sum(counts.values()) == len(NAMED)
    assert len({workload.name for workload in NAMED} | set(TASKS)) == len(NAMED) + len(TASKS)
    assert all(workload.about for workload in NAMED)


def test_the_articles_program_is_there_whole() -> None:
    whole = {workload.name: workload.units for workload in NAMED if workload.units}
    assert whole == {"article-10": ARRAYS, "article-50": ARRAYS} and ARRAYS == 100_000


@pytest.mark.parametrize("workload", [*NAMED, CONTROL], ids=lambda workload: workload.name)
def test_a_workload_is_a_module_with_make(workload: Workload) -> None:
    code = compile(program(workload), workload.name, "exec")
    assert "make" in code.co_names
    assert "return" in workload.step, "a step without a result can't be checked"


def test_names_and_classes_select_in_the_lists_order() -> None:
    assert select([]) == NAMED
    assert [workload.name for workload in select(["add-at", "fft", "slices"])] == [
        "slices",
        "spectrum-256",
        "filter-by-fft",
        "fft-16x16",
        "add-at",
    ]


def test_an_unknown_workload_is_told_with_what_there_is() -> None:
    with pytest.raises(UsageError, match=r"no workload 'ftf'.*fft.*spectrum-256"):
        select(["sorting", "ftf"])
