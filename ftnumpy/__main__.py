"""The command line: ``python -m ftnumpy <session>``, which nox's sessions call."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import re
import secrets
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from ftnumpy import console, doctor, environment, fingerprint, lint, patches_command, results
from ftnumpy.census.wishes import Wishes
from ftnumpy.console import Summary
from ftnumpy.errors import FtnumpyError, UsageError
from ftnumpy.flames import wishes as flames
from ftnumpy.options import Options
from ftnumpy.scaling import wishes as scaling
from ftnumpy.settings import Settings, read_settings
from ftnumpy.stack import ASAN, PATCHED, PROFILES, TSAN, Stack, read_stack, read_variant
from ftnumpy.upstream import wishes as upstream
from ftnumpy.wheels import wishes as wheels

INTERRUPTED = 130

# What a machine does to any file of ours, and what its owner can do about that.  All else is our mistake.
MACHINE = {
    fingerprint.FULL: "make room, or name folders on another disk (the cache with FTNUMPY_CACHE)",
    (errno.EACCES, errno.EPERM, errno.EROFS): (
        "give access, or name a folder that you may write (the cache with FTNUMPY_CACHE; the checkout is written, too)"
    ),
    (errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG): (
        "name another folder, or move what is in the way"
    ),
    (errno.EIO, errno.ESTALE): "the disk has failed: mend it, or name another",
    (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN): "give it more (see ulimit -a), or set FTNUMPY_JOBS lower",
}

# Does its work in steps of the summary and may return what is to be said below it.
Session = Callable[[Stack, Settings, Options, Summary], str | None]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message} ('{self.prog} --help' says what there is)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one session; returns its exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        # What is ignored, as under nohup, stays so.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    try:
        wishes = _parser().parse_args(arguments)
        settings = read_settings(os.environ)
        stack = read_stack(settings.root / "stack.toml")
        _run(wishes, stack, settings, sys.argv[1:] if arguments is None else arguments)
    except FtnumpyError as error:
        console.fail(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        console.fail("interrupted; nothing half-made is kept as whole, and the next run goes on from what is finished")
        return INTERRUPTED
    except OSError as error:
        advice = next((advice for numbers, advice in MACHINE.items() if error.errno in numbers), None)
        if advice is None:
            raise
        console.fail(f"{error.strerror}: {error.filename or 'a file'}; {advice}, and run again")
        return FtnumpyError.exit_code
    return 0


def _interrupt(number: int, frame: object) -> NoReturn:
    """A polite request to end is an interruption, so that no compiler outlives us."""
    raise KeyboardInterrupt


def _run(wishes: argparse.Namespace, stack: Stack, settings: Settings, words: Sequence[str]) -> None:
    match wishes.command:
        case "doctor":
            doctor.run(stack, settings)
        case "patches":
            patches_command.main(wishes.action, stack, settings)
        case "lint":
            with _summary("lint") as summary:
                lint.run(stack, settings, _logs(settings, "lint"), summary)
        case "report":
            with _summary("report") as summary:
                page = importlib.import_module("ftnumpy.report.command").run(stack, settings, summary)
            console.say(page)
        case command:
            options = Options(
                variant=wishes.variant,
                profile=wishes.profile,
                minutes=wishes.minutes,
                seed=wishes.seed,
                logs=_logs(settings, command),
            )
            typed = shlex.join(["nox", "-s", command, *(["--", *words[1:]] if words[1:] else [])])
            with _summary(command) as summary, results.kept(typed, command, settings, options, summary):
                closing = _session(command, wishes)(stack, settings, options, summary)
            if closing:
                console.say(closing)


def _session(command: str, wishes: argparse.Namespace) -> Session:
    """The function behind ``command``.  The suites are imported only when they are to run."""
    if command == "build-ft":
        return build_ft
    modules = {
        "test": "ftnumpy.suites",
        "stress": "ftnumpy.stress.command",
        "kernel": "ftnumpy.kernel_times",
        "census": "ftnumpy.census.command",
        "scaling": "ftnumpy.scaling.command",
        "bench": "ftnumpy.bench.command",
        "profile": "ftnumpy.flames.command",
        "upstream": "ftnumpy.upstream.command",
        "semantics": "ftnumpy.semantics",
        "tsan": "ftnumpy.sanitizers.command",
        "asan": "ftnumpy.sanitizers.command",
        "wheels": "ftnumpy.wheels.command",
    }
    module = importlib.import_module(modules[command])
    asked: dict[str, Callable[[argparse.Namespace], object]] = {
        "census": _census_wishes,
        "scaling": _scaling_wishes,
        "bench": _bench_wishes,
        "profile": _profile_wishes,
        "upstream": _upstream_wishes,
        "semantics": _semantics_wishes,
        "stress": _stress_wishes,
        "wheels": _wheels_wishes,
    }
    session: Session = partial(module.run, asked[command](wishes)) if command in asked else module.run
    return session


def _census_wishes(wishes: argparse.Namespace) -> Wishes:
    return Wishes(
        words=tuple(wishes.words),
        python=wishes.python,
        threads=wishes.threads,
        iterations=wishes.iterations,
        native=wishes.native,
        out=wishes.out,
        fetch_qemu=wishes.fetch_qemu,
    )


def _profile_wishes(wishes: argparse.Namespace) -> flames.Wishes:
    return flames.Wishes(workload=wishes.workload, threads=wishes.threads, seconds=wishes.seconds)


def _stress_wishes(wishes: argparse.Namespace) -> tuple[str, ...]:
    """The kinds."""
    return tuple(wishes.words)


def _wheels_wishes(wishes: argparse.Namespace) -> wheels.Wishes:
    return wheels.Wishes(url=wishes.url, image=wishes.image, container=wishes.container)


def _upstream_wishes(wishes: argparse.Namespace) -> upstream.Wishes:
    return upstream.Wishes(words=tuple(wishes.words), fast=wishes.fast)


def _semantics_wishes(wishes: argparse.Namespace) -> bool:
    """Whether to write the page."""
    return bool(wishes.docs)


def _bench_wishes(wishes: argparse.Namespace) -> bool:
    """Whether to be quick."""
    return bool(wishes.quick)


def _scaling_wishes(wishes: argparse.Namespace) -> scaling.Wishes:
    return scaling.Wishes(words=tuple(wishes.words), workers=wishes.workers, launches=wishes.launches, docs=wishes.docs)


def build_ft(stack: Stack, settings: Settings, options: Options, summary: Summary) -> str:
    """Interpreter, wheel and an environment with both; returns where they are and how to use them."""
    made = environment.user_environment(stack, settings, options, summary)
    if options.variant.build:
        # Such a wheel can bear the name of the one for use, and doesn't belong beside it.
        return f"\ninterpreter   {made.interpreter.python}\nenvironment   {made.folder}, for checks only"
    with summary.step("wheelhouse") as result:
        wheel = environment.export_wheel(settings, made.wheel)
        result.append(wheel.name)
    folder = os.path.relpath(made.folder)
    return f"""
