"""Suites and their names, what differs between two runs and what that is worth, and the session around it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from upstream_samples import run, test_of

from ftnumpy import environment as environments
from ftnumpy import process
from ftnumpy.console import Summary
from ftnumpy.cpython import Interpreter
from ftnumpy.environment import Environment
from ftnumpy.errors import BuildError, CommandFailed, TestsFailed, UsageError
from ftnumpy.numpy_wheel import Wheel
from ftnumpy.options import Options
from ftnumpy.settings import ROOT, Settings
from ftnumpy.stack import GIL, PATCHED, STOCK, Release, Stack, read_stack, read_variant
from ftnumpy.upstream import alone, command, difference, findings, outcomes, plan, runner
from ftnumpy.upstream.difference import Difference
from ftnumpy.upstream.outcomes import Run
from ftnumpy.upstream.plan import Suite
from ftnumpy.upstream.runner import Place
from ftnumpy.upstream.wishes import Wishes

STACK = read_stack(ROOT / "stack.toml")


@pytest.fixture
def made(tmp_path: Path, release: Release) -> Environment:
    folder = tmp_path / "environment"
    (folder / "lib" / "python3.13t" / "site-packages" / "numpy").mkdir(parents=True)
    interpreter = Interpreter(tmp_path / "python3.13t", tmp_path, "aa", release, "ft1", False)
    return Environment(folder, folder / "bin" / "python", interpreter, Wheel(tmp_path / "w.whl", "1", "bb", False))


@pytest.fixture
def place(tmp_path: Path, settings: Settings) -> Place:
    return Place(settings=settings, requires=("pytest==1",), folder=tmp_path / "runs", logs=tmp_path / "logs")


def comparison(name: str = "numpy", *, fast: bool = False) -> plan.Comparison:
    return {each.name: each for each in plan.comparisons(PATCHED, 2, fast=fast)}[name]


def test_numpy_runs_in_one_thread_in_four_and_in_four_for_each_processor() -> None:
    known = plan.comparisons(PATCHED, 8, fast=False)
    assert [(each.name, each.suite.threads, each.before, each.after) for each in known] == [
        ("numpy", 1, STOCK, PATCHED),
        ("numpy-threads-4", 4, STOCK, PATCHED),
        ("numpy-threads-32", 32, STOCK, PATCHED),
        ("cpython", 1, STOCK, PATCHED),
        ("numpy-gil", 1, STOCK, GIL),
    ]
    assert known[0].suite == known[4].suite, "stock's run serves both"
    assert [each.suite.selection[:2] == ("-m", "not slow") for each in known] == [False, True, True, False, False]
    assert len(plan.comparisons(PATCHED, 1, fast=False)) == 4, "on one processor, four are four"


def test_suites_are_chosen_by_name() -> None:
    known = plan.comparisons(PATCHED, 2, fast=False)
    assert plan.select([], known, fast=False) == list(known)
    assert [each.name for each in plan.select(["numpy-gil", "cpython"], known, fast=False)] == ["cpython", "numpy-gil"]
    assert [each.name for each in plan.select([], known, fast=True)] == ["numpy-threads-4", "cpython"]
    assert [each.name for each in plan.select(["numpy-gil"], known, fast=True)] == ["numpy-gil"]
    with pytest.raises(UsageError, match="no suite 'scipy'; the suites are numpy, numpy-threads-4"):
        plan.select(["scipy"], known, fast=False)


def test_the_key_changes_with_what_decides_the_outcome(made: Environment, release: Release) -> None:
    numpy, cpython = comparison("numpy").suite, comparison("cpython").suite
    wheel = replace(made, wheel=replace(made.wheel, fingerprint="cc"))
    interpreter = replace(made, interpreter=replace(made.interpreter, fingerprint="cc"))
    keys = [
        runner.key(numpy, made, ["pytest==1"]),
        runner.key(numpy, made, ["pytest==2"]),
        runner.key(numpy, wheel, ["pytest==1"]),
        runner.key(numpy, interpreter, ["pytest==1"]),
        runner.key(comparison("numpy", fast=True).suite, made, ["pytest==1"]),
        runner.key(comparison("numpy-threads-4").suite, made, ["pytest==1"]),
        runner.key(cpython, made, ["pytest==1"]),
        runner.key(cpython, interpreter, ["pytest==1"]),
    ]
    assert len(set(keys)) == len(keys)
    assert runner.key(cpython, made, ()) == runner.key(cpython, wheel, ["pytest==2"]), "it has no NumPy"


def pretend(
    monkeypatch: pytest.MonkeyPatch, log_text: str = "", *, status: int = 0, finished: bool = True, **tests: str
) -> list[list[str]]:
    """Runs of NumPy's suite that end so; what was run."""
    commands: list[list[str]] = []

    def process_run(argv: Sequence[object], *, log: Path, cwd: Path, **_: object) -> None:
        commands.append([str(word) for word in argv])
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(log_text)
        lines: list[dict[str, object]] = [
            {"test": name, "outcome": outcome, "seconds": 1, "threads": 1, "gil": False, "why": ""}
            for name, outcome in tests.items()
        ]
        lines += [{"finished": status}] if finished else []
        (cwd / "reports.jsonl").write_text("\n".join(map(json.dumps, lines)))
        if status:
            raise CommandFailed("suite", f"exit status {status}", log, [])

    monkeypatch.setattr(process, "run", process_run)
    return commands


