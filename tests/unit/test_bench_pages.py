"""The session from end to end: asv on two commits, comparisons, pages, and these in a browser."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ftnumpy import environment
from ftnumpy.bench import browser, command, history, instructions, pages, paired, suite, workers
from ftnumpy.bench.history import Step
from ftnumpy.bench.suite import Suite
from ftnumpy.console import Summary
from ftnumpy.environment import Environment
from ftnumpy.errors import BuildError, CommandFailed, UsageError
from ftnumpy.options import Options
from ftnumpy.settings import ROOT, read_settings
from ftnumpy.stack import PATCHED, STOCK, read_stack

SUITE = {
    "__init__.py": "",
    "cost.py": """
class Sums:
    def time_sum(self):
        sum(range(100))
""",
    "threads.py": """
class Threads:
    params = [10, 1000]
    param_names = ["length"]

    def time_of_each(self, length):
        sum(range(length))
""",
}

needs_browser = pytest.mark.skipif(
    browser.find() is None, reason=f"none of {', '.join(browser.NAMES)} is on PATH; install one to look at the pages"
)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Suite, tuple[Step, ...]]:
    """What ``bench --quick`` leaves in a checkout whose suite is small, with this Python in the place of both ends'."""
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "asv_bench", root / "asv_bench", ignore=shutil.ignore_patterns("benchmarks", "__pycache__"))
    (root / "asv_bench" / "benchmarks").mkdir()
    for name, text in SUITE.items():
        (root / "asv_bench" / "benchmarks" / name).write_text(text)
    stack = read_stack(ROOT / "stack.toml")
    settings = read_settings({"FTNUMPY_CACHE": str(root / "cache")}, root=root)
    logs = tmp_path_factory.mktemp("logs")
    options = Options(variant=PATCHED, profile="default", minutes=1, seed=1, logs=logs)
    here = Environment(Path(sys.prefix), Path(sys.executable), None, None)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(environment, "bench_environment", lambda *_: here)
        monkeypatch.setattr(workers, "variables", lambda _: {})
        # The one Python is as fast as itself, so let a count say otherwise.
        monkeypatch.setattr(instructions, "require", lambda: None)
        monkeypatch.setattr(
            instructions, "count", lambda _, __, names, ___: [dict.fromkeys(names, n) for n in (10, 9, 12)]
        )
        monkeypatch.setattr(paired, "WIDE", -1.0)
        monkeypatch.setattr(paired, "SECONDS", 0.002)
        monkeypatch.setattr(suite, "QUICK", {"rounds": "1", "repeat": "(1,2,0.1)", "warmup_time": "0.01"})
        closing = command.run(True, stack, settings, options, Summary("bench"))
    assert str(root / "html" / "index.html") in closing
    asv = suite.open_suite(settings, stack.series, "default", logs)
    return asv, history.make(stack, asv.folder / "history")


def test_results_belong_to_the_commit_and_stay_below_build(published: tuple[Suite, tuple[Step, ...]]) -> None:
    asv, steps = published
    names = sorted(path.name for path in (asv.results / asv.machine).iterdir())
    ends = (steps[0].commit, steps[-1].commit)
    assert names == sorted(["machine.json", *(f"{commit[:8]}-ftnumpy-py3.13t.json" for commit in ends)])
    assert set(suite.read_benchmarks(asv)) == {"cost.Sums.time_sum", "threads.Threads.time_of_each"}
    assert {path.name for path in asv.pages.parent.iterdir()} == {"asv_bench", ".build", "html"}


def test_both_comparisons_are_kept(published: tuple[Suite, tuple[Step, ...]]) -> None:
    asv, _ = published
    table = (asv.folder / "compare.txt").read_text()
    for row in (
        "cost.Sums.time_sum",
        "threads.Threads.time_of_each(10)",
        "threads.Threads.time_of_each(1000)",
        "Ratio",
    ):
        assert row in table
    kept = json.loads((asv.folder / "paired.json").read_text())
    assert list(kept["means"].values()) == pytest.approx([0.9, 0.9, 0.75])
    assert [each["benchmark"] for each in kept["verdicts"]] == ["cost.Sums.time_sum"], "of one thread only"


