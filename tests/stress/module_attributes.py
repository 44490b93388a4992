"""Threads load a module's attributes while one rebinds, deletes and re-adds them and changes the module's class.

Every value says under which name it was stored, and when.  What a thread sees must have been stored under that very
name, and never be older than what it saw there before.  The threads share the bytecode that loads; it is replaced again
and again, because an instruction that has met many changes stays with the general way.
"""

from __future__ import annotations

import random
import types
from collections.abc import Callable

import arena

LOADERS = 8
BATCH = 200  # calls of `load` between two looks at the clock
CHANGES = 20  # before the bytecode is replaced
NAMES = ("first", "second", "third")
LOAD = "def load(m): return m.first, m.second, m.third, m.fixed()"

Value = tuple[str, int]


class Lazy(types.ModuleType):
    """As lazy loaders make them: its attributes come from here."""

    @property
    def second(self) -> Value:
        return ("lazy", 0)


class Shared:
    """What all threads use: the module, and the function ``load`` that returns the attributes in NAMES' order.

    ``changes`` counts those of the module.  One for a whole run, because CPython 3.13 never frees a module that is made
    after a thread was started.
    """

    def __init__(self) -> None:
        self.changes = 0
        self.module = types.ModuleType("module")
        self.module.__dict__["__getattr__"] = lambda name: ("dynamic", 0)
        self.module.__dict__["fixed"] = lambda: ("fixed", 0)
        for name in NAMES:
            setattr(self.module, name, (name, 0))
        self.replace_load()

    def replace_load(self) -> None:
        made: dict[str, Callable[[types.ModuleType], tuple[Value, ...]]] = {}
        exec(LOAD, made)
        self.load = made["load"]


def check(name: str, value: Value, seen: dict[str, int]) -> None:
    """``seen``: when the newest value was stored that this thread has seen, by name."""
    stored, when = value
    if stored in ("lazy", "dynamic"):
        return
    assert stored == name, f"{name} has the value of {stored}"
    assert when >= seen[name], f"{name} has {when} after {seen[name]}"
    seen[name] = when


def change(module: types.ModuleType, chance: random.Random, when: int) -> None:
    """One change of each kind, in random order; values carry ``when``, which grows."""
    names = module.__dict__

    def rebind() -> None:
        for name in NAMES:
            setattr(module, name, (name, when))

    def delete() -> None:
        for name in chance.sample(NAMES, 2):
            delattr(module, name)
            setattr(module, name, (name, when))

    def reuse() -> None:
        # The last entry of the keys goes from one name to another and back.
        name = names.popitem()[0]
        names["other"] = ("other", when)
        names.popitem()
        names[name] = (name, when)

    def grow() -> None:
        for number in range(20):
            names[f"more {number}"] = ("more", when)
        for number in range(20):
            del names[f"more {number}"]

    def cross() -> None:
        module.__class__ = Lazy
        module.__class__ = types.ModuleType

    delete()  # puts names last, and so `reuse` never takes `fixed`
    for step in chance.sample((rebind, delete, reuse, grow, cross), 5):
        step()


def rebind_until(over: Callable[[], bool], shared: Shared, chance: random.Random) -> int:
    """The changing thread's part; what it does isn't counted."""
    while not over():
        shared.changes += 1
        change(shared.module, chance, shared.changes)
        if shared.changes % CHANGES == 0:
            shared.replace_load()
    return 0


def load_batch(shared: Shared, seen: dict[str, int]) -> int:
    """Returns how often it loaded; ``seen`` as in `check`."""
    load = shared.load
    for _ in range(BATCH):
        *values, fixed = load(shared.module)
        for name, value in zip(NAMES, values, strict=True):
            check(name, value, seen)
        assert fixed == ("fixed", 0), fixed
    return BATCH * (len(NAMES) + 1)


def load_until(over: Callable[[], bool], shared: Shared) -> int:
    """A loading thread's part; returns how often it loaded."""
    loads = 0
    seen = dict.fromkeys(NAMES, -1)
    while not over():
        loads += load_batch(shared, seen)
    return loads


def stress(run: arena.Arena) -> int:
    total = 0
    shared = Shared()
    for round in run.rounds():
        over = [False] * LOADERS

        def work(
            number: int,
            chance: random.Random,
            round: arena.Round = round,
            over: list[bool] = over,
        ) -> int:
            if number == LOADERS:
                return rebind_until(lambda: all(over), shared, chance)
            try:
                return load_until(round.over, shared)
            finally:
                over[number] = True

        total += round.fight(work, LOADERS + 1)
    return total


if __name__ == "__main__":
    arena.main(stress)
