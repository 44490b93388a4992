"""What a build is made of: each input changes its fingerprint, and only a build fetches its archive."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ftnumpy import fingerprint, prerequisites, recipe, sources
from ftnumpy.errors import PrerequisiteError, UsageError
from ftnumpy.patchqueue import Patch
from ftnumpy.recipe import Recipe
from ftnumpy.settings import Settings
from ftnumpy.stack import GIL, PATCHED, STOCK, Project, Queue, Release, Stack, Variant


@pytest.fixture
def patches(tmp_path: Path) -> tuple[Patch, ...]:
    made = []
    for name in ("0001-a.patch", "0002-b.patch"):
        (tmp_path / name).write_text(name)
        made.append(Patch(tmp_path / name, name))
    return tuple(made)


@pytest.fixture
def project(release: Release, tmp_path: Path) -> Project:
    return Project(
        name="pkg",
        releases=(release, replace(release, version="0.9", sha256="b" * 64)),
        queue=Queue(project="pkg", folder=tmp_path),
        requires=(),
        options=("-a",),
        profiles={"default": (), "release": ("-pgo",)},
        builds={"gil": ("-gil",), "tsan": (), "asan": ()},
    )


def variant(count: int | None) -> Variant:
    return Variant(name="some", cpython_patches=count, numpy_patches=0)


@pytest.fixture
def plan(project: Project, patches: tuple[Patch, ...]) -> Recipe:
    return Recipe(
        project=project,
        channels=("url",),
        patches=patches,
        label="ft1",
        options=("-a",),
        compiler="gcc 1",
        more={"revision": "1"},
    )


@pytest.fixture
def stack(project: Project, monkeypatch: pytest.MonkeyPatch, patches: tuple[Patch, ...]) -> Stack:
    monkeypatch.setattr(recipe.patchqueue, "read_queue", lambda queue: patches)
    return Stack(
        series="1",
        local_version="ft1",
        channels=("url",),
        cpython=project,
        numpy=project,
        reference=project,
        test_requires=(),
        upstream_requires=(),
        others_requires=(),
        container_requires=(),
    )


def test_every_input_changes_the_fingerprint(plan: Recipe, release: Release, patches: tuple[Patch, ...]) -> None:
    def print_of(each: Recipe, of: Release = release) -> str:
        return fingerprint.fingerprint(each.inputs(of))

    prints = {
        "as it is": print_of(plan),
        "archive": print_of(plan, replace(release, sha256="c" * 64)),
        "fewer patches": print_of(replace(plan, patches=patches[:1])),
        "other order": print_of(replace(plan, patches=patches[::-1])),
        "label": print_of(replace(plan, label="ft2")),
        "options": print_of(replace(plan, options=("-b",))),
        "compiler": print_of(replace(plan, compiler="gcc 2")),
        "revision": print_of(replace(plan, more={"revision": "2"})),
    }
    patches[0].file.write_text("changed")
    prints["a patch's content"] = print_of(plan)
    assert len(set(prints.values())) == len(prints)


@pytest.mark.parametrize(
    ("count", "used", "label"), [(0, 0, "stock"), (1, 1, "ft1.1"), (2, 2, "ft1"), (None, 2, "ft1")]
)
def test_a_prefix_of_the_queue_has_its_own_label(stack: Stack, count: int | None, used: int, label: str) -> None:
    plan = recipe.read_recipe(stack, stack.cpython, variant(count), "release", "gcc", {})
    assert (len(plan.patches), plan.label, plan.options) == (used, label, ("-a", "-pgo"))


def test_a_prefix_longer_than_the_queue_is_refused(stack: Stack) -> None:
    with pytest.raises(UsageError, match=r"asks for 3 pkg patches, but .* has only 2"):
        recipe.read_recipe(stack, stack.cpython, variant(3), "default", "gcc", {})


@pytest.mark.parametrize("each", [STOCK, PATCHED])
def test_what_is_built_for_checks_does_not_touch_what_is_built_for_use(stack: Stack, each: Variant) -> None:
    used = recipe.read_recipe(stack, stack.cpython, each, "default", "gcc", {})
    checked = recipe.read_recipe(stack, stack.cpython, GIL, "default", "gcc", {})
    assert used.options == stack.cpython.options
    assert checked.options == (*stack.cpython.options, "-gil") and len(checked.patches) == 2


def test_only_a_build_looks_at_the_machine_and_fetches(
    plan: Recipe, settings: Settings, release: Release, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"
    monkeypatch.setattr(prerequisites, "require", lambda settings: None)
    monkeypatch.setattr(sources, "fetch_first", lambda *_: sources.Source(release, archive, "url"))

    def build(given: Path, of: Release, work: Path, final: Path) -> Path:
        assert (given, of) == (archive, release)
        (work / "stage").mkdir()
        return work / "stage"

    built = recipe.make(settings, plan, build)
    assert built.fresh and built.release == release and built.folder.is_dir()

    def unwanted(*_: object) -> None:
        raise AssertionError("a finished build needs nothing")

    monkeypatch.setattr(prerequisites, "require", unwanted)
    monkeypatch.setattr(sources, "fetch_first", unwanted)
    again = recipe.make(settings, plan, build)
    assert again == replace(built, fresh=False)


@pytest.mark.parametrize("name", ["my cache", "my:cache"])
def test_a_cache_folder_that_builds_cannot_take_is_refused(plan: Recipe, settings: Settings, name: str) -> None:
    with pytest.raises(UsageError, match="set FTNUMPY_CACHE"):
        recipe.make(replace(settings, cache=settings.cache / name), plan, lambda *_: pytest.fail("built"))


def test_a_fallback_release_has_its_own_build(
    plan: Recipe, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fallback = plan.project.releases[1]
    monkeypatch.setattr(prerequisites, "require", lambda settings: None)
    monkeypatch.setattr(sources, "fetch_first", lambda *_: sources.Source(fallback, tmp_path, "url"))

    def build(archive: Path, release: Release, work: Path, final: Path) -> Path:
        (work / "stage").mkdir()
        return work / "stage"

    built = recipe.make(settings, plan, build)
    assert built.release == fallback
    assert built.fingerprint == fingerprint.fingerprint(plan.inputs(fallback))
    assert not fingerprint.place(settings, "pkg", plan.inputs(plan.project.releases[0])).exists()


def test_a_machine_that_lacks_something_fetches_nothing(
    plan: Recipe, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(settings: Settings) -> None:
        raise PrerequisiteError("no zlib")

    monkeypatch.setattr(prerequisites, "require", lacking)
    monkeypatch.setattr(sources, "fetch_first", lambda *_: pytest.fail("fetched"))
    with pytest.raises(PrerequisiteError, match="no zlib"):
        recipe.make(settings, plan, lambda *_: pytest.fail("built"))
