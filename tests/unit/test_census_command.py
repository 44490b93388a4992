"""The session: reports are kept, budgets decide how it ends, the sides of a comparison are found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from census_samples import PATCHED, REPORT, STOCK, census

from ftnumpy.census import command, known_answer, qemu, report
from ftnumpy.census.report import Report
from ftnumpy.census.target import Target, read_target
from ftnumpy.census.wishes import Wishes
from ftnumpy.census.workloads import NAMED
from ftnumpy.console import Summary
from ftnumpy.errors import BudgetExceeded, BuildError, UsageError
from ftnumpy.options import Options
from ftnumpy.settings import ROOT, Settings, read_settings
from ftnumpy.stack import Stack, read_stack, read_variant

STACK = read_stack(ROOT / "stack.toml")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of a checkout that allows the workload `sin` what the sample has on patched, and nothing else."""
    text = "".join(f'["{workload.name}"]\n' for workload in NAMED if workload.name != "sin")
    (tmp_path / "census.toml").write_text(f'{text}[sin]\n"ufunc np.sin" = 4\n')
    return read_settings({"FTNUMPY_CACHE": str(tmp_path / "cache")}, root=tmp_path)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Target]]:
    """What was asked for: variant and target.  The answer is the sample of that variant."""
    asked: list[tuple[str, Target]] = []

    def take(
        target: Target, wishes: Wishes, stack: Stack, settings: Settings, options: Options, summary: Summary
    ) -> list[Report]:
        asked.append((options.variant.name, target))
        sample = STOCK if options.variant.name == "stock" else PATCHED
        return [
            Report(
                census=replace(sample, workload=workload.name, variant=options.variant.name),
                native=None,
                prediction=None,
            )
            for workload in target.workloads
        ]

    monkeypatch.setattr(command, "take", take)
    monkeypatch.setattr(known_answer, "check", lambda settings, folder, log: "exact")
    return asked


def run(
    settings: Settings, *words: str, variant: str = "patched", iterations: int | None = None, fetch: bool = False
) -> str:
    wishes = Wishes(
        words=words, python=None, threads=2, iterations=iterations, native=False, out=None, fetch_qemu=fetch
    )
    options = Options(variant=read_variant(variant), profile="default", minutes=2, seed=1, logs=settings.cache / "logs")
    return command.run(wishes, STACK, settings, options, Summary("census"))


def test_one_workload_is_kept_as_a_file_and_a_page(settings: Settings, taken: list[tuple[str, Target]]) -> None:
    closing = run(settings, "sin")
    folder = settings.root / ".build" / "census" / "patched"
    assert sorted(file.name for file in folder.iterdir()) == ["sin.html", "sin.json"]
    assert report.load(folder / "sin.json").census == replace(PATCHED, workload="sin")
    assert closing == "budgets: 1 workload keeps within census.toml"


def test_several_have_a_page_that_leads_to_each(
    settings: Settings, taken: list[tuple[str, Target]], capsys: pytest.CaptureFixture[str]
) -> None:
    closing = run(settings, "sin", "sum", variant="stock")
    folder = settings.root / ".build" / "census" / "stock"
    assert f"page  {folder / 'index.html'}" in closing
    assert 'href="sum.html"' in (folder / "index.html").read_text()
    assert capsys.readouterr().out.count("PyCapsule mem_handler 16") == 2


def test_what_goes_beyond_its_budget_fails_after_everything_is_kept(
    settings: Settings, taken: list[tuple[str, Target]], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BudgetExceeded) as error:
        run(settings, "sin", "sum")
    assert "  sum: ufunc np.sin makes 4 locked shared writes, 0 allowed, most at PyDataMem_GetHandler" in str(
        error.value
    )
    assert "sin: " not in str(error.value).replace("np.sin", "")
    page = settings.root / ".build" / "census" / "patched" / "index.html"
    assert page.exists() and str(page) in capsys.readouterr().out


def test_what_could_be_tightened_is_said(settings: Settings, taken: list[tuple[str, Target]]) -> None:
    file = settings.root / "census.toml"
    file.write_text(file.read_text().replace('"ufunc np.sin" = 4', '"ufunc np.sin" = 6'))
    assert "could be tightened: sin: ufunc np.sin may make 6 locked writes and makes 4" in run(settings, "sin")


@pytest.mark.parametrize("how", [{"variant": "stock"}, {"variant": "c1n0"}, {"iterations": 3}])
def test_budgets_are_those_of_patched_as_it_is_counted_by_default(
    how: dict[str, object], settings: Settings, taken: list[tuple[str, Target]]
) -> None:
    assert "within census.toml" not in run(settings, "sum", **how)  # type: ignore[arg-type]


def test_an_interpreter_that_is_not_there_is_told(settings: Settings) -> None:
    wishes = Wishes(
        words=("sin",),
        python=settings.root / "python",
        threads=2,
        iterations=None,
        native=False,
        out=None,
        fetch_qemu=False,
    )
    options = Options(variant=read_variant("patched"), profile="default", minutes=2, seed=1, logs=settings.cache)
    with pytest.raises(UsageError, match="python, which is no file"):
        command.take(read_target(["sin"]), wishes, STACK, settings, options, Summary("census"))


