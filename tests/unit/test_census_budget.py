"""Budgets: what is beyond them names the object and the site, what is far below them is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from census_samples import PATCHED, SIN, STOCK, census, line

from ftnumpy.census import budget
from ftnumpy.errors import UsageError

STOCK_ALLOWED = {"PyCapsule mem_handler": 16, "ufunc np.sin": 4, "block PyArrayIdentityHash_New": 2.0}


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "census.toml"
    file.write_text(text)
    return file


def test_what_is_allowed_exactly_is_silent() -> None:
    assert budget.check(STOCK, STOCK_ALLOWED) == budget.Verdict(exceeded=(), loose=())


def test_what_goes_beyond_names_object_figures_and_site() -> None:
    verdict = budget.check(STOCK, STOCK_ALLOWED | {"PyCapsule mem_handler": 15.5})
    assert verdict.exceeded == (
        "kernel: PyCapsule mem_handler makes 16 locked shared writes, 15.50 allowed, "
        "most at PyDataMem_GetHandler alloc.c:420 ← PyArray_NewFromDescr_int ctors.c:810",
    )
    assert verdict.loose == ()


def test_what_is_not_named_is_not_allowed() -> None:
    (told,) = budget.check(PATCHED, {}).exceeded
    assert told.startswith("kernel: ufunc np.sin makes 4 locked shared writes, 0 allowed, most at ")


def test_what_can_be_tightened_is_told() -> None:
    verdict = budget.check(PATCHED, {"ufunc np.sin": 6, "type float": 2})
    assert verdict.exceeded == ()
    assert verdict.loose == (
        "kernel: ufunc np.sin may make 6 locked writes and makes 4",
        "kernel: type float may make 2 locked writes and makes 0",
    )


@pytest.mark.parametrize(("locked", "silent"), [(0.04, True), (0.06, False)])
def test_what_happens_less_than_once_in_twenty_iterations_is_let_pass(locked: float, silent: bool) -> None:
    assert (budget.check(census(line((SIN, locked))), {}).exceeded == ()) is silent


def test_plain_writes_have_no_budget() -> None:
    assert budget.check(census(line((SIN, 0), plain=7)), {}).exceeded == ()


def test_budgets_are_read(tmp_path: Path) -> None:
    file = write(tmp_path, '[kernel]\n"ufunc np.sin" = 4\n[add]\n')
    assert budget.read_budgets(file, ["add", "kernel"]) == {"kernel": {"ufunc np.sin": 4}, "add": {}}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[kernel\n", "Expected"),
        ("[kernel]\n[sin]\n", "'sin' is no workload"),
        ("", "'kernel' has no table; add one"),
        ('[kernel]\n"ufunc np.sin" = "4"\n', "allows 'ufunc np.sin' '4'; give a number"),
        ('[kernel]\n"ufunc np.sin" = true\n', "allows 'ufunc np.sin' True"),
        ('[kernel]\n"ufunc np.sin" = -1\n', "allows 'ufunc np.sin' -1"),
        ('[kernel]\n"ufunc np.sin" = nan\n', "allows 'ufunc np.sin' nan"),
        ('[kernel]\n"ufunc np.sin" = inf\n', "allows 'ufunc np.sin' inf"),
        ('[kernel]\n"ufunc np.sin" = 0\n', "or no line at all"),
        ("kernel = 3\n", "'kernel' is 3; give a table"),
    ],
)
def test_what_can_not_be_meant_is_refused(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        budget.read_budgets(write(tmp_path, text), ["kernel"])
    assert told in str(error.value) and "census.toml" in str(error.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"census\.toml can't be read: No such file"):
        budget.read_budgets(tmp_path / "census.toml", [])
