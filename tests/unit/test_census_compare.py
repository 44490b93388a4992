"""Censuses side by side, by object."""

from __future__ import annotations

import pytest
from census_samples import HANDLER, HANDLER_LINE, LOCK, LOCK_LINE, PATCHED, SIN, SIN_LINE, STOCK, census, line

from ftnumpy.census.compare import compare
from ftnumpy.census.shares import shares
from ftnumpy.errors import UsageError


def test_an_object_in_several_lines_is_one() -> None:
    found = shares(census(line((LOCK, 2)), line((LOCK, 6), (SIN, 1), address=0x8000)))
    assert [(share.name, share.locked, len(share.lines)) for share in found] == [
        ("block PyArrayIdentityHash_New", 8, 2),
        ("ufunc np.sin", 1, 1),
    ]
    assert found[0].lines[0].address == 0x8000, "the busiest first"


def test_what_is_only_read_in_a_shared_line_is_nobodys_cost() -> None:
    assert [share.name for share in shares(census(line((SIN, 4), (LOCK, 0))))] == ["ufunc np.sin"]


def test_what_was_removed_stands_beside_what_was_left() -> None:
    found = compare(["stock", "patched"], [STOCK, PATCHED])
    assert [(row.name, row.locked(0), row.locked(1)) for row in found.rows] == [
        ("PyCapsule mem_handler", 16, 0),
        ("ufunc np.sin", 4, 4),
        ("block PyArrayIdentityHash_New", 2, 0),
    ]
    assert found.rows[0].shares[1] is None


def test_an_object_is_found_again_when_its_neighbour_goes() -> None:
    before, after = census(line((SIN, 4), (HANDLER, 16))), census(line((SIN, 4)))
    rows = compare(["a", "b"], [before, after]).rows
    assert [(row.name, row.locked(0), row.locked(1)) for row in rows] == [
        ("PyCapsule mem_handler", 16, 0),
        ("ufunc np.sin", 4, 4),
    ]


def test_what_is_new_comes_last_and_more_than_two_can_be_compared() -> None:
    new = census(SIN_LINE, line((LOCK, 9)))
    rows = compare(["a", "b", "c"], [census(HANDLER_LINE, SIN_LINE), census(SIN_LINE, LOCK_LINE), new]).rows
    assert [(row.name, [row.locked(at) for at in range(3)]) for row in rows] == [
        ("PyCapsule mem_handler", [16, 0, 0]),
        ("ufunc np.sin", [4, 4, 4]),
        ("block PyArrayIdentityHash_New", [0, 2, 9]),
    ]


def test_different_workloads_are_not_compared() -> None:
    with pytest.raises(UsageError, match=r"two or more censuses of one workload; got 2 of add, kernel"):
        compare(["a", "b"], [STOCK, census(workload="add")])
    with pytest.raises(UsageError, match="got 1 of kernel"):
        compare(["a"], [STOCK])
