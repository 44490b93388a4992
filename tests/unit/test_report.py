"""The team's page: made of what is kept, and says what is not."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
import shutil
from pathlib import Path

import pytest
import scaling_samples
import upstream_samples
from census_samples import PATCHED as CENSUS_PATCHED
from census_samples import STOCK as CENSUS_STOCK

from ftnumpy import environment, errors, fingerprint, kernel_times, patchqueue, results
from ftnumpy.census import report as census_report
from ftnumpy.census.report import Report
from ftnumpy.console import Summary
from ftnumpy.errors import UsageError
from ftnumpy.flames.stacks import Folded, Frame, write_folded
from ftnumpy.options import Options
from ftnumpy.report import command
from ftnumpy.report.chapters import chapters
from ftnumpy.scaling import findings
from ftnumpy.scaling import grids as scaling_grids
from ftnumpy.settings import ROOT, Settings
from ftnumpy.stack import PATCHED, Stack, read_stack
from ftnumpy.upstream import difference
from ftnumpy.upstream import findings as upstream_findings

FINGERPRINT = {"cpython": "c" * 64, "numpy": "e" * 64}


@pytest.fixture
def stack(settings: Settings) -> Stack:
    """The checkout's own, with its queues, in the settings' root."""
    for name in ("cpython-patches", "patches"):
        shutil.copytree(ROOT / name, settings.root / name)
    shutil.copy(ROOT / "stack.toml", settings.root)
    return read_stack(settings.root / "stack.toml")


def put(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))


def keep_builds(stack: Stack, settings: Settings) -> None:
    """A patched environment whose interpreter has the queue's first patch, and NumPy none."""
    put(
        settings.root / ".build" / "patched" / environment.MARKER,
        {"folder": "", "interpreter": FINGERPRINT["cpython"], "wheel": FINGERPRINT["numpy"], "requires": []},
    )
    put(settings.root / ".build" / "patched-test" / environment.MARKER, {"requires": ["pytest"]})
    first = next(iter(sorted(stack.cpython.queue.folder.glob("0001-*"))))
    for project, patches in ((stack.cpython, patchqueue.sha256(first)), (stack.numpy, "")):
        put(
            settings.builds / f"{project.name}-{FINGERPRINT[project.name][:16]}" / fingerprint.DESCRIPTION,
            {
                "inputs": {
                    "archive": project.releases[0].sha256,
                    "patches": patches,
                    "label": "ft1.1",
                    "options": "--disable-gil",
                    "compiler": "gcc 12",
                },
                "fingerprint": FINGERPRINT[project.name],
                "started": "2026-11-29T10:00:00Z",
                "seconds": 187,
            },
        )
    put(settings.root / "wheelhouse" / "numpy-2.4.6+ft1-cp313.whl", "a wheel")


def keep_outcome(settings: Settings, session: str, builds: tuple[str, ...], error: str = "") -> None:
    options = Options(variant=PATCHED, profile="default", minutes=1.0, seed=1, logs=settings.root)
    summary = Summary(session)
    summary.builds["patched"] = builds
    try:
        with results.kept(f"nox -s {session}", session, settings, options, summary):
            with summary.step("unit tests") as result:
                result.append("5 passed, 1 skipped")
            if error:
                raise errors.TestsFailed(error)
    except errors.TestsFailed:
        pass


def keep_censuses(settings: Settings) -> None:
    for census in (CENSUS_STOCK, CENSUS_PATCHED):
        file = settings.root / ".build" / "census" / census.variant / "kernel.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        census_report.save(Report(census=census, native=None, prediction=None), file)


def written(stack: Stack, settings: Settings) -> str:
    command.run(stack, settings, Summary("report"))
    return (settings.root / ".build" / "report.html").read_text()


