"""The container that the wheel is built in: engines that don't work, images that can't be had, and what goes inside.

The engine is a script that answers as podman and docker do.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from ftnumpy import cpython, venvs
from ftnumpy.errors import BuildError, PrerequisiteError, SourceError
from ftnumpy.recipe import Recipe, read_recipe
from ftnumpy.settings import ROOT, Settings
from ftnumpy.stack import PATCHED, Stack, read_stack
from ftnumpy.wheels import base, cibuild, image
from ftnumpy.wheels import engine as engines
from ftnumpy.wheels.base import Base
from ftnumpy.wheels.engine import Engine
from ftnumpy.wheels.image import Image

# Of the fake engine: what it has been told, a line a command.
TOLD = "told"


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All of PATH, but for the system's shell tools."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("sh", "cat", "env", "grep", "echo"):
        (folder / tool).symlink_to(f"/bin/{tool}")
    monkeypatch.setenv("PATH", str(folder))
    return folder


def fake(folder: Path, name: str, script: str) -> Engine:
    """An engine whose commands end as the cases of ``script`` say, and well otherwise."""
    file = folder / name
    file.write_text(
        f"""#!/bin/sh
echo "$*" >>{shlex.quote(str(folder / TOLD))}
case "$*" in
{script}
esac
""",
        encoding="ascii",
    )
    file.chmod(0o755)
    return Engine(name=name)


def told(folder: Path) -> list[str]:
    return (folder / TOLD).read_text(encoding="utf-8").splitlines()


def test_without_an_engine_the_error_says_what_to_install_and_what_goes_without(bin_folder: Path) -> None:
    with pytest.raises(PrerequisiteError) as caught:
        engines.find()
    message = str(caught.value)
    assert "podman: it can't be started (No such file or directory)" in message
    assert "docker: it can't be started" in message
    assert "apt-get install podman" in message and "--no-container" in message


def test_an_engine_that_does_not_answer_says_why_and_the_next_one_is_taken(bin_folder: Path) -> None:
    fake(bin_folder, "podman", "info) echo Error: broken store >&2; exit 125;;")
    with pytest.raises(PrerequisiteError, match="podman: Error: broken store"):
        engines.find()
    fake(bin_folder, "docker", "")
    assert engines.find().name == "docker"


def test_podman_gets_no_higher_limits_than_ours_and_the_machines_network(bin_folder: Path, tmp_path: Path) -> None:
    found = engines.settle(fake(bin_folder, "podman", ""), "base", tmp_path)
    limits = {word.partition("=")[2] for word in found.arguments if word.startswith("--ulimit")}
    assert {limit.partition("=")[0] for limit in limits} == {"nofile", "nproc"}
    assert "--network=host" in found.arguments and not found.variables
    highest = int(Path("/proc/sys/kernel/pid_max").read_text())
    assert all(0 < int(limit.partition(":")[2]) <= max(highest, 1 << 20) for limit in limits)


def test_podman_takes_runc_where_its_own_choice_fails(bin_folder: Path, tmp_path: Path) -> None:
    script = 'run*) test -n "$CONTAINERS_CONF" || { echo "crun: mixed cgroups" >&2; exit 126; };;'
    found = engines.settle(fake(bin_folder, "podman", script), "base", tmp_path / "conf")
    assert Path(found.variables["CONTAINERS_CONF"]).read_text() == '[engine]\nruntime = "runc"\n'
    assert found.environment["CONTAINERS_CONF"] == found.variables["CONTAINERS_CONF"]


def test_an_engine_that_starts_no_container_says_so_for_each_way(bin_folder: Path, tmp_path: Path) -> None:
    podman = fake(bin_folder, "podman", "run*) echo no rights >&2; exit 126;;")
    with pytest.raises(PrerequisiteError, match="podman can't start a container here") as caught:
        engines.settle(podman, "base", tmp_path)
    assert str(caught.value).count("no rights") == 2
    docker = fake(bin_folder, "docker", "run*) echo no rights >&2; exit 126;;")
    with pytest.raises(PrerequisiteError, match="docker can't start a container here") as caught:
        engines.settle(docker, "base", tmp_path)
    assert str(caught.value).count("no rights") == 1


def test_an_engine_that_hangs_is_an_error(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "ANSWER_SECONDS", 0.2)
    with pytest.raises(PrerequisiteError, match="'docker image' has not answered"):
        engines.image_id(fake(bin_folder, "docker", "image*) exec /bin/sleep 30;;"), "some")


def test_a_full_disk_is_said_with_its_place(bin_folder: Path, tmp_path: Path) -> None:
    script = """info*) echo /var/lib/images;;
