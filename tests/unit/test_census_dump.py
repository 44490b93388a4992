"""The plugin's dump, read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ftnumpy.census import dump
from ftnumpy.census.dump import Access, Call, Instruction, LineCount, Step, Thread
from ftnumpy.errors import BuildError

WHOLE = """census 1 64 200
thread 2 1 5000 0
line 2 7f0040 3 2 1
access 2 7f0048 9 1 0 2
access 2 7f0040 4 0 3 0
syscall 2 202 1 1 6
step 2 40 7f0040 0
step 2 7 7f0040 2
context 2 0
context 2 1 401000 402000
thread 1 2 6000 3
line 1 7f0040 0 5 1
access 1 7f0048 9 1 0 5
context 1 1 403000
instruction 9 400010 1
instruction 4 400020 0
end
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "dump.0"
    file.write_text(text, encoding="ascii")
    return file


def test_a_dump_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = dump.read(write(tmp_path, WHOLE))
    assert (found.line_size, found.burst) == (64, 200)
    assert found.threads == {2: Thread(1, 5000, 0), 1: Thread(2, 6000, 3)}
    assert found.instructions == {9: Instruction(0x400010, True), 4: Instruction(0x400020, False)}
    assert found.lines == [LineCount(2, 0x7F0040, 3, 2, 1), LineCount(1, 0x7F0040, 0, 5, 1)]
    # A context's number is its thread's own.
    assert found.accesses == [
        Access(2, 0x7F0048, 9, (0x401000, 0x402000), 0, 2),
        Access(2, 0x7F0040, 4, (), 3, 0),
        Access(1, 0x7F0048, 9, (0x403000,), 0, 5),
    ]
    assert found.calls == [Call(2, 202, 1, (0x401000, 0x402000), 6)]
    assert found.steps == {2: [Step(40, 0x7F0040, 0), Step(7, 0x7F0040, 2)]}


def test_a_dump_without_shared_lines_is_whole_too(tmp_path: Path) -> None:
    found = dump.read(write(tmp_path, "census 1 64 200\nthread 1 1 10 0\nend\n"))
    assert found.lines == found.accesses == found.calls == []


@pytest.mark.parametrize(
    "text", [WHOLE.removesuffix("end\n"), WHOLE.replace("census 1 ", "census 2 "), "", WHOLE.partition("\n")[2]]
)
def test_a_dump_that_was_cut_short_or_is_of_another_format_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BuildError, match=r"dump\.0 is no whole dump of format 1"):
        dump.read(write(tmp_path, text))