def test_a_failing_test_is_an_outcome_and_is_kept(
    monkeypatch: pytest.MonkeyPatch, made: Environment, place: Place
) -> None:
    commands = pretend(monkeypatch, status=1, a="passed", b="failed")
    suite = comparison("numpy-threads-4").suite
    first = runner.outcome(suite, "patched", made, place, Summary("x"))
    assert {name: test.outcome for name, test in first.tests.items()} == {"a": "passed", "b": "failed"}
    assert {"--parallel-threads=4", "--limit=600", "--pyargs", "numpy"} <= set(commands[0])
    summary = Summary("x")
    assert runner.outcome(suite, "patched", made, replace(place, logs=place.logs / "2"), summary) == first
    assert len(commands) == 1 and summary.rows[0].result == "1 passed, 1 failed, found again"


def test_a_suite_that_breaks_off_is_an_error_and_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, made: Environment, place: Place
) -> None:
    pretend(monkeypatch, status=3, finished=False, a="passed")
    with pytest.raises(CommandFailed, match="exit status 3"):
        runner.outcome(comparison().suite, "patched", made, place, Summary("x"))
    assert not place.folder.exists()
    pretend(monkeypatch, finished=False)
    with pytest.raises(BuildError, match="ended before its last test"):
        runner.outcome(comparison().suite, "patched", made, replace(place, logs=place.logs / "2"), Summary("x"))


def test_what_is_worse_differs() -> None:
    before = run(
        same="passed", fails="passed", crashes="xfailed", hangs="skipped", gone="passed", skips="passed",
        still="failed", mended="crashed", unskipped="skipped",
    )  # fmt: skip
    after = run(
        same="passed", fails="failed", crashes="crashed", hangs="hung", skips="skipped", new="failed",
        still="hung", mended="passed", unskipped="passed", also_new="passed",
    )  # fmt: skip
    assert [(each.test, each.before, each.after) for each in difference.differences(before, after)] == [
        ("crashes", "xfailed", "crashed"),
        ("fails", "passed", "failed"),
        ("gone", "passed", "missing"),
        ("hangs", "skipped", "hung"),
        ("new", "missing", "failed"),
        ("skips", "passed", "skipped"),
    ]
    assert difference.better(before, after) == ("mended",)
    assert difference.common(before, after) == ("still",)


def test_the_tests_of_a_module_that_crashed_are_not_missed_one_by_one() -> None:
    tests = {"test__test_a__A__x": "passed", "test__test_b__B__x": "passed"}
    before = run(modules=("test_a", "test_b"), test_a="passed", test_b="passed", **tests)
    after = run(modules=("test_a", "test_b"), test_a="crashed", test_b="passed")
    assert [(each.test, each.after) for each in difference.differences(before, after)] == [
        ("test.test_b.B.x", "missing"),
        ("test_a", "crashed"),
    ]


