"""The session: bad wishes are refused before anything is built, everything that was found is kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from scaling_samples import SMALL, WHOLE, environment, machine, sample, seconds, series, whole_seconds

from ftnumpy import __main__
from ftnumpy import environment as environments
from ftnumpy.console import Summary
from ftnumpy.errors import FtnumpyError, PrerequisiteError, UsageError
from ftnumpy.options import Options
from ftnumpy.scaling import beyond, command, latency, markdown, runner, workloads
from ftnumpy.scaling.beyond import Curve
from ftnumpy.scaling.runner import Plan
from ftnumpy.scaling.series import Series
from ftnumpy.scaling.wishes import Wishes
from ftnumpy.scaling.workloads import Workload
from ftnumpy.settings import ROOT, Settings
from ftnumpy.stack import Stack, read_stack, read_variant

STACK = read_stack(ROOT / "stack.toml")


def wishes(*words: str, workers: str | None = None, launches: int = 2, docs: bool = False) -> Wishes:
    return Wishes(words=words, workers=workers, launches=launches, docs=docs)


def run(asked: Wishes, settings: Settings, variant: str = "patched") -> str:
    options = Options(variant=read_variant(variant), profile="default", minutes=2, seed=1, logs=settings.cache / "logs")
    return command.run(asked, STACK, settings, options, Summary("scaling"))


@pytest.fixture
def nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "user_environment", lambda *_: pytest.fail("built"))
    monkeypatch.setattr(command.machine, "look", lambda: machine(4))


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Everything about the measurement but the workers' time: the plans that were asked for."""
    plans: list[Plan] = []

    def measure(chosen: Sequence[Workload], launches: int, plan: Plan) -> list[Series]:
        plans.append(plan)
        after = list(plan.made)[-1]
        return [series(one, whole_seconds if one.units else seconds, after=after, launches=launches) for one in chosen]

    def made(stack: Stack, settings: Settings, options: Options, summary: Summary) -> object:
        return environment(settings.root / options.variant.name, options.variant.name)

    def curve(variant: str, *_: object) -> Curve:
        return Curve(label="a model", variant=variant, cores=(1, 2, 4), speedup=(1.0, 2.0, 3.0))

    monkeypatch.setattr(environments, "user_environment", made)
    monkeypatch.setattr(command.machine, "look", machine)
    monkeypatch.setattr(runner, "measure", measure)
    monkeypatch.setattr(latency, "measure", lambda *_: sample().latencies)
    monkeypatch.setattr(beyond, "curve", curve)
    monkeypatch.setattr(workloads, "NAMED", (SMALL, WHOLE))
    return plans


@pytest.mark.usefixtures("nothing_is_built")
@pytest.mark.parametrize(
    ("asked", "variant", "told"),
    [
        (wishes("sortng"), "patched", "there is no workload 'sortng'"),
        (wishes(workers="1,9"), "patched", "9 workers can't be measured here"),
        (wishes(workers="all"), "patched", "all is not a list of numbers"),
        (wishes(), "stock", "stock is what the variant is compared with"),
        (wishes("fft", docs=True), "patched", "leave out 'fft'"),
        (wishes(docs=True), "patched", "lacks the lines"),
    ],
)
def test_what_cant_be_meant_is_refused_before_anything_is_built(
    asked: Wishes, variant: str, told: str, settings: Settings
) -> None:
    with pytest.raises(UsageError, match=told):
        run(asked, settings, variant)
    assert not (settings.root / ".build").exists()


