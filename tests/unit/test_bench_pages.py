"""asv from end to end on a history of two commits: run, compare, publish, and the pages in a browser."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ftnumpy.bench import browser, history, pages, suite
from ftnumpy.bench.history import Step
from ftnumpy.bench.suite import Suite
from ftnumpy.errors import BuildError, CommandFailed
from ftnumpy.settings import ROOT
from ftnumpy.stack import read_stack

EFFORT = {"rounds": "1", "repeat": "(1,2,0.1)", "warmup_time": "0.01"}
SUMS = """
class Sums:
    params = [10, 1000]
    param_names = ["length"]

    def time_sum(self, length):
        sum(range(length))
"""

needs_browser = pytest.mark.skipif(
    browser.find() is None, reason=f"none of {', '.join(browser.NAMES)} is on PATH; install one to look at the pages"
)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Suite, tuple[Step, ...]]:
    """Pages of a suite of one benchmark, with this Python in the place of each commit's."""
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "asv_bench", root / "asv_bench", ignore=shutil.ignore_patterns("benchmarks", "__pycache__"))
    (root / "asv_bench" / "benchmarks").mkdir()
    (root / "asv_bench" / "benchmarks" / "__init__.py").write_text("")
    (root / "asv_bench" / "benchmarks" / "sums.py").write_text(SUMS)
    asv = Suite(
        config=root / "asv_bench" / "asv.conf.json",
        folder=root / ".build" / "bench",
        pages=root / "html",
        environment="3.13t",
        machine="test-machine",
        log=root / "asv.log",
    )
    steps = history.make(read_stack(ROOT / "stack.toml"), asv.folder / "history")
    ends = [steps[0].commit, steps[-1].commit]
    suite.prepare(asv, {commit: Path(sys.executable) for commit in ends})
    suite.run(asv, ends, EFFORT)
    suite.publish(asv, steps)
    return asv, steps


def test_results_belong_to_the_commit_and_stay_below_build(published: tuple[Suite, tuple[Step, ...]]) -> None:
    asv, steps = published
    names = sorted(path.name for path in (asv.results / "test-machine").iterdir())
    ends = (steps[0].commit, steps[-1].commit)
    assert names == sorted(["machine.json", *(f"{commit[:8]}-ftnumpy-py3.13t.json" for commit in ends)])
    assert suite.read_benchmarks(asv)["sums.Sums.time_sum"]["type"] == "time"
    top = {path.name for path in asv.folder.parent.parent.iterdir()}
    assert top == {"asv_bench", ".build", "html", "asv.log"}


def test_compare_prints_a_row_for_each_parameter(published: tuple[Suite, tuple[Step, ...]]) -> None:
    asv, _ = published
    table = suite.compare(asv, "stock", "patched")
    assert "sums.Sums.time_sum(10)" in table and "sums.Sums.time_sum(1000)" in table and "Ratio" in table


def test_a_commit_without_a_python_is_told(published: tuple[Suite, tuple[Step, ...]], tmp_path: Path) -> None:
    asv, steps = published
    with pytest.raises(CommandFailed, match=f"has no python for commit {steps[1].commit}"):
        suite.run(replace(asv, log=tmp_path / "log"), [steps[1].commit], EFFORT)


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
    seen = look(asv.pages, "index.html#sums.Sums.time_sum", tmp_path)
    assert seen.errors == () and seen.coloured > 100 and seen.labels > 4
    assert "sums.Sums.time_sum" in seen.text
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
