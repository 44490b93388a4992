"""The machine's container engine, podman or docker: whichever works, called in the way in which it does."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ftnumpy import compiler, process
from ftnumpy.errors import BuildError, CommandFailed, PrerequisiteError

NAMES = ("podman", "docker")
ADVICE = (
    "Install podman (on Debian and Ubuntu, as root: apt-get install podman) or docker, and see to it that "
    "'podman info' or 'docker info' succeeds for the user who runs this. Without a container, "
    "'nox -s wheels -- --no-container' takes the wheel that this machine has built for itself: for systems with its "
    "glibc or a newer one"
)
FULL = "no space left on device"
ANSWER_SECONDS = 300.0

# podman's own choice, crun, refuses machines that mix the two generations of control groups.
RUNC = '[engine]\nruntime = "runc"\n'


@dataclass(frozen=True, kw_only=True)
class Engine:
    """``arguments`` go to every command that starts a container, ``variables`` into the engine's environment."""

    name: str
    arguments: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Ours, without what would change what is done in a container unseen."""
        kept = {name: value for name, value in compiler.clean_environment().items() if not name.startswith("CIBW_")}
        return kept | self.variables


def find() -> Engine:
    """The first engine that answers.  Raises `PrerequisiteError` when none does."""
    reasons = []
    for name in NAMES:
        reason = _trouble(name)
        if reason is None:
            return Engine(name=name)
        reasons.append(f"  {name}: {reason}")
    raise PrerequisiteError("\n".join(["no container engine works here:", *reasons, ADVICE]))


def _trouble(name: str) -> str | None:
    """Why the engine can't be used; None when it can."""
    try:
        answer = subprocess.run([name, "info"], capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False)
    except OSError as error:
        return f"it can't be started ({error.strerror})"
    except subprocess.TimeoutExpired:
        return f"it has not answered for {ANSWER_SECONDS:g} seconds"
    return None if answer.returncode == 0 else last_line(answer.stderr or answer.stdout)


def settle(engine: Engine, image: str, settings_folder: Path) -> Engine:
    """``engine`` with what it takes to start a container of ``image`` here.

    Settings of ours, if it takes some, are kept in ``settings_folder``.  Raises `PrerequisiteError` when no way works.
    """
    reasons = []
    for way in _ways(engine, settings_folder):
        answer = ask(way, ["run", "--rm", *way.arguments, image, "true"])
        if answer.returncode == 0:
            return way
        reasons.append(f"  {' '.join([*way.arguments, *way.variables])}: {last_line(answer.stderr)}")
    raise PrerequisiteError("\n".join([f"{engine.name} can't start a container here:", *reasons, ADVICE]))


def _ways(engine: Engine, settings_folder: Path) -> Iterator[Engine]:
    if engine.name != "podman":
        yield engine
        return
    # Without the right to raise limits a container gets no higher ones than we have; what podman gives by default is
    # higher.  The network is the machine's because what podman makes otherwise needs more programs and more rights.
    limits = [f"--ulimit={name}={value}:{value}" for name, value in _limits().items()]
    own = Engine(name=engine.name, arguments=("--network=host", *limits))
    yield own
    settings_folder.mkdir(parents=True, exist_ok=True)
    file = settings_folder / "containers.conf"
    file.write_text(RUNC, encoding="ascii")
    yield Engine(name=engine.name, arguments=own.arguments, variables={"CONTAINERS_CONF": str(file)})


def _limits() -> dict[str, int]:
    """Of open files and of processes, what this process may have at most."""
    highest = int(Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii"))
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    processes = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    return {
        "nofile": min(1 << 20, files) if files != resource.RLIM_INFINITY else 1 << 20,
        "nproc": min(highest, processes) if processes != resource.RLIM_INFINITY else highest,
    }


def ask(engine: Engine, words: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
    """Run a command of the engine that answers soon; returns what it said, whatever its exit status.

    Raises `PrerequisiteError` when it does not answer.
    """
    try:
        return subprocess.run(
            [engine.name, *words],
            env=engine.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=ANSWER_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise PrerequisiteError(
            f"'{engine.name} {words[0]}' has not answered for {ANSWER_SECONDS:g} seconds; see whether "
            f"'{engine.name} info' does, and restart the engine"
        ) from None


def run(engine: Engine, words: Sequence[str | Path], *, what: str, log: Path, timeout: float | None = None) -> None:
    """Run a command of the engine that takes long.  Raises `BuildError`, which says so when a disk is full."""
    run_command([engine.name, *words], engine, what=what, log=log, timeout=timeout)


def run_command(
    command: Sequence[str | Path],
    engine: Engine,
    *,
    what: str,
    log: Path,
    cwd: Path | None = None,
    timeout: float | None = None,
    more: dict[str, str] | None = None,
) -> None:
    """The same for a command that calls the engine; ``more`` goes into its environment."""
    try:
        process.run(command, what=what, log=log, cwd=cwd, env=engine.environment | (more or {}), timeout=timeout)
    except CommandFailed as error:
        if any(FULL in line.lower() for line in error.last_lines):
            raise BuildError(
                f"{error}\nno space is left where {engine.name} keeps images and containers ({_storage(engine)}), or "
                f"where it works; free some ('{engine.name} system prune' removes what no container uses), and run "
                "again"
            ) from None
        raise


def _storage(engine: Engine) -> str:
    words = {"podman": "{{.Store.GraphRoot}}", "docker": "{{.DockerRootDir}}"}
    return ask(engine, ["info", "--format", words[engine.name]]).stdout.strip() or "see its 'info'"


def image_id(engine: Engine, image: str) -> str | None:
    """What tells ``image`` from every other; None when the engine has none of this name."""
    answer = ask(engine, ["image", "inspect", "--format", "{{.Id}}", image])
    return answer.stdout.strip().removeprefix("sha256:") if answer.returncode == 0 else None


def version(engine: Engine) -> str:
    """Such as ``podman 4.3.1``."""
    answer = ask(engine, ["--version"]).stdout
    number = next((word.strip(",") for word in answer.split() if word[0].isdigit()), "of no version")
    return f"{engine.name} {number}"


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it gave no reason"