@pytest.mark.parametrize(
    ("after", "before_alone", "after_alone", "verdict"),
    [
        ("failed", "ppp", "fff", "different"),
        ("failed", "ppp", "pfp", "different"),
        ("failed", "ppp", "ppp", "flaky"),
        ("failed", "pfp", "fff", "on both"),
        ("failed", "", "", "different"),
        ("crashed", "ppp", "pcp", "different"),
        ("crashed", "ppp", "ppp", "once"),
        ("hung", "ppp", "ppp", "once"),
        ("crashed", "pcp", "ppp", "on both"),
        ("missing", "ppp", "mmm", "different"),
        ("missing", "ppp", "ppp", "flaky"),
        ("missing", "mmm", "mmm", "on both"),
        ("skipped", "ppp", "sss", "skipped"),
        ("skipped", "ppp", "ppp", "flaky"),
        ("skipped", "sss", "sss", "flaky"),
        ("skipped", "", "", "skipped"),
    ],
)
def test_what_a_difference_is_worth(after: str, before_alone: str, after_alone: str, verdict: str) -> None:
    words = {"p": "passed", "f": "failed", "c": "crashed", "m": "missing", "s": "skipped"}
    each = Difference(
        test="t",
        before="passed",
        after=after,
        why="",
        before_alone=tuple(words[letter] for letter in before_alone),
        after_alone=tuple(words[letter] for letter in after_alone),
    )
    assert each.verdict == verdict
    assert bool(difference.failing([each])) == (verdict in ("different", "once", "skipped"))


def test_what_is_meant_to_fail_may_fail_and_nothing_else() -> None:
    (test,) = difference.AS_MEANT
    failed = Difference(test=test, before="passed", after="failed", why="", after_alone=("failed",))
    crashed = replace(failed, after="crashed")
    assert failed.verdict == "meant"
    assert difference.failing([failed, crashed]) == (crashed,)
    assert (ROOT / "docs" / "upstream.md").read_text(encoding="utf-8").count(test.partition("::")[2]) >= 1


def test_differences_run_again_alone_on_both_sides_by_turns(
    monkeypatch: pytest.MonkeyPatch, made: Environment, place: Place
) -> None:
    asked: list[tuple[str, Sequence[str]]] = []

    def execute(
        suite: Suite, variant: str, key: str, made: object, settings: object, log: object, only: Sequence[str]
    ) -> Run:
        asked.append((variant, only))
        return run(variant, **{only[0]: "passed" if variant == "stock" else "failed"})

    monkeypatch.setattr(runner, "execute", execute)
    before, after = run("stock", a="passed", b="passed"), run("patched", a="failed", b="failed")
    both = {"stock": made, "patched": made}
    found = alone.again(difference.differences(before, after), comparison(), (before, after), both, place)
    assert asked == [(variant, (test,)) for test in "ab" for _ in range(3) for variant in ("stock", "patched")]
    assert [(each.before_alone, each.after_alone) for each in found] == [(("passed",) * 3, ("failed",) * 3)] * 2


def test_of_cpython_s_suite_the_module_runs_again(
    monkeypatch: pytest.MonkeyPatch, made: Environment, place: Place
) -> None:
    asked: list[Sequence[str]] = []

    def execute(*words: object) -> Run:
        asked.append(words[-1])  # type: ignore[arg-type]
        return run(modules=("test_a",), test_a="crashed")

    monkeypatch.setattr(runner, "execute", execute)
    before = run("stock", ("test_a",), test_a="passed", test__test_a__A__x="passed", test__test_a__A__y="passed")
    after = run("patched", ("test_a",), test_a="passed", test__test_a__A__x="failed", test__test_a__A__y="failed")
    both = {"stock": made, "patched": made}
    found = alone.again(difference.differences(before, after), comparison("cpython"), (before, after), both, place)
    assert asked == [("test_a",)] * 6, "once for both tests"
    assert found[0].after_alone == ("crashed",) * 3, "no word of the test, but of its module"


def test_too_many_differences_are_no_accident(
    monkeypatch: pytest.MonkeyPatch, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "execute", lambda *_: pytest.fail("ran"))
    many = [Difference(test=str(n), before="passed", after="failed", why="") for n in range(alone.MOST + 1)]
    assert alone.again(many, comparison(), (run(), run()), {}, place) == tuple(many)
    assert "no accident" in capsys.readouterr().err