interpreter   {made.interpreter.python}
wheel         {wheel}
environment   {made.folder}

To use them:  . {folder}/bin/activate && python -c "import numpy; print(numpy.__version__)"
In a folder of your own:
              {made.interpreter.python} -m venv my-environment
              my-environment/bin/pip install {wheel}"""


@contextmanager
def _summary(title: str) -> Iterator[Summary]:
    """A summary that is shown however the session ends, with the logs that came to be."""
    summary = Summary(title)
    try:
        yield summary
    finally:
        summary.rows = [row if row.log and row.log.exists() else replace(row, log=None) for row in summary.rows]
        if summary.rows:
            summary.show()


def _logs(settings: Settings, command: str) -> Path:
    """A new folder for this run's logs."""
    folder = settings.logs / f"{time.strftime('%Y%m%d-%H%M%S')}-{command}-{os.getpid()}"
    # A clock that was set back may give a name again.
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _parser() -> _Parser:
    common = _Parser(add_help=False)
    common.add_argument("--profile", choices=PROFILES, default="default", help="release adds PGO and LTO")
    common.add_argument("--minutes", type=_minutes, default=2.0, help="how long to stress (default 2)")
    common.add_argument("--seed", type=_seed, default=secrets.randbelow(1 << 32), help="repeat a stress run")
    shared = _Parser(add_help=False, parents=[common])
    shared.add_argument(
        "--variant",
        type=read_variant,
        default=PATCHED,
        help="stock, patched (default), reference (the NumPy that we measure against), a prefix such as c2n1, or "
        "patched built for checks: gil, tsan, asan",
    )
    parser = _Parser(prog="ftnumpy", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="session")
    commands.add_parser("build-ft", parents=[shared], help="build interpreter, wheel and an environment with both")
    commands.add_parser("test", parents=[shared], help="run the test suites on the built stack")
    stress = commands.add_parser("stress", parents=[shared], help="run many threads hard on the built stack")
    stress.add_argument("words", nargs="*", metavar="KIND", help="kinds of stress (default: all)")
    commands.add_parser("kernel", parents=[shared], help="time the article's kernel on stock and patched")
    _add_census(commands.add_parser("census", parents=[shared], help="count the writes that threads' cores wait for"))
    _add_profile(commands.add_parser("profile", parents=[shared], help="flame graphs of a workload, stock and patched"))
    bench = commands.add_parser("bench", parents=[shared], help="run asv on the stack's history and make its pages")
    bench.add_argument("--quick", action="store_true", help="stock and patched only, in under 10 minutes")
    _add_scaling(commands.add_parser("scaling", parents=[shared], help="measure how work scales with workers"))
    for variant, what in ((TSAN, "ThreadSanitizer"), (ASAN, "AddressSanitizer and UndefinedBehaviorSanitizer")):
        commands.add_parser(variant.name, parents=[common], help=f"run the patched stack under {what}").set_defaults(
            variant=variant
        )
    semantics = commands.add_parser(
        "semantics", parents=[shared], help="measure what threads may do with shared arrays"
    )
    semantics.add_argument("--docs", action="store_true", help="write the table into docs/atomicity.md")
    _add_upstream(commands.add_parser("upstream", parents=[shared], help="compare upstream's whole suites with stock"))
    wheelhouse = commands.add_parser("wheels", parents=[common], help="pack interpreter and wheel for pip, uv and tar")
    wheelhouse.set_defaults(variant=PATCHED)
    wheelhouse.add_argument("--url", type=_url, help="where wheelhouse/ will be served (default: where it is)")
    where = wheelhouse.add_mutually_exclusive_group()
    where.add_argument("--image", help="base image to build NumPy in (default: manylinux_2_28, else one made here)")
    where.add_argument(
        "--no-container", dest="container", action="store_false", help="take the NumPy wheel that this machine built"
    )
    commands.add_parser("report", help="write one page from what the other sessions have kept")
    commands.add_parser("lint", help="style, types, C format and patch queues")
    commands.add_parser("doctor", help="say what this machine has and lacks")
    patches = commands.add_parser("patches", help="work on the patch queues")
    patches.add_argument("action", choices=patches_command.ACTIONS)
    return parser


