"""What counts as level: every measure can grow too much; warm-up, noise and what upstream lets grow are no leaks."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from ftnumpy.stress.level import MEASURES, levels
from ftnumpy.stress.samples import Sample


def sample(number: int, **values: int) -> Sample:
    usual = {"resident": 80 << 20, "blocks": 100_000, "descriptors": 6, "threads": 3, "uncollectable": 0}
    objects = {"dict": 1200 + values.pop("dict", 0)}
    return Sample(seconds=10.0 * number, collections=number, objects=objects, **(usual | values))


def grown(change: Callable[[int], dict[str, int]], count: int = 90) -> list[str]:
    return [level.measure for level in levels([sample(n, **change(n)) for n in range(count)]) if level.grew]


def test_what_stays_is_level() -> None:
    found = levels([sample(number) for number in range(90)])
    assert {level.measure for level in found} == {*MEASURES, "objects: dict"}
    assert not any(level.grew for level in found)


@pytest.mark.parametrize(
    ("measure", "change"),
    [
        ("resident", lambda n: {"resident": (80 << 20) + n * (4 << 20)}),
        ("blocks", lambda n: {"blocks": 100_000 + 80 * n}),
        ("descriptors", lambda n: {"descriptors": 6 + n // 60}),
        ("threads", lambda n: {"threads": 3 + n // 60}),
        ("uncollectable", lambda n: {"uncollectable": n // 60}),
        ("objects: dict", lambda n: {"dict": 4 * n}),
    ],
)
def test_each_measure_can_grow(measure: str, change: Callable[[int], dict[str, int]]) -> None:
    assert grown(change) == [measure]


def test_a_type_that_appears_late_has_grown_from_nothing() -> None:
    samples = [sample(n) for n in range(60)] + [
        Sample(**{**vars(sample(n)), "objects": {"dict": 1200, "Leaked": 500}}) for n in range(60, 90)
    ]
    assert [level.measure for level in levels(samples) if level.grew] == ["objects: Leaked"]


def test_warm_up_is_left_out() -> None:
    assert grown(lambda n: {"resident": min(n, 25) * (8 << 20), "threads": min(n, 25), "dict": 40 * min(n, 25)}) == []


def test_noise_is_no_leak() -> None:
    chance = random.Random(1)
    assert grown(lambda n: {"resident": (80 + chance.randrange(40)) << 20, "dict": chance.randrange(90)}) == []


def test_memory_swings_more_where_samples_are_few() -> None:
    def growing(number: int) -> list[Sample]:
        """From 80 to 160 MiB in so many samples."""
        return [sample(n, resident=(80 << 20) + n * (80 << 20) // number) for n in range(number)]

    few, many = (levels(growing(number)) for number in (60, 150))
    assert not [each.measure for each in few if each.grew]
    assert [each.measure for each in many if each.grew] == ["resident"]


def test_what_is_exempt_is_not_judged() -> None:
    samples = [sample(n, blocks=1000 * n) for n in range(90)]
    assert "blocks" in [level.measure for level in levels(samples) if level.grew]
    assert not any(level.grew for level in levels(samples, exempt=("blocks",)))


def test_few_samples_are_not_judged() -> None:
    assert levels([]) == ()
    assert levels([sample(n, blocks=10_000 * n) for n in range(10)]) == ()