def session(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, made: Environment, words: tuple[str, ...], **runs: Run
) -> str:
    def build(stack: Stack, settings: Settings, options: Options, summary: Summary) -> Environment:
        return made

    def outcome(suite: Suite, variant: str, *_: object) -> Run:
        return runs[variant]

    monkeypatch.setattr(environments, "upstream_environment", build)
    monkeypatch.setattr(runner, "outcome", outcome)
    monkeypatch.setattr(runner, "execute", lambda suite, variant, *_: runs[variant])
    options = Options(variant=PATCHED, profile="default", minutes=2, seed=1, logs=settings.cache / "logs")
    return command.run(Wishes(words=words, fast=False), STACK, settings, options, Summary("upstream"))


def test_no_difference_is_said_and_kept(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, made: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    said = session(
        monkeypatch, settings, made, ("numpy",), stock=run("stock", a="passed"), patched=run("patched", a="passed")
    )
    assert "no test is worse than on stock" in said
    file = settings.root / ".build" / "upstream" / "numpy-patched.json"
    assert str(file) in said and json.loads(file.read_text())["after"]["counts"]["passed"] == 1
    assert "alone after" not in capsys.readouterr().out


def test_what_is_worse_fails_the_session_and_is_kept(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, made: Environment
) -> None:
    stock, patched = run("stock", a="passed", b="passed"), run("patched", a="failed", b="passed")
    with pytest.raises(
        TestsFailed, match=r"numpy: a: passed before, failed after \(different\)\n1 worse than on stock"
    ):
        session(monkeypatch, settings, made, ("numpy",), stock=stock, patched=patched)
    kept = json.loads((settings.root / ".build" / "upstream" / "numpy-patched.json").read_text())
    assert kept["differences"][0]["after_alone"] == ["failed"] * 3
    assert kept["differences"][0]["verdict"] == "different"


def test_a_gil_that_comes_back_fails_the_session(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, made: Environment
) -> None:
    stock, patched = run("stock", a="passed"), run("patched", gil="a", a="passed")
    with pytest.raises(TestsFailed, match="the GIL came back after a"):
        session(monkeypatch, settings, made, ("numpy",), stock=stock, patched=patched)
    gil = run("gil", gil="a", a="passed")
    assert "no test is worse" in session(monkeypatch, settings, made, ("numpy-gil",), stock=stock, gil=gil)


def test_bad_wishes_are_refused_before_anything_is_built(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    monkeypatch.setattr(environments, "upstream_environment", lambda *_: pytest.fail("built"))
    for variant, words, told in [("stock", (), "stock is what"), ("patched", ("scipy",), "no suite 'scipy'")]:
        options = Options(
            variant=read_variant(variant), profile="default", minutes=2, seed=1, logs=settings.cache / "logs"
        )
        with pytest.raises(UsageError, match=told):
            command.run(Wishes(words=words, fast=False), STACK, settings, options, Summary("upstream"))


def test_tables_show_both_runs_and_what_happened_alone() -> None:
    before, after = run("stock", a="passed"), run("patched", a="failed")
    each = replace(
        difference.differences(before, after)[0],
        before_alone=("passed",) * 3,
        after_alone=("passed", "failed", "failed"),
    )
    found = findings.finding("numpy", before, after, (each,))
    rows = findings.counts([found]).rows
    assert rows[0] == ("numpy", "stock", "1", "0", "0", "0", "0", "0", "0", "")
    assert rows[1] == ("numpy", "patched", "0", "0", "0", "1", "0", "0", "0", "1")
    assert findings.differing([found]).rows == (
        ("numpy", "a", "passed", "failed", "3 passed", "1 passed, 2 failed", "different"),
    )


def test_findings_are_the_same_after_a_file() -> None:
    before, after = run("stock", a="passed", b="failed"), run("patched", a="failed", b="passed")
    found = findings.finding("numpy", before, after, difference.differences(before, after))
    assert found.better == ("b",)
    assert findings.from_json(json.loads(findings.as_json(found))) == found


def test_runs_are_the_same_after_a_file(tmp_path: Path) -> None:
    original = replace(run(gil="a", modules=("m",)), tests={"a": test_of("failed", 4, "why\n")})
    outcomes.save(original, tmp_path / "new" / "x.json")
    assert outcomes.load(tmp_path / "new" / "x.json") == original