def rows(text: str) -> list[str]:
    """Each table row's text."""
    found = re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL)
    return [re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", row)).strip() for row in found]


def test_with_nothing_kept_all_is_missing_and_each_has_its_command(stack: Stack, settings: Settings) -> None:
    closing = command.run(stack, settings, Summary("report"))
    commands = re.findall(r"^missing .*: (nox .*)$", closing, re.MULTILINE)
    assert commands == [
        "nox -s build-ft -- --variant stock",
        "nox -s build-ft",
        "nox -s build-ft",
        "nox -s test",
        "nox -s stress",
        "nox -s upstream",
        "nox -s census -- --variant stock",
        "nox -s census",
        "nox -s scaling",
        "nox -s kernel",
        "nox -s bench",
        "nox -s profile",
    ]
    text = (settings.root / ".build" / "report.html").read_text()
    assert all(f"<code>{wanted}</code>" in text for wanted in commands)


def test_the_page_needs_nothing_else_and_its_links_lead_somewhere(stack: Stack, settings: Settings) -> None:
    keep_builds(stack, settings)
    text = written(stack, settings)
    assert text.startswith("<!DOCTYPE html>") and not re.search(r"<script|<link|@import|url\(", text)
    anchors = re.findall(r' id="([^"]*)"', text)
    assert len(anchors) == len(set(anchors))
    links = re.findall(r'href="([^"]*)"', text)
    assert links and all(link.removeprefix("#") in anchors for link in links)


def test_builds_and_patches_with_their_hashes_and_texts(stack: Stack, settings: Settings) -> None:
    keep_builds(stack, settings)
    text = written(stack, settings)
    found = rows(text)
    release, numpy_release = stack.cpython.releases[0], stack.numpy.releases[0]
    assert f"release {release.version} {numpy_release.version}" in found
    assert f"fingerprint {FINGERPRINT['cpython']} {FINGERPRINT['numpy']}" in found
    assert "queue ft1.1, 1 patches ft1.1, 0 patches" in found
    assert any(row.startswith("numpy-2.4.6+ft1-cp313.whl 7 ") for row in found)
    first, second = patchqueue.read_queue(stack.cpython.queue)[:2]
    assert f"{first.file.name} {first.subject} yes {patchqueue.sha256(first.file)}" in found
    assert f"{second.file.name} {second.subject} no {patchqueue.sha256(second.file)}" in found
    assert "PyTraceMalloc_Track" in text and ".build/patched-test" not in text


def test_a_build_that_left_the_cache_is_missing(stack: Stack, settings: Settings) -> None:
    keep_builds(stack, settings)
    shutil.rmtree(settings.builds)
    wanted = [missing.what for missing in chapters(stack, settings)[0].missing]
    assert "cpython of patched, not in the cache" in wanted and "numpy of patched, not in the cache" in wanted


def test_sessions_say_how_they_ended_and_on_which_builds(stack: Stack, settings: Settings) -> None:
    keep_builds(stack, settings)
    keep_outcome(settings, "test", (FINGERPRINT["cpython"], FINGERPRINT["numpy"]))
    keep_outcome(settings, "stress", ("d" * 64, FINGERPRINT["numpy"]), error="forks failed\n  | a child hangs")
    text = written(stack, settings)
    found = rows(text)
    (test,) = [row for row in found if row.startswith("test patched")]
    (stress,) = [row for row in found if row.startswith("stress patched")]
    assert test.endswith("ok these builds nox -s test")
    assert stress.endswith("failed: forks failed an earlier build nox -s stress")
    assert sum(row.startswith("unit tests") and row.endswith("5 passed, 1 skipped") for row in found) == 2
    assert "a child hangs" in text
    assert "nox -s test</code> makes it" not in text


def test_a_census_before_and_after(stack: Stack, settings: Settings) -> None:
    keep_censuses(settings)
    found = rows(written(stack, settings))
    assert "kernel 22 (+1) 4" in found
    assert any(row.startswith("PyCapsule mem_handler 16 0") for row in found)


def test_times_of_the_kernel_verdicts_of_asv_and_bottlenecks(stack: Stack, settings: Settings) -> None:
    build = settings.root / ".build"
    names = [f"{variant} {case}" for variant in ("stock", "patched") for case, *_ in kernel_times.CASES]
    put(kernel_times.file(settings), {"loops": 50, "seconds": {"10": {name: [1.0, 1.0] for name in names}}})
    verdict = {"benchmark": "cost.add", "clock": {"median": 0.9, "low": 0.8, "high": 1.0}}
    verdict |= {"instructions": 0.91, "ratio": 0.91, "reference": 0.87}
    put(
        build / "bench" / "paired.json",
        {
            "date": "2026-11-29",
            "machine": "box",
            "launches": 16,
            "means": {"small arrays, patched / stock": 0.925},
            "verdicts": [verdict],
        },
    )
    put(build / "bench" / "compare.txt", "| Change | <b> |")
    folded = Folded(samples=2, counts={(Frame("a", "library"),): 1, (Frame("_Py_module_getattro", "cpython"),): 1})
    put(build / "profile" / "chain-10-stock.folded", write_folded(folded))
    text = written(stack, settings)
    found = rows(text)
    assert "patched / stock, 2 threads 1.00 (1.00 to 1.00)" in found
    assert "cost.add 0.90 (0.80 to 1.00) 0.910 0.910 0.870" in found
    assert "geometric mean: small arrays, patched / stock 0.925" in found
    assert "| Change | &lt;b&gt; |" in text
    assert any(row.startswith("module attributes 50.0%") for row in found)


def test_scaling_as_figures_and_the_pictures_of_that_run(stack: Stack, settings: Settings) -> None:
    found = scaling_samples.sample()
    folder = settings.root / ".build" / "scaling"
    put(folder / "scaling.json", findings.as_json(found))
    for name in ("scaling-article", "scaling-decay"):
        put(folder / f"{name}.svg", f"<svg>{name}</svg>")
    text = written(stack, settings)
    assert "nox -s scaling -- --launches 2" in text and "a collection, ms" in text
    of_classes = scaling_grids.decays(found, found.classes, "class").rows
    assert of_classes and all(" ".join(row) in rows(text) for row in of_classes)
    pictures = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]*)" alt="([^"]*)">', text)
    assert [(base64.b64decode(content).decode(), title) for content, title in pictures] == [
        ("<svg>scaling-article</svg>", "scaling article"),
        ("<svg>scaling-decay</svg>", "scaling decay"),
    ]
    put(folder / "scaling.json", findings.as_json(dataclasses.replace(found, programs=())))
    assert "scaling article" not in written(stack, settings), "a picture of an earlier run"


def test_upstream_s_suites_and_what_differs(stack: Stack, settings: Settings) -> None:
    before, after = upstream_samples.run("stock", a="passed"), upstream_samples.run("patched", a="failed")
    found = upstream_findings.finding("numpy", before, after, difference.differences(before, after))
    file = settings.root / ".build" / "upstream" / "numpy-patched.json"
    put(file, upstream_findings.as_json(found))
    assert "numpy a passed failed different" in rows(written(stack, settings))
    same = upstream_findings.finding("numpy", before, before, ())
    put(file, upstream_findings.as_json(same))
    assert "numpy stock 1 0 0 0 0 0 0 0" in rows(written(stack, settings))
    assert "alone after" not in written(stack, settings)


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("bench/paired.json", "ftnumpy bench"),
        ("kernel/times.json", "ftnumpy kernel"),
        ("scaling/scaling.json", "ftnumpy scaling"),
        ("upstream/numpy-patched.json", "ftnumpy upstream"),
        ("census/stock/sin.json", "not a census"),
        ("results/test-patched.json", "no result"),
    ],
)
@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 1}'])
def test_a_file_of_something_else_is_one_error_and_leaves_the_page_before(
    stack: Stack, settings: Settings, file: str, told: str, content: str
) -> None:
    put(settings.root / ".build" / "report.html", "the page before")
    put(settings.root / ".build" / file, content)
    with pytest.raises(UsageError, match=told) as caught:
        command.run(stack, settings, Summary("report"))
    assert str(settings.root / ".build" / file) in str(caught.value)
    assert (settings.root / ".build" / "report.html").read_text() == "the page before"
