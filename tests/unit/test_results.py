"""What sessions leave for the report: kept whole, read again, told when it is something else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ftnumpy import errors, results
from ftnumpy.console import Summary
from ftnumpy.errors import UsageError
from ftnumpy.options import Options
from ftnumpy.settings import Settings
from ftnumpy.stack import STOCK


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(variant=STOCK, profile="release", minutes=0.5, seed=7, logs=tmp_path / "logs")


def keep(settings: Settings, options: Options, error: Exception | None) -> None:
    summary = Summary("test")
    with results.kept("nox -s test", "test", settings, options, summary):
        with summary.step("unit tests") as result:
            result.append("5 passed")
        summary.builds["stock"] = ("aa", "bb")
        if error:
            raise error


def test_what_was_kept_is_read_again(settings: Settings, options: Options) -> None:
    keep(settings, options, None)
    (found,) = results.outcomes(settings)
    assert (found.session, found.variant, found.error) == ("test", "stock-release", "")
    assert [(step.what, step.result) for step in found.steps] == [("unit tests", "5 passed")]
    assert found.builds == {"stock": ("aa", "bb")} and found.ended.endswith("Z") and found.seconds >= 0
    assert [path.name for path in results.folder(settings).iterdir()] == ["test-stock-release.json"]


def test_a_run_on_none_of_our_builds_is_not_kept(settings: Settings, options: Options) -> None:
    with results.kept("nox -s census -- --python x", "census", settings, options, Summary("census")):
        pass
    assert results.outcomes(settings) == ()


def test_a_failure_takes_the_place_of_an_earlier_success_and_goes_on(settings: Settings, options: Options) -> None:
    keep(settings, options, None)
    with pytest.raises(errors.TestsFailed):
        keep(settings, options, errors.TestsFailed("2 failed"))
    (found,) = results.outcomes(settings)
    assert found.error == "2 failed" and found.steps[0].result == "5 passed"


@pytest.mark.parametrize("error", [UsageError("no such patch"), ZeroDivisionError("our mistake")])
def test_what_says_nothing_about_the_variant_leaves_the_run_before(
    settings: Settings, options: Options, error: Exception
) -> None:
    keep(settings, options, None)
    with pytest.raises(type(error)):
        keep(settings, options, error)
    assert results.outcomes(settings)[0].error == ""


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", json.dumps({"format": 99}), json.dumps({"format": results.FORMAT, "steps": [], "builds": {}})],
)
def test_a_file_of_something_else_is_named(settings: Settings, text: str) -> None:
    results.folder(settings).mkdir(parents=True)
    (results.folder(settings) / "test-stock.json").write_text(text)
    with pytest.raises(UsageError, match=r"test-stock\.json is no result"):
        results.outcomes(settings)