def test_nothing_is_taken_by_a_plugin_that_counts_wrong(
    settings: Settings, taken: list[tuple[str, Target]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(settings: Settings, folder: Path, log: Path) -> str:
        raise BuildError("the census does not count right")

    monkeypatch.setattr(known_answer, "check", check)
    for words in (["sin"], ["compare", "stock", "patched"]):
        with pytest.raises(BuildError, match="does not count right"):
            run(settings, *words)
    assert taken == []


def test_qemu_is_fetched_and_nothing_else_done(
    settings: Settings, taken: list[tuple[str, Target]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qemu, "fetch", lambda settings, log: settings.cache / "qemu")
    assert run(settings, fetch=True) == f"\nQEMU  {settings.cache / 'qemu'}"
    assert taken == []


def test_nothing_is_taken_when_the_budgets_can_not_be_read(settings: Settings, taken: list[tuple[str, Target]]) -> None:
    (settings.root / "census.toml").write_text("[sin]\n")
    with pytest.raises(UsageError, match="has no table"):
        run(settings, "sin")
    assert taken == []


def test_variants_are_compared_by_what_is_named_or_the_kernel(
    settings: Settings, taken: list[tuple[str, Target]], capsys: pytest.CaptureFixture[str]
) -> None:
    run(settings, "compare", "stock", "c1n0", "patched", "sin")
    assert [(name, [workload.name for workload in target.workloads]) for name, target in taken] == [
        ("stock", ["sin"]),
        ("c1n0", ["sin"]),
        ("patched", ["sin"]),
    ]
    closing = run(settings, "compare", "stock", "patched")
    assert [workload.name for workload in taken[-1][1].workloads] == ["kernel-10"]
    page = settings.root / ".build" / "census" / "compare-stock-patched.html"
    assert str(page) in closing and "mem_handler" in page.read_text()
    assert report.load(settings.root / ".build" / "census" / "stock" / "sin.json").census.locked == 22
    assert "mem_handler" in capsys.readouterr().out


def test_files_and_folders_are_compared_as_they_are(
    settings: Settings, taken: list[tuple[str, Target]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, sample in (("before", STOCK), ("after", PATCHED)):
        command.keep([Report(census=sample, native=None, prediction=None)], tmp_path / name)
    run(settings, "compare", str(tmp_path / "before"), str(tmp_path / "after" / "kernel.json"))
    assert taken == []
    shown = capsys.readouterr().out
    assert "stock" in shown and "patched" in shown and str(tmp_path / "before") not in shown


def test_sides_of_the_same_variant_bear_the_words_they_were_given_by(tmp_path: Path) -> None:
    sides = []
    for name in ("a", "b"):
        command.keep([REPORT], tmp_path / name)
        sides.append(str(tmp_path / name))
    found, rest = command.read_sides([*sides, "sin"])
    assert command.labels(found, [side.found for side in found]) == sides and rest == ["sin"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "two sides or more, got 0"),
        (["stock"], "got 1"),
        (["stock", "sin", "patched"], "got 1"),
        (["stock", "missing.json"], "missing.json can't be read"),
        (["stock", "empty"], "empty holds no census"),
    ],
)
def test_what_is_no_side_is_told(words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as error:
        command.read_sides(words)
    assert told in str(error.value)


def test_files_alone_hold_what_they_hold(settings: Settings, tmp_path: Path) -> None:
    command.keep([REPORT], tmp_path)
    with pytest.raises(UsageError, match="'sin' is no side, and there is no variant to count it on"):
        run(settings, "compare", str(tmp_path / "kernel.json"), str(tmp_path / "kernel.json"), "sin")


def test_a_variant_is_counted_for_what_the_files_hold(
    settings: Settings, taken: list[tuple[str, Target]], tmp_path: Path
) -> None:
    command.keep([Report(census=replace(STOCK, workload="sum"), native=None, prediction=None)], tmp_path)
    run(settings, "compare", str(tmp_path), "patched")
    assert [workload.name for workload in taken[0][1].workloads] == ["sum"]


def test_sides_without_a_common_workload_are_told(
    settings: Settings, taken: list[tuple[str, Target]], tmp_path: Path
) -> None:
    for name in ("one", "other"):
        sample = Report(census=census(workload=name, variant=name), native=None, prediction=None)
        command.keep([sample], tmp_path / name)
    with pytest.raises(UsageError, match="have no workload in common"):
        run(settings, "compare", str(tmp_path / "one"), str(tmp_path / "other"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("kernel-10", "kernel-10"),
        ("module.sub:function", "module.sub-function"),
        ("/usr/bin/python3", "usr-bin-python3"),
    ],
)
def test_names_of_files_are_names(text: str, name: str) -> None:
    assert command.file_name(text) == name


def test_the_checkouts_budgets_can_be_read() -> None:
    from ftnumpy.census import budget

    assert budget.read_budgets(ROOT / "census.toml", [workload.name for workload in NAMED])
