"""An archive's bytes come from its files alone."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

import zstandard

from ftnumpy.wheels import tarball


def tree(folder: Path, names: list[str]) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"this is {name}")
    (folder / "bin" / "tool").chmod(0o750)
    os.link(folder / "bin" / "tool", folder / "bin" / "tool2")
    (folder / "bin" / "link").symlink_to("tool")
    (folder / "links").symlink_to("bin")
    return folder


def pack(folder: Path, target: Path) -> tuple[bytes, bytes]:
    target.mkdir()
    files = target / "a.tar.zst", target / "a.tar.gz"
    tarball.write(folder, "python", 1_700_000_000, files)
    return files[0].read_bytes(), files[1].read_bytes()


def test_neither_order_nor_time_nor_owner_nor_mask_changes_them(tmp_path: Path) -> None:
    names = ["bin/tool", "lib/z.py", "lib/a.py", "lib-more/x", "é"]
    one, other = tree(tmp_path / "one", names), tree(tmp_path / "other", names[::-1])
    for number, file in enumerate(other.rglob("*")):
        os.utime(file, (number, number), follow_symlinks=False)
    (other / "lib" / "a.py").chmod(0o600)
    (other / "lib").chmod(0o700)
    assert pack(one, tmp_path / "a") == pack(other, tmp_path / "b")
    (other / "lib" / "a.py").write_text("this is lib/b.py")
    assert pack(one, tmp_path / "c") != pack(other, tmp_path / "d")


def test_both_unpack_to_what_was_packed(tmp_path: Path) -> None:
    zst, gz = pack(tree(tmp_path / "tree", ["bin/tool", "lib/a.py"]), tmp_path / "packed")
    plain = zstandard.ZstdDecompressor().stream_reader(zst).read()
    with tarfile.open(fileobj=io.BytesIO(plain)) as one, tarfile.open(fileobj=io.BytesIO(gz)) as other:
        assert [entry.get_info() for entry in one] == [entry.get_info() for entry in other]
        modes = {entry.name: (entry.type, entry.mode, entry.linkname) for entry in one}
        program, file, folder = (tarfile.REGTYPE, 0o755, ""), (tarfile.REGTYPE, 0o644, ""), (tarfile.DIRTYPE, 0o755, "")
        assert modes == {
            "python": folder,
            "python/bin": folder,
            "python/bin/link": (tarfile.SYMTYPE, 0o777, "tool"),
            "python/bin/tool": program,
            "python/bin/tool2": program,
            "python/lib": folder,
            "python/lib/a.py": file,
            "python/links": (tarfile.SYMTYPE, 0o777, "bin"),
        }
        assert {(each.uid, each.gid, each.uname, each.mtime) for each in one} == {(0, 0, "root", 1_700_000_000)}
    subprocess.run(["tar", "-xzf", tmp_path / "packed" / "a.tar.gz", "-C", tmp_path], check=True)
    assert (tmp_path / "python" / "bin" / "tool2").read_text() == "this is bin/tool"
    assert gz[4:8] == bytes(4) and not gz[3] & 8, "neither time nor name"