def _add_census(census: argparse.ArgumentParser) -> None:
    census.usage = (
        "ftnumpy census [options] [WORKLOAD… | MODULE:FUNCTION | PROGRAM [ARGUMENT…]]\n"
        "       ftnumpy census [options] compare SIDE SIDE… [WORKLOAD… | MODULE:FUNCTION | PROGRAM [ARGUMENT…]]\n"
        "A SIDE is a variant, a JSON file of a census, or a folder of such files."
    )
    census.add_argument("--python", type=Path, metavar="PATH", help="count this interpreter instead of a variant's")
    census.add_argument("--threads", type=_count, default=2, help="threads of a workload (default 2)")
    census.add_argument("--iterations", type=_count, help="of each thread, instead of what fits the workload")
    census.add_argument("--no-native", dest="native", action="store_false", help="neither a native run nor the model")
    census.add_argument("--out", type=Path, metavar="FOLDER", help="for the reports (default .build/census/<variant>)")
    census.add_argument("--fetch-qemu", action="store_true", help="unpack QEMU into the cache, without root, and end")
    census.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def _add_profile(profile: argparse.ArgumentParser) -> None:
    profile.add_argument(
        "workload", nargs="?", default="chain-10", help="one of docs/performance.md (default chain-10)"
    )
    profile.add_argument("--threads", type=_count, default=2, help="that run it (default 2)")
    profile.add_argument("--seconds", type=_seconds, default=10.0, help="how long to record each (default 10)")


def _add_scaling(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", metavar="LIST", help="such as 1,2,4 (default: from 1 to all processors)")
    parser.add_argument("--launches", type=_count, default=5, help="of each workload, in new processes (default 5)")
    parser.add_argument("--docs", action="store_true", help="write the figures into docs/performance.md")
    parser.add_argument("words", nargs="*", metavar="WORKLOAD", help="workloads or classes (default: all)")


def _add_upstream(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fast", action="store_true", help="only the modules about what the patches change")
    parser.add_argument("words", nargs="*", metavar="SUITE", help="suites (default: all)")


def _count(text: str) -> int:
    count = int(text)
    if not 0 < count <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text} can't be meant; give a whole number from 1 to 1,000,000")
    return count


def _minutes(text: str) -> float:
    minutes = float(text)
    if not 0 < minutes <= 24 * 60:
        raise argparse.ArgumentTypeError(f"{text} minutes can't be meant; give more than 0 and at most a day")
    return minutes


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text} seconds can't be meant; give more than 0 and at most an hour")
    return seconds


def _url(text: str) -> str:
    if not re.match(r"(https?|file)://[^\s?#]+$", text):
        raise argparse.ArgumentTypeError(f"{text} can't be meant; give a whole URL, such as https://host/wheelhouse")
    return text


def _seed(text: str) -> int:
    seed = int(text)
    if seed < 0:
        raise argparse.ArgumentTypeError(f"{text} can't be a seed; give a whole number of at least 0")
    return seed


if __name__ == "__main__":
    sys.exit(main())
