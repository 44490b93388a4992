"""Our own C programs and libraries for the census, each compiled once and kept in the cache."""

from __future__ import annotations

from pathlib import Path

from ftnumpy import compiler, fingerprint, patchqueue, process
from ftnumpy.settings import Settings

# No contraction: the replay's figures must not depend on the processor that it is compiled for.
PROGRAM = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-ffp-contract=off", "-pthread")
LIBRARY = (*PROGRAM, "-fPIC", "-shared")


def compiled(
    settings: Settings, source: Path, flags: tuple[str, ...], log: Path, headers: tuple[Path, ...] = ()
) -> Path:
    """What becomes of the C file ``source``, which includes ``headers``.

    Raises `CommandFailed` or `PrerequisiteError`.
    """

    def build(work: Path, final: Path) -> Path:
        folder = work / source.stem
        folder.mkdir()
        process.run(
            [settings.cc, *flags, source, "-lm", "-o", folder / source.stem], what=f"compiling {source.name}", log=log
        )
        return folder

    inputs = {
        **{file.name: patchqueue.sha256(file) for file in (source, *headers)},
        "flags": " ".join(flags),
        "compiler": compiler.identify(settings),
    }
    folder, _ = fingerprint.build_once(settings, source.stem, inputs, build)
    return folder / source.stem
