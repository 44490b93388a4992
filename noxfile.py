"""The door to ftnumpy: ``nox -l`` lists the sessions, ``nox -s <session> -- --help`` what one can be told."""

from __future__ import annotations

import sys
from pathlib import Path

import nox

if sys.version_info < (3, 11):  # noqa: UP036 - this runs in whatever Python nox has
    sys.exit(f"error: ftnumpy needs nox in Python 3.11 or later; this nox runs in {sys.version.split()[0]}")

sys.path.insert(0, str(Path(__file__).parent))

from ftnumpy import bootstrap
from ftnumpy.errors import FtnumpyError

nox.options.sessions = ["build-ft"]
nox.options.default_venv_backend = "none"


def ftnumpy(session: nox.Session) -> None:
    """Run the ftnumpy command that bears the session's name."""
    try:
        python = bootstrap.toolchain_python()
    except FtnumpyError as error:
        session.error(str(error))
    # An interrupted run takes its work away and says how it ended, which nox by itself gives half a second for.
    session.run(
        *(str(python), "-m", "ftnumpy", session.name, *session.posargs),
        external=True,
        interrupt_timeout=60,
        terminate_timeout=60,
    )


@nox.session(name="build-ft")
def build_ft(session: nox.Session) -> None:
    """Build the interpreter and the NumPy wheel, and an environment with both."""
    ftnumpy(session)


@nox.session
def test(session: nox.Session) -> None:
    """Run the unit tests, the patches' tests and upstream's suites on the built stack."""
    ftnumpy(session)


@nox.session
def stress(session: nox.Session) -> None:
    """Run many threads hard on the built stack (--minutes N, --seed N)."""
    ftnumpy(session)


@nox.session
def tsan(session: nox.Session) -> None:
    """Look for data races in the patched stack with ThreadSanitizer (--minutes N of stress, --seed N)."""
    ftnumpy(session)


@nox.session
def asan(session: nox.Session) -> None:
    """Look for bad memory accesses and undefined behaviour in the patched stack (--minutes N, --seed N)."""
    ftnumpy(session)


@nox.session
def semantics(session: nox.Session) -> None:
    """Measure what threads may do with shared arrays, and what comes of it (--docs)."""
    ftnumpy(session)


@nox.session
def upstream(session: nox.Session) -> None:
    """Run NumPy's and CPython's whole suites on stock and patched, and tell what differs (a suite, --fast)."""
    ftnumpy(session)


@nox.session
def kernel(session: nox.Session) -> None:
    """Time the article's kernel on stock and patched, side by side."""
    ftnumpy(session)


@nox.session
def census(session: nox.Session) -> None:
    """Count the writes that make cores wait for each other (a workload, a program, or the whole list)."""
    ftnumpy(session)


@nox.session
def profile(session: nox.Session) -> None:
    """Draw flame graphs of a workload on stock and patched (a workload, --threads N, --seconds S)."""
    ftnumpy(session)


@nox.session
def bench(session: nox.Session) -> None:
    """Run asv on the stack's history, compare stock and patched, make the pages (--quick)."""
    ftnumpy(session)


@nox.session
def scaling(session: nox.Session) -> None:
    """Measure how twelve classes of work scale with workers, before and after (--workers, --launches)."""
    ftnumpy(session)


@nox.session
def wheels(session: nox.Session) -> None:
    """Build the wheel in a container, pack it and the interpreter for pip, uv and tar (--url, --image)."""
    ftnumpy(session)


@nox.session
def report(session: nox.Session) -> None:
    """Write one page for a team from what the other sessions have kept."""
    ftnumpy(session)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, types, C format and the patch queues' form."""
    ftnumpy(session)


@nox.session
def doctor(session: nox.Session) -> None:
    """Say what this machine has, what it lacks and what is built."""
    ftnumpy(session)


@nox.session
def patches(session: nox.Session) -> None:
    """Work on the patch queues: -- check, apply, export or status."""
    ftnumpy(session)