def test_a_variant_can_not_be_meant(tmp_path: Path) -> None:
    options = Options(variant=STOCK, profile="default", minutes=1, seed=1, logs=tmp_path)
    settings = read_settings({"FTNUMPY_CACHE": str(tmp_path / "cache")}, root=tmp_path)
    with pytest.raises(UsageError, match="leave out --variant"):
        command.run(True, read_stack(ROOT / "stack.toml"), settings, options, Summary("bench"))
    assert not list(tmp_path.iterdir())


def test_a_commit_without_a_python_is_told(published: tuple[Suite, tuple[Step, ...]], tmp_path: Path) -> None:
    asv, steps = published
    with pytest.raises(CommandFailed, match=f"has no python for commit {steps[1].commit}"):
        suite.run(replace(asv, log=tmp_path / "log"), [steps[1].commit], suite.QUICK)


def test_the_pages_need_no_network_and_have_the_patches(published: tuple[Suite, tuple[Step, ...]]) -> None:
    asv, steps = published
    index = (asv.pages / "index.html").read_text()
    assert 'src="https://' not in index and 'rel="stylesheet" href="https://' not in index
    assert index.count('="vendor/') == 10
    assert all((asv.pages / "vendor" / name).is_file() for name in ("jquery-3.3.1.min.js", "jquery.flot.js"))
    text = (asv.pages / "patches.html").read_text()
    assert all(f'id="{step.commit[:10]}"' in text for step in steps)
    config = (ROOT / "asv_bench" / "asv.conf.json").read_text()
    assert f'"hash_length": {pages.HASH_LENGTH}' in config


def test_a_script_that_we_lack_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "vendor").mkdir()
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text('<script src="https://example.org/a/new.min.js" integrity="sha256-x"></script>')
    with pytest.raises(BuildError, match=r"uses new\.min\.js, which"):
        pages.bring_scripts(page, tmp_path / "vendor")


@needs_browser
def test_a_graph_is_drawn_without_a_script_error(published: tuple[Suite, tuple[Step, ...]], tmp_path: Path) -> None:
    asv, _ = published
    seen = look(asv.pages, f"index.html#{command.GRAPH}", tmp_path)
    assert seen.errors == () and seen.coloured > 100 and seen.labels > 4
    assert command.GRAPH in seen.text
    assert (tmp_path / "shot.png").read_bytes().startswith(b"\x89PNG")


@needs_browser
def test_a_page_that_fails_is_seen_to_fail(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "index.html").write_text(
        "<html><head></head><body>Nothing<canvas width=9 height=9></canvas>"
        "<script src='gone.js'></script><script>undefinedFunction()</script></body></html>"
    )
    seen = look(folder, "index.html", tmp_path)
    assert seen.coloured == 0 and seen.labels == 0 and "Nothing" in seen.text
    assert any("gone.js" in error for error in seen.errors) and any("undefinedFunction" in e for e in seen.errors)


def look(folder: Path, address: str, scratch: Path) -> browser.Seen:
    found = browser.find()
    assert found is not None
    return browser.look(found, folder, address, scratch / "shot.png", scratch / "log")


def test_a_machine_is_named_by_its_kind() -> None:
    name = suite.machine_name("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz")
    assert name.startswith("intel-xeon-platinum-8481c-cpu-") and name.endswith("-cores")
    assert suite.machine_name("")


def test_one_machines_pythons_are_kept_beside_anothers(published: tuple[Suite, tuple[Step, ...]]) -> None:
    asv, _ = published
    suite.prepare(replace(asv, environment="3.13t-release"), {"f" * 40: Path("/python")})
    known = json.loads(asv.pythons.read_text())
    assert set(known) == {"3.13t", "3.13t-release"} and len(known["3.13t"]) == 2