build*) echo "Error: writing blob: no space left on device" >&2; exit 125;;"""
    with pytest.raises(BuildError, match=r"no space is left where podman keeps images.*\(/var/lib/images\)"):
        engines.run(fake(bin_folder, "podman", script), ["build", "."], what="make it", log=tmp_path / "log")


def test_what_a_user_has_set_for_cibuildwheel_does_not_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIBW_TEST_COMMAND", "true")
    assert "CIBW_TEST_COMMAND" not in Engine(name="podman").environment


HAVING = 'image*) test "$5" = have || exit 1; echo sha256:abc;;\nrun*getconf*) echo glibc 2.28;;'


def test_the_image_that_the_user_names_is_taken(bin_folder: Path, settings: Settings, tmp_path: Path) -> None:
    found, _ = base.get(settings, fake(bin_folder, "docker", HAVING), "have", tmp_path / "log")
    assert found == Base(name="have", identity="abc", kind="named", glibc="2.28")
    assert not any(line.startswith("pull") for line in told(bin_folder))


def test_a_named_image_that_can_not_be_pulled_is_an_error(bin_folder: Path, settings: Settings, tmp_path: Path) -> None:
    docker = fake(bin_folder, "docker", HAVING + "\npull*) echo no such host >&2; exit 125;;")
    with pytest.raises(SourceError, match="neither has the image lack nor can fetch it: no such host\n'docker images'"):
        base.get(settings, docker, "lack", tmp_path / "log")


def test_an_image_without_glibc_is_an_error(bin_folder: Path, settings: Settings, tmp_path: Path) -> None:
    docker = fake(bin_folder, "docker", "image*) echo sha256:abc;;\nrun*getconf*) exit 1;;")
    with pytest.raises(BuildError, match="name another image with --image"):
        base.get(settings, docker, "musl", tmp_path / "log")


def test_the_official_image_is_the_one_that_cibuildwheel_pins() -> None:
    assert "/manylinux_2_28_" in base.official() and ":20" in base.official()


@pytest.mark.parametrize("offline", [False, True])
def test_without_any_image_the_error_gives_both_reasons_and_a_way(
    bin_folder: Path, settings: Settings, tmp_path: Path, offline: bool
) -> None:
    docker = fake(bin_folder, "docker", "image*) exit 1;;\npull*) echo lookup failed: no such host >&2; exit 125;;")
    with pytest.raises(SourceError) as caught:
        base.get(replace(settings, offline=offline), docker, None, tmp_path / "log")
    message = str(caught.value)
    assert ("FTNUMPY_OFFLINE is set" in message) if offline else ("no such host" in message)
    assert ("takes packages from a Debian mirror" in message) if offline else ("no debootstrap on PATH" in message)
    assert "--image NAME" in message
    assert not offline or not any(line.startswith("pull") for line in told(bin_folder))


def test_a_full_disk_does_not_lead_to_another_image(bin_folder: Path, settings: Settings, tmp_path: Path) -> None:
    docker = fake(bin_folder, "docker", "image*) exit 1;;\npull*) echo no space left on device >&2; exit 125;;")
    with pytest.raises(BuildError, match="no space is left where docker keeps images"):
        base.get(settings, docker, None, tmp_path / "log")


def test_our_own_image_is_made_where_the_official_one_can_not_be_pulled(
    bin_folder: Path, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tool in ("debootstrap", "unshare", "tar"):
        fake(bin_folder, tool, "")
    have = tmp_path / "have"
    docker = fake(
        bin_folder,
        "docker",
        f"""image*pypa*) exit 1;;
