"""Runs of suites small enough to see through."""

from __future__ import annotations

from ftnumpy.upstream.outcomes import Run, Test


def test_of(outcome: str, threads: int = 1, why: str = "") -> Test:
    return Test(outcome=outcome, seconds=1.0, threads=threads, why=why)


test_of.__test__ = False  # type: ignore[attr-defined]


def run(variant: str = "stock", modules: tuple[str, ...] = (), gil: str | None = None, **outcomes: str) -> Run:
    """``outcomes`` are by test; ``__`` in a name stands for a dot."""
    return Run(
        suite="numpy",
        variant=variant,
        key="k",
        command="c",
        started="2026-01-01T00:00:00Z",
        seconds=60.0,
        gil=gil,
        modules=modules,
        tests={name.replace("__", "."): test_of(outcome) for name, outcome in outcomes.items()},
    )
