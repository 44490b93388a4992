"""Raw blocks of 32 MiB and more: lazy, given back at once, and grown without copying."""

from __future__ import annotations

import pytest
import running

pytestmark = pytest.mark.patch("cpython-patches", "mapping")

HELPERS = """
import ctypes, json, resource
api = ctypes.pythonapi
for name, arguments in {
    "malloc": [ctypes.c_size_t], "calloc": [ctypes.c_size_t] * 2, "realloc": [ctypes.c_void_p, ctypes.c_size_t],
}.items():
    function = getattr(api, f"PyMem_Raw{name.capitalize()}")
    function.argtypes, function.restype = arguments, ctypes.c_void_p
    globals()[name] = function
free = api.PyMem_RawFree
free.argtypes, free.restype = [ctypes.c_void_p], None
MiB = 1 << 20

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
"""


def test_zeros_are_not_there_until_they_are_touched() -> None:
    code = """
        before, faulted = resident(), faults()
        block = calloc(8, 1024 * MiB)
        assert block and block % 16 == 0
        grown, faulted = resident() - before, faults() - faulted
        last = ctypes.c_ubyte.from_address(block + 8 * 1024 * MiB - 1)
        assert last.value == 0
        last.value = 1
        free(block)
        print(json.dumps([grown, faulted]))
    """
    grown, faulted = running.python(HELPERS + running.textwrap.dedent(code))
    assert grown < 16 << 20
    assert faulted < 100


def test_what_is_freed_goes_back_at_once() -> None:
    code = """
        before = resident()
        for _ in range(3):
            blocks = [malloc(64 * MiB) for _ in range(4)]
            for block in blocks:
                ctypes.memset(block, 1, 64 * MiB)
            full = resident() - before
            for block in blocks:
                free(block)
        print(json.dumps([full, resident() - before]))
    """
    full, left = running.python(HELPERS + running.textwrap.dedent(code))
    assert full > 250 << 20
    assert left < 16 << 20


def test_growing_step_by_step_copies_nothing() -> None:
    """Only pages that are new are faulted in, however often the block grows; huge pages make it fewer."""
    code = """
        size = MiB // 2
        block = malloc(size)
        ctypes.memset(block, 1, size)
        faulted = faults()
        while size < 256 * MiB:
            block = realloc(block, size + MiB // 2)
            ctypes.memset(block + size, 1, MiB // 2)
            size += MiB // 2
        faulted = faults() - faulted
        assert all(ctypes.c_ubyte.from_address(block + at).value == 1 for at in range(0, size, 4096))
        free(block)
        print(faulted)
    """
    ideal = (256 << 20) // 4096
    assert running.python(HELPERS + running.textwrap.dedent(code)) < 1.25 * ideal


def test_contents_survive_every_change_of_size() -> None:
    code = """
        import random
        random.seed(1)
        sizes = [1, 1000, MiB - 1, MiB, MiB + 1, 8 * MiB, 32 * MiB - 1, 32 * MiB, 32 * MiB + 1, 70 * MiB]
        pattern = random.randbytes(70 * MiB)
        for _ in range(10):
            size = random.choice(sizes)
            block = malloc(size)
            ctypes.memmove(block, pattern, size)
            valid = size
            for _ in range(10):
                size = random.choice(sizes)
                block = realloc(block, size)
                assert block % 16 == 0 or size < 16
                valid = min(valid, size)
                assert ctypes.string_at(block, valid) == pattern[:valid], (size, valid)
                ctypes.memmove(block, pattern, size)
                valid = size
            free(block)
    """
    running.python(HELPERS + running.textwrap.dedent(code), timeout=120)


def test_zeros_are_zero_also_where_memory_was_used_before() -> None:
    code = """
        for size in (MiB, 31 * MiB, 32 * MiB, 33 * MiB, 100 * MiB):
            for _ in range(3):
                block = malloc(size)
                ctypes.memset(block, 255, size)
                free(block)
                block = calloc(1, size)
                assert not any(ctypes.string_at(block, size)), size
                free(block)
    """
    running.python(HELPERS + running.textwrap.dedent(code), timeout=120)


def test_what_can_not_be_had_is_null_and_harms_nothing() -> None:
    code = """
        huge = (1 << 63) - 1
        assert malloc(huge) is None and malloc(huge - 4096) is None and malloc(1 << 47) is None
        assert calloc(1 << 33, 1 << 33) is None and calloc(1, huge) is None
        for size in (100, 2 * MiB, 64 * MiB):
            block = malloc(size)
            ctypes.memset(block, 7, size)
            assert realloc(block, huge) is None and realloc(block, 1 << 47) is None
            assert ctypes.string_at(block, size) == bytes([7]) * size
            free(block)
    """
    running.python(HELPERS + running.textwrap.dedent(code))