@pytest.mark.parametrize("variant", ["halved", "c99n0"])
def test_a_missing_variant_is_one_clear_error(
    variant: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FTNUMPY_CACHE", str(tmp_path))
    real = environments.user_environment

    def made(stack: Stack, settings: Settings, options: Options, summary: Summary) -> object:
        assert options.variant.name != "stock", "nothing is built before"
        return real(stack, settings, options, summary)

    monkeypatch.setattr(environments, "user_environment", made)
    assert __main__.main(["scaling", "--variant", variant, "fft"]) == UsageError.exit_code
    message = capsys.readouterr().err
    assert message.count("error:") == 1 and message.count("\n") == 1
    assert f"no variant '{variant}'" in message or "asks for 99 cpython patches" in message


def test_everything_is_kept_as_data_tables_and_pictures(measured: list[Plan], settings: Settings) -> None:
    closing = run(wishes(), settings)
    folder = settings.root / ".build" / "scaling"
    (plan,) = measured
    assert (list(plan.made), plan.workers, plan.folder) == (["stock", "patched"], (1, 2), folder / "raw")
    data = json.loads((folder / "scaling.json").read_text())
    assert data["command"] == "nox -s scaling -- --launches 2"
    assert data["variants"]["patched"].endswith("(patched), NumPy 0")
    text = (folder / "scaling.md").read_text()
    assert "| operators | 60% (60 to 60)" in text and "| small | 60% (60 to 60)" in text
    for name in ("scaling-article", "scaling-decay", "scaling-gain"):
        assert (folder / f"{name}.svg").exists() and (folder / f"{name}.png").exists()
        assert f"({name}.svg)" in text
        assert str(folder / f"{name}.svg") in closing


def test_figures_go_into_the_page_with_their_pictures(measured: list[Plan], settings: Settings) -> None:
    page = settings.root / "docs" / "performance.md"
    page.parent.mkdir()
    page.write_text(f"# Head\n{markdown.BEGIN}\n{markdown.END}\n")
    assert str(page) in run(wishes(docs=True), settings)
    assert "60% (60 to 60)" in page.read_text() and page.read_text().startswith("# Head\n")
    assert sorted(path.name for path in page.parent.iterdir()) == [
        "performance.md",
        "scaling-article.svg",
        "scaling-decay.svg",
        "scaling-gain.svg",
    ]


def test_a_variant_is_compared_with_stock_by_its_name(measured: list[Plan], settings: Settings) -> None:
    run(wishes("small", workers="2"), settings, "c2n1")
    assert list(measured[0].made) == ["stock", "c2n1"]
    data = json.loads((settings.root / ".build" / "scaling" / "scaling.json").read_text())
    assert data["command"] == "nox -s scaling -- --variant c2n1 --workers 2 --launches 2 small"


@pytest.mark.parametrize("error", [PrerequisiteError("no QEMU"), FtnumpyError("one processor")])
def test_without_the_model_the_rest_is_there_and_says_so(
    error: FtnumpyError, measured: list[Plan], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> Curve:
        raise error

    monkeypatch.setattr(beyond, "curve", refuse)
    run(wishes(), settings)
    folder = settings.root / ".build" / "scaling"
    data = json.loads((folder / "scaling.json").read_text())
    assert data["missing"] == [f"the model's curve of {variant}: {error}" for variant in ("stock", "patched")]
    assert f"| missing | the model's curve of stock: {error} |" in (folder / "scaling.md").read_text()


def test_the_model_is_asked_only_where_the_program_is_measured(
    measured: list[Plan], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beyond, "curve", lambda *_: pytest.fail("asked"))
    run(wishes("small"), settings)


def test_a_models_curve_is_kept_for_its_build(tmp_path: Path, settings: Settings) -> None:
    made = environment(tmp_path / "stock", "stock")
    kept = replace(sample().curves[0])
    name = f"model-{made.interpreter.fingerprint[:8]}-{made.wheel.fingerprint[:8]}.json"
    (tmp_path / name).write_text(
        json.dumps({"label": kept.label, "variant": kept.variant, "cores": kept.cores, "speedup": kept.speedup})
    )
    assert beyond.curve("stock", made, tmp_path, settings, tmp_path / "log") == kept


def test_the_command_line_is_understood(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FTNUMPY_CACHE", str(tmp_path))
    seen: list[tuple[Wishes, str]] = []
    monkeypatch.setattr(
        command, "run", lambda asked, stack, settings, options, summary: seen.append((asked, options.variant.name))
    )
    assert __main__.main(["scaling"]) == 0
    monkeypatch.setenv("FTNUMPY_CACHE", str(tmp_path / "other"))
    assert __main__.main(["scaling", "--workers", "1,2", "--launches", "20", "--docs", "fft", "sorting"]) == 0
    assert seen == [
        (Wishes(words=(), workers=None, launches=5, docs=False), "patched"),
        (Wishes(words=("fft", "sorting"), workers="1,2", launches=20, docs=True), "patched"),
    ]
    assert __main__.main(["scaling", "--launches", "0"]) == UsageError.exit_code