image*) test -e {shlex.quote(str(have))} || exit 1; echo sha256:abc;;
pull*) echo no such host >&2; exit 125;;
import*) echo >{shlex.quote(str(have))};;
run*getconf*) echo glibc 2.36;;""",
    )
    monkeypatch.setattr(base.os, "geteuid", lambda: 0)
    place = base.Place(url="http://mirror.invalid/debian", route=base.apt_mirrors.Route())
    monkeypatch.setattr(base, "_having", lambda mirrors, codename: iter([place]))
    made, _ = base.get(settings, docker, None, tmp_path / "log")
    assert made.kind == "own" and made.name.startswith("localhost/ftnumpy-base:") and made.glibc == "2.36"
    bootstrap = next(line for line in told(bin_folder) if "--variant=minbase" in line)
    assert bootstrap.endswith(place.url) and "libssl-dev" in bootstrap and "ccache" not in bootstrap
    assert not any(settings.work.iterdir())


# --- what goes into the image and the container -----------------------------------------------------------------------


@pytest.fixture
def stack() -> Stack:
    return read_stack(ROOT / "stack.toml")


@pytest.fixture
def plan(stack: Stack) -> Recipe:
    return read_recipe(stack, stack.numpy, PATCHED, "default", "gcc 1", {})


def test_the_interpreter_in_the_image_is_compiled_as_ours_is(stack: Stack, tmp_path: Path) -> None:
    plan = read_recipe(stack, stack.cpython, PATCHED, "default", "gcc 1", {})
    script = image._script(plan, image.names("3.13"), "3", "ft1-c8", "0123456789", "1700000000")
    lines = [shlex.split(line) for line in script.splitlines()]
    assert ["./configure", "--prefix=/opt/python/cp313-cp313t", *plan.options] in lines
    variables = list(cpython.make_variables("ft1-c8", "0123456789", Path("/tree")))
    assert ["env", "SOURCE_DATE_EPOCH=1700000000", "make", "-j3", *variables] in lines
    assert ["make", "install", "DESTDIR=/stage", *variables] in lines


def test_the_interpreter_is_called_after_the_series() -> None:
    called = image.names("3.14")
    assert (called.tag, str(called.prefix), called.program) == ("cp314t", "/opt/python/cp314-cp314t", "python3.14t")


def test_the_scripts_are_shell_with_all_placeholders_filled(
    stack: Stack, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = read_recipe(stack, stack.cpython, PATCHED, "default", "gcc 1", {})

    def make_tree(archive: Path, patches: object, tree: Path) -> None:
        from ftnumpy.git import create_repository, git

        tree.mkdir()
        (tree / "configure").write_text("")
        create_repository(tree)
        git(tree, "add", ".")
        git(
            tree,
            "commit",
            "-q",
            "-m",
            "one",
            environment={f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        )

    monkeypatch.setattr(image.patchqueue, "make_tree", make_tree)
    monkeypatch.setattr(
        image.sources, "fetch", lambda release, channels, settings: image.sources.Source(release, tmp_path, "cache")
    )
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "a.whl").write_text("")
    (packages / "build.json").write_text("")
    commit, tag = image._fill(stack, settings, plan, stack.cpython.releases[0], packages, tmp_path, tmp_path / "log")
    assert len(commit) == 10 and tag == cpython.tag_of(stack, plan)
    context = tmp_path / "context"
    for script in ("libraries.sh", "tools.sh", "compile.sh"):
        assert subprocess.run(["sh", "-n", context / script], check=False).returncode == 0
    for file in ("libraries.sh", "tools.sh", "compile.sh", "Containerfile"):
        assert "@" not in (context / file).read_text()
    assert "openssl-devel" in (context / "libraries.sh").read_text()
    assert stack.numpy.requires[0] in (context / "tools.sh").read_text()
    copied = {
        line.split()[-2] for line in (context / "Containerfile").read_text().splitlines() if line.startswith("COPY")
    }
    assert copied - {"/stage/opt/python/cp313-cp313t"} <= {file.name for file in context.iterdir()} | {"tree.tar"}
    assert [file.name for file in (context / "packages").iterdir()] == ["a.whl"]
    listed = subprocess.run(["tar", "-tf", context / "tree.tar"], capture_output=True, text=True, check=True).stdout
    assert "./configure" in listed and ".git" not in listed


def test_docker_is_told_the_containerfile(
    stack: Stack, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = read_recipe(stack, stack.cpython, PATCHED, "default", "gcc 1", {})
    told: list[list[str]] = []

    def run(engine: Engine, arguments: list[object], **_: object) -> None:
        told.append([str(each) for each in arguments])

    monkeypatch.setattr(image, "_fill", lambda *_: ("0123456789", "ft1"))
    monkeypatch.setattr(image.engines, "run", run)
    monkeypatch.setattr(image.engines, "ask", lambda *_: None)
    monkeypatch.setattr(image.cpython, "inspect", lambda *_: None)
    made = Base(name="base", identity="123", kind="own", glibc="2.36")
    docker = Engine(name="docker", arguments=())
    image._make(stack, settings, plan, stack.cpython.releases[0], docker, made, tmp_path, "made", tmp_path / "log")
    build = next(line for line in told if line[0] == "build")
    assert f"--file={build[-1]}/Containerfile" in build


def test_cibuildwheel_understands_its_configuration(stack: Stack, plan: Recipe, tmp_path: Path) -> None:
    engine = Engine(name="podman", arguments=("--network=host", "--ulimit=nofile=20000:20000"))
    made = Image(
        name="localhost/made:1",
        identity="abc",
        fingerprint="def",
        base=Base(name="base", identity="123", kind="own", glibc="2.36"),
        compiler="gcc 1",
        fresh=True,
    )
    file = tmp_path / "cibuildwheel.toml"
    file.write_text(cibuild.configuration(plan, stack.test_requires, engine, made, 3, ["patches/0001-a.patch"]))
    table = tomllib.loads(file.read_text())["tool"]["cibuildwheel"]
    assert table["config-settings"]["setup-args"] == list(plan.options)
    assert any("--applied=patches/0001-a.patch" in command for command in table["test-command"])
    assert "--only-plat" in table["repair-wheel-command"]
    for command in table["test-command"]:
        words = shlex.split(command)
        assert words[0] == "python"
        if "-c" in words:
            compile(words[words.index("-c") + 1], "test-command", "exec")
    understood = subprocess.run(
        [sys.executable, "-c", UNDERSTOOD, file], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert understood.returncode == 0, understood.stderr
    assert json.loads(understood.stdout) == {
        "engine": "podman",
        "arguments": ["--network=host", "--ulimit=nofile=20000:20000"],
        "mount": False,
        "image": "localhost/made:1",
        "network": False,
    }


# What cibuildwheel itself makes of the file; its functions are its own, so this runs apart from the toolchain's code.
UNDERSTOOD = """
import json, platform, sys
from pathlib import Path
from cibuildwheel.options import CommandLineArguments, Options
arguments = CommandLineArguments.defaults()
arguments.config_file = sys.argv[1]
arguments.only = f"cp313t-manylinux_{platform.machine()}"
arguments.package_dir = Path(".")
options = Options(platform="linux", command_line_arguments=arguments, env={})
found = options.build_options(arguments.only)
engine = found.container_engine
print(json.dumps({
    "engine": engine.name,
    "arguments": list(engine.create_args),
    "mount": not engine.disable_host_mount,
    "image": found.manylinux_images[platform.machine()],
    "network": found.environment.as_dictionary({})["PIP_NO_INDEX"] != "1",
}))
"""


def test_packages_for_a_container_fit_its_glibc() -> None:
    tags = [word.partition("=")[2] for word in venvs._platforms("2.28")]
    assert tags[0].startswith("manylinux_2_28_") and tags[-1].startswith("manylinux2014_")
    assert not any(tag.startswith("manylinux_2_29") for tag in tags)
    assert os.uname().machine in tags[0]
