"""The C and C++ compilers: which they are, and the environment in which upstream's builds run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ftnumpy import prerequisites
from ftnumpy.errors import PrerequisiteError
from ftnumpy.settings import Settings

FLAGS = ("CFLAGS", "CPPFLAGS", "CXXFLAGS", "FFLAGS", "LDFLAGS", "LIBS", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "OPT")
PYTHON = ("PYTHONHOME", "PYTHONPATH", "PYTHON_GIL", "PYTHONSTARTUP", "PYTHONWARNINGS", "VIRTUAL_ENV", "PIP_USER")
# At its end ASan looks for leaks, of which an interpreter has many that it means to have.
QUIET_SANITIZERS = {"TSAN_OPTIONS": "report_bugs=0", "ASAN_OPTIONS": "detect_leaks=0"}
RUNTIMES = {"asan": ("libasan.so", "libstdc++.so.6"), "tsan": ("libtsan.so",)}


def identify(settings: Settings) -> str:
    """Name, version and target of both compilers, as they say themselves.

    Raises `PrerequisiteError`, with all else that the machine lacks, when one can't be run.
    """
    try:
        return "; ".join(_identify(command) for command in (settings.cc, settings.cxx))
    except (OSError, subprocess.CalledProcessError) as error:
        prerequisites.require(settings)
        raise PrerequisiteError(f"a compiler that can compile can't say what it is: {error}") from None


def _identify(command: str) -> str:
    version, target = (
        subprocess.run(
            [command, question], capture_output=True, text=True, check=True, env=os.environ | {"LC_ALL": "C"}
        ).stdout.partition("\n")[0]
        for question in ("--version", "-dumpmachine")
    )
    return f"{command}: {version}, {target}"


def environment(settings: Settings, work: Path, *first_on_path: Path) -> dict[str, str]:
    """The environment for a build in ``work``: ours, without what would change the result unseen.

    ``first_on_path`` are folders for the head of PATH.  With ccache, a folder of links that bear the compilers' names
    comes before them: CC stays a plain ``gcc``, so the interpreter doesn't tell later extension builds, perhaps on a
    machine without ccache, to use it.  A compiler given as a path is used as it is, without ccache.
    """
    result = clean_environment()
    path = [str(folder) for folder in first_on_path]
    if settings.ccache is not None:
        masks = work / "ccache"
        masks.mkdir(exist_ok=True)
        for compiler in {settings.cc, settings.cxx}:
            if "/" not in compiler and not (masks / compiler).exists():
                (masks / compiler).symlink_to(settings.ccache)
        path.insert(0, str(masks))
        if not _writable(Path(result.get("CCACHE_DIR") or _ccache_folder(settings.ccache))):
            result["CCACHE_DIR"] = str(settings.cache / "ccache")
        # Every try has its own work folder: paths below it must not keep ccache from finding what it has.
        result["CCACHE_BASEDIR"] = str(work)
    result |= {
        "PATH": os.pathsep.join([*path, os.environ.get("PATH", os.defpath)]),
        "CC": settings.cc,
        "CXX": settings.cxx,
        "LC_ALL": "C.UTF-8",
    }
    return result


def _ccache_folder(ccache: str) -> str:
    """Where ``ccache`` keeps what it has, as it says itself."""
    answer = subprocess.run([ccache, "--get-config", "cache_dir"], capture_output=True, text=True, check=False)
    return answer.stdout.strip()


def _writable(folder: Path) -> bool:
    """Whether ``folder`` can be written, or made, by us.  ccache fails where it can't write."""
    while not folder.exists():
        folder = folder.parent
    return os.access(folder, os.W_OK | os.X_OK)


def preload(settings: Settings, build: str | None) -> dict[str, str]:
    """What the environment needs for an interpreter that is not itself built with the sanitizer of ``build`` to load
    code that is.

    A sanitizer's runtime must be the first of all libraries; AddressSanitizer's watches C++'s exceptions only where
    their library is there when it starts.
    """
    if build not in RUNTIMES:
        return {}
    libraries = (
        subprocess.run(
            [settings.cc, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in RUNTIMES[build]
    )
    return {"LD_PRELOAD": " ".join(str(Path(library).resolve()) for library in libraries)}


def clean_environment() -> dict[str, str]:
    """Our environment without what a user's shell may have set that changes builds or what Python imports.

    An interpreter that is built with a sanitizer does its work without a report, as far as that can be had.
    """
    kept = {
        name: value for name, value in os.environ.items() if name not in FLAGS + PYTHON and not name.startswith("GIT_")
    }
    return kept | QUIET_SANITIZERS
