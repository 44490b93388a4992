from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from ftnumpy.errors import UsageError
from ftnumpy.settings import ROOT
from ftnumpy.stack import (
    ASAN,
    BUILDS,
    CHANNELS,
    GIL,
    PATCHED,
    REFERENCE,
    STOCK,
    TSAN,
    Variant,
    read_stack,
    read_variant,
)

TEXT = (ROOT / "stack.toml").read_text(encoding="utf-8")


def changed(tmp_path: Path, old: str, new: str) -> Path:
    """The tree's declaration with one thing changed."""
    assert old in TEXT
    file = tmp_path / "stack.toml"
    file.write_text(TEXT.replace(old, new, 1), encoding="utf-8")
    return file


def test_the_trees_own_declaration():
    stack = read_stack(ROOT / "stack.toml")
    assert stack == read_stack(ROOT / "stack.toml", stack.series)
    assert stack.channels == CHANNELS
    assert stack.cpython.queue.folder == ROOT / "cpython-patches"
    assert stack.numpy.queue.folder == ROOT / "patches"
    assert "--disable-gil" in stack.cpython.options
    assert stack.numpy.requires
    for release in (*stack.cpython.releases, *stack.numpy.releases, *stack.reference.releases):
        assert release.url or release.apt_pool or release.index_project
        assert release.version in release.archive
        assert release.project in ("cpython", "numpy")


def test_releases_keep_their_order():
    versions = [release.version for release in read_stack(ROOT / "stack.toml").cpython.releases]
    assert [TEXT.index(f'"{version}"') for version in versions] == sorted(TEXT.index(f'"{v}"') for v in versions)
    assert len(versions) == 2


def test_the_reference_is_another_numpy_built_in_the_same_way():
    stack = read_stack(ROOT / "stack.toml")
    (reference,) = stack.reference.releases
    assert reference not in stack.numpy.releases
    assert dataclasses.replace(stack.reference, releases=stack.numpy.releases) == stack.numpy


def test_what_is_read_cannot_be_changed():
    stack = read_stack(ROOT / "stack.toml")
    with pytest.raises(dataclasses.FrozenInstanceError):
        stack.series = "other"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"3.13"\n', '"3.99"\n', "no series '3.99'; it has 3.13"),
        ('"index"]', '"pigeon"]', "no channel 'pigeon'; the channels are cache, folder"),
        ('sha256 = "1e66', 'sha256 = "1E66', "3.13.15 of cpython: sha256 must be 64"),
        ('sha256 = "f3a3', 'sha256 = "', "2.4.6 of numpy: sha256 must be 64"),
        ("size = 23160540", "size = 0", "3.13.15 of cpython: size must be a positive"),
        ("size = 23160540", 'size = "23160540"', "3.13.15 of cpython: size must be a positive"),
        ('version = "3.13.15"', 'version = "newest"', "newest of cpython: not a version"),
        ("local-version", "vocal-version", "entry 'local-version' is missing"),
        ("numpy.reference]", "numpy.preference]", "entry 'reference' is missing"),
        ('archive = "numpy', 'a = "numpy', "entry 'archive' is missing"),
        ('tsan = ["--with', 'ksan = ["--with', "entry 'tsan' is missing"),
        ("configure = [", "configure [", "stack.toml: "),
    ],
)
def test_a_wrong_declaration_names_the_file_and_the_fault(tmp_path, old, new, message):
    file = changed(tmp_path, old, new)
    with pytest.raises(UsageError, match=message) as caught:
        read_stack(file)
    assert str(file) in str(caught.value)


def test_missing_declaration(tmp_path):
    with pytest.raises(UsageError, match="is missing"):
        read_stack(tmp_path / "stack.toml")


def test_variants():
    assert read_variant("stock") is STOCK
    assert read_variant("patched") is PATCHED
    assert read_variant("reference") is REFERENCE
    assert (REFERENCE.cpython_patches, REFERENCE.numpy_patches, REFERENCE.reference) == (0, 0, True)
    assert (STOCK.cpython_patches, STOCK.numpy_patches) == (0, 0)
    assert (PATCHED.cpython_patches, PATCHED.numpy_patches) == (None, None)
    assert [read_variant(build) for build in BUILDS] == [GIL, TSAN, ASAN]
    patches = [(each.cpython_patches, each.numpy_patches) for each in (GIL, TSAN, ASAN)]
    assert patches == [(None, None), (None, None), (0, None)]
    assert [each.gil for each in (STOCK, PATCHED, GIL, TSAN, ASAN)] == [False, False, True, False, False]
    assert read_variant("c2n10") == Variant(name="c2n10", cpython_patches=2, numpy_patches=10)


@pytest.mark.parametrize("text", ["", "Stock", "c2", "n1", "c-1n0", "c1n1x", "msan"])
def test_unknown_variant(text):
    with pytest.raises(UsageError, match="there is no variant"):
        read_variant(text)
