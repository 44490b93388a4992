"""What comes to lie in the wheelhouse, and that the session tries it."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ftnumpy import cpython, environment, errors, fingerprint, process, suites, venvs
from ftnumpy.console import Summary
from ftnumpy.cpython import Interpreter
from ftnumpy.environment import Environment
from ftnumpy.numpy_wheel import Wheel
from ftnumpy.options import Options
from ftnumpy.settings import ROOT, Settings
from ftnumpy.stack import PATCHED, Stack, read_stack
from ftnumpy.wheels import archive, command, manifest, on_stock, others, publish
from ftnumpy.wheels.archive import Archive, Contents
from ftnumpy.wheels.base import Base
from ftnumpy.wheels.image import Image
from ftnumpy.wheels.libraries import Library
from ftnumpy.wheels.manifest import Made
from ftnumpy.wheels.packages import Package
from ftnumpy.wheels.wishes import Wishes

NAME = "numpy-2.4.6+ft1-cp313-cp313t-manylinux_2_35_x86_64.whl"


@pytest.fixture
def stack() -> Stack:
    return read_stack(ROOT / "stack.toml")


@pytest.fixture
def made(stack: Stack, settings: Settings) -> Made:
    """Builds as they lie in the cache, of empty files."""

    def build(kind: str, inputs: dict[str, str], fill: Callable[[Path], object]) -> tuple[Path, str]:
        def work(folder: Path, _: Path) -> Path:
            (folder / "result").mkdir()
            fill(folder / "result")
            return folder / "result"

        return fingerprint.build_once(settings, kind, inputs, work)[0], fingerprint.fingerprint(inputs)

    def wheel(folder: Path) -> None:
        with zipfile.ZipFile(folder / NAME, "w") as file:
            file.writestr("numpy-2.4.6+ft1.dist-info/METADATA", "Name: numpy\nRequires-Python: >=3.11\n")

    release = stack.cpython.releases[0]
    common = {"options": "-a -b", "compiler": "gcc 1"}
    prefix, of_python = build("cpython", common | {"archive": release.sha256}, lambda folder: None)
    numpy, of_numpy = build("numpy", common | {"archive": stack.numpy.releases[0].sha256}, wheel)
    package = Package(name="libssl3", version="3-1", source="openssl 3-1", distribution="debian")
    library = Library(soname="libssl.so.3", file="/lib/libssl.so.3", name="libssl-1.so.3", sha256="12", package=package)
    contents = Contents(base="cpython-x", epoch=1_700_000_000, machine="x86_64", glibc="2.35", libraries=(library,))
    zst, gz = "cpython-x.tar.zst", "cpython-x.tar.gz"
    packed, of_archive = build(
        "archive", {"a": "b"}, lambda folder: [(folder / name).write_text(name) for name in (zst, gz)]
    )
    return Made(
        stack=stack,
        interpreter=Interpreter(prefix / "bin" / "python3.13t", prefix, of_python, release, "ft1-c7", False),
        archive=Archive(contents=contents, zst=packed / zst, gz=packed / gz, fingerprint=of_archive, fresh=True),
        wheel=Wheel(numpy / NAME, "2.4.6+ft1", of_numpy, False),
        image=None,
        engine=None,
        commit="abc",
    )


def test_all_that_lies_there_is_in_the_sums(settings: Settings, made: Made) -> None:
    folder, products = publish.publish(settings, made, None)
    assert folder == settings.root / "wheelhouse"
    there = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    assert there == {product.name for product in products} | {"SHA256SUMS"}
    assert {NAME, f"{NAME}.metadata", "cpython-x.tar.zst", "cpython-x.tar.gz", "downloads.json"} < there
    sums = dict(line.split("  ")[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert sums == {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in there - {"SHA256SUMS"}}
    (entry,) = json.loads((folder / "downloads.json").read_text()).values()
    assert entry["url"] == (folder / "cpython-x.tar.gz").as_uri() and entry["sha256"] == sums["cpython-x.tar.gz"]


def test_a_folder_that_will_be_served_says_so_to_uv(settings: Settings, made: Made) -> None:
    folder, _ = publish.publish(settings, made, "https://host/wheels")
    (entry,) = json.loads((folder / "downloads.json").read_text()).values()
    assert entry["url"] == "https://host/wheels/cpython-x.tar.gz"
    # All else is the same wherever it lies.
    assert b"https://host" not in b"".join(file.read_bytes() for file in folder.glob("simple/**/*.*"))


def test_the_same_again_is_the_same_again(settings: Settings, made: Made, tmp_path: Path) -> None:
    folder, first = publish.publish(settings, made, "https://host")
    _, again = publish.publish(settings, made, "https://host")
    assert first == again
    assert not list(folder.rglob(".*"))


def test_what_an_earlier_run_left_and_nothing_else_is_taken_away(settings: Settings, made: Made) -> None:
    folder, _ = publish.publish(settings, made, None)
    (folder / "mine.whl").touch()
    contents = replace(made.archive.contents, base="cpython-y")
    files = [made.archive.zst.with_name("cpython-y.tar.zst"), made.archive.gz.with_name("cpython-y.tar.gz")]
    for file in files:
        file.touch()
    newer = replace(made, archive=replace(made.archive, contents=contents, zst=files[0], gz=files[1]))
    _, products = publish.publish(settings, newer, None)
    there = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    assert there == {product.name for product in products} | {"SHA256SUMS", "mine.whl"}
    assert "cpython-y.tar.gz" in there and "cpython-x.tar.gz" not in there


def test_the_manifest_says_what_went_in(stack: Stack, settings: Settings, made: Made) -> None:
    folder, products = publish.publish(settings, made, None)
    found = json.loads((folder / "manifest.json").read_text())
    release = stack.cpython.releases[0]
    assert found["cpython"]["source"] == {"archive": release.archive, "sha256": release.sha256, "url": release.url}
    assert (found["cpython"]["options"], found["cpython"]["compiler"]) == (["-a", "-b"], "gcc 1")
    assert found["numpy"]["requires"] == list(stack.numpy.requires)
    assert found["archive"]["libraries"][0]["package"]["source"] == "openssl 3-1"
    assert (found["image"], found["toolchain"]) == (None, {"commit": "abc"})
    for part in ("cpython", "numpy", "archive"):
        assert found[part]["started"].endswith("Z") and found[part]["seconds"] >= 0
    assert [file["name"] for file in found["files"]] == [each.name for each in products if each.name != "manifest.json"]


def test_the_manifest_names_what_the_wheel_was_built_in(made: Made) -> None:
    image = Image(
        name="localhost/made:1",
        identity="abc",
        fingerprint="def",
        base=Base(name="manylinux", identity="123", kind="official", glibc="2.28"),
        compiler="gcc 14",
        fresh=True,
    )
    assert json.loads(manifest.manifest(replace(made, image=image, engine="podman 4.3.1"), []))["image"] == {
        "engine": "podman 4.3.1",
        "image": "localhost/made:1",
        "id": "abc",
        "base": {"kind": "official", "image": "manylinux", "id": "123", "glibc": "2.28"},
        "compiler": "gcc 14",
    }


@pytest.mark.parametrize("works", [True, False])
def test_the_wheel_is_tried_on_stock_with_numpys_patches_alone(
    made: Made, settings: Settings, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    def make_venv(settings: Settings, base: Path, folder: Path, requires: list[str | Path], **_: object) -> Path:
        assert requires == [made.wheel.path, *made.stack.test_requires]
        return folder / "bin" / "python"

    def run(argv: list[str], *, log: Path, **_: object) -> None:
        assert "--applied=patches/a.patch" in argv
        log.write_text("===== 3 passed in 1.00s =====\n")
        if not works:
            raise errors.CommandFailed("NumPy's patches", "exit status 1", log, ["1 failed"])

    monkeypatch.setattr(venvs, "make_venv", make_venv)
    monkeypatch.setattr(process, "run", run)
    words = (made.stack, settings, made.interpreter, made.wheel, ["patches/a.patch"], settings.root / "log")
    if works:
        assert on_stock.try_it(*words) == "3 passed in 1.00s"
        return
    with pytest.raises(errors.TestsFailed, match="1 failed"):
        on_stock.try_it(*words)


def test_the_bill_changes_with_what_is_made_and_with_nothing_else(made: Made) -> None:
    bill = json.loads(manifest.bill(made))
    assert manifest.bill(made) == manifest.bill(made)
    other = replace(made, archive=replace(made.archive, fingerprint="00"))
    assert json.loads(manifest.bill(other))["serialNumber"] != bill["serialNumber"]
    components = {component["name"]: component for component in bill["components"]}
    assert components["libssl.so.3"]["purl"] == "pkg:deb/debian/libssl3@3-1"
    assert components["numpy"]["pedigree"]["ancestors"][0]["version"] == made.stack.numpy.releases[0].version
    assert any(name.startswith("scipy-openblas") for name in components)
    parts = {each["ref"]: each.get("dependsOn", []) for each in bill["dependencies"]}
    assert parts[components["cpython"]["bom-ref"]] == [components["libssl.so.3"]["bom-ref"]]


@pytest.fixture
def session(made: Made, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], str]:
    """Run the session on builds that are there."""
    built = Environment(tmp_path, tmp_path / "python", made.interpreter, made.wheel)
    monkeypatch.setattr(environment, "user_environment", lambda *_: built)
    monkeypatch.setattr(cpython, "interpreter", lambda *_, prefix=None: made.interpreter)
    monkeypatch.setattr(archive, "archive", lambda *_: made.archive)
    monkeypatch.setattr(command, "git_line", lambda *_: None)
    monkeypatch.setattr(others, "try_them", lambda *_: {"scipy": "1"})
    monkeypatch.setattr(on_stock, "try_it", lambda *_: "3 passed")
    monkeypatch.setattr(suites, "applied", lambda *_: [])
    options = Options(variant=PATCHED, profile="default", minutes=1, seed=0, logs=tmp_path / "logs")
    wishes = Wishes(url=None, image=None, container=False)
    return lambda: command.run(wishes, made.stack, settings, options, Summary("wheels"))


def test_the_session_tries_what_it_has_put_there(
    session: Callable[[], str], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tried(argv: list[str], *, log: Path, **_: object) -> None:
        assert f"--wheelhouse={settings.root / 'wheelhouse'}" in argv
        assert (settings.root / "wheelhouse" / "SHA256SUMS").is_file()
        log.parent.mkdir(parents=True)
        log.write_text("===== 9 passed in 1.00s =====\n")

    monkeypatch.setattr(process, "run", tried)
    told = session()
    assert f"--index-url {(settings.root / 'wheelhouse' / 'simple').as_uri()} numpy" in told


def test_a_trial_that_fails_fails_the_session(session: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(*_: object, log: Path, **__: object) -> None:
        raise errors.CommandFailed("trial of the wheelhouse", "exit status 1", log, ["1 failed"])

    monkeypatch.setattr(process, "run", failed)
    with pytest.raises(errors.TestsFailed, match="1 failed"):
        session()


@pytest.mark.parametrize(
    ("script", "told"),
    [('echo \'{"scipy": "1"}\'', ""), ("echo 'scipy gives a wrong result' >&2; exit 1", "a wrong result")],
)
def test_packages_of_others_must_do_their_work(
    made: Made, settings: Settings, monkeypatch: pytest.MonkeyPatch, script: str, told: str
) -> None:
    def make_venv(
        settings: Settings, base: Path, folder: Path, requires: list[str | Path], *, exact: bool, **_: object
    ) -> Path:
        assert exact and requires == [made.wheel.path, *made.stack.others_requires]
        python = folder / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        return python

    monkeypatch.setattr(venvs, "make_venv", make_venv)
    words = (made.stack, settings, made.interpreter, made.wheel, settings.root / "log")
    if not told:
        assert others.try_them(*words) == {"scipy": "1"}
        return
    with pytest.raises(errors.TestsFailed, match=told):
        others.try_them(*words)


def test_every_package_that_is_put_to_work_is_pinned(stack: Stack) -> None:
    names = {each.partition("==")[0].replace("-", "_") for each in stack.others_requires}
    at_work = set(re.findall(r"^def (\w+)\(", others.WORK, re.MULTILINE))
    assert len(at_work) == 5 and at_work <= names
