"""What goes into the build of one project in one variant, and the way from there to a finished folder."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import fingerprint, patchqueue, prerequisites, sources
from ftnumpy.errors import UsageError
from ftnumpy.patchqueue import Patch
from ftnumpy.settings import Settings
from ftnumpy.stack import Project, Release, Stack, Variant


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One project with a prefix of its queue.

    ``label`` says which: ``stock``, ``ft1`` for the whole queue or ``ft1.2`` for its first 2 patches.  ``compiler`` is
    what `compiler.identify` said; ``options`` go to upstream's configure or meson; ``more`` holds the inputs that only
    this project has.
    """

    project: Project
    channels: tuple[str, ...]
    patches: tuple[Patch, ...]
    label: str
    options: tuple[str, ...]
    compiler: str
    more: dict[str, str]

    def inputs(self, release: Release) -> dict[str, str]:
        """What the fingerprint of a build from ``release`` is made of."""
        return {
            "archive": release.sha256,
            "patches": " ".join(patchqueue.sha256(patch.file) for patch in self.patches),
            "label": self.label,
            "options": " ".join(self.options),
            "compiler": self.compiler,
            **self.more,
        }


@dataclass(frozen=True)
class Built:
    """A finished build.  ``fresh`` is False when an earlier run had made it."""

    folder: Path
    release: Release
    fingerprint: str
    fresh: bool


def read_recipe(
    stack: Stack, project: Project, variant: Variant, profile: str, compiler: str, more: dict[str, str]
) -> Recipe:
    """The recipe for ``project``, which is one of ``stack``'s, in ``variant``.

    Raises `UsageError` when the queue is shorter, `PatchError` when it is malformed.
    """
    count = variant.cpython_patches if project is stack.cpython else variant.numpy_patches
    queue = patchqueue.read_queue(project.queue)
    if count is not None and count > len(queue):
        raise UsageError(
            f"the variant asks for {count} {project.name} patches, but {project.queue.folder} has only {len(queue)}"
        )
    patches = queue[:count]
    if not patches:
        label = "stock"
    elif len(patches) == len(queue):
        label = stack.local_version
    else:
        label = f"{stack.local_version}.{len(patches)}"
    return Recipe(
        project=project,
        channels=stack.channels,
        patches=patches,
        label=label,
        options=(
            *project.options,
            *project.profiles.get(profile, ()),
            *(project.builds[variant.build] if variant.build else ()),
        ),
        compiler=compiler,
        more=more,
    )


def make(settings: Settings, recipe: Recipe, build: Callable[[Path, Release, Path, Path], Path]) -> Built:
    """The finished build of ``recipe``, found again or made now by ``build(archive, release, work, final)``, which
    works as `fingerprint.build_once` says.  The archive is fetched only when something is to be built.

    Raises `UsageError` for a cache folder that builds can't take, and what the steps raise.
    """
    pinned = recipe.project.releases[0]
    if fingerprint.find(settings, recipe.project.name, recipe.inputs(pinned)):
        return _built(settings, recipe, pinned, fresh=False)
    # Letters of other scripts, too: pkg-config, which meson asks, writes them in a way that meson can't read.
    awkward = re.search(r"[^\w./+@~-]", str(settings.cache), re.ASCII)
    if awkward:
        raise UsageError(
            f"the cache folder {settings.cache} has {awkward[0]!r} in its name, which upstream's makefiles and scripts "
            "can't take; set FTNUMPY_CACHE to a folder of ASCII letters, digits and any of . _ - + @ ~"
        )
    prerequisites.require(settings)
    source = sources.fetch_first(recipe.project, recipe.channels, settings)
    _, fresh = fingerprint.build_once(
        settings,
        recipe.project.name,
        recipe.inputs(source.release),
        lambda work, final: build(source.path, source.release, work, final),
    )
    return _built(settings, recipe, source.release, fresh=fresh)


def _built(settings: Settings, recipe: Recipe, release: Release, *, fresh: bool) -> Built:
    inputs = recipe.inputs(release)
    folder = fingerprint.place(settings, recipe.project.name, inputs)
    return Built(folder=folder, release=release, fingerprint=fingerprint.fingerprint(inputs), fresh=fresh)
