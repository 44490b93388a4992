"""The list of interpreters that uv reads instead of its own: ours, described as uv describes those."""

from __future__ import annotations

import json
import time
from urllib.parse import quote

from ftnumpy.wheels.archive import Contents

NAME = "downloads.json"


def listing(contents: Contents, version: str, sha256: str, base: str) -> bytes:
    """The list of one interpreter: the ``.tar.gz`` of ``contents``, which has that ``sha256`` and lies below ``base``.

    ``base`` is an absolute URL: uv takes no relative ones.  Tried with uv 0.13.
    """
    major, minor, patch = version.split(".")
    key = f"cpython-{version}+freethreaded-linux-{contents.machine}-gnu"
    entry = {
        "name": "cpython",
        "arch": {"family": contents.machine, "variant": None},
        "os": "linux",
        "libc": "gnu",
        "major": int(major),
        "minor": int(minor),
        "patch": int(patch),
        "prerelease": "",
        "url": f"{base.rstrip('/')}/{quote(contents.base)}.tar.gz",
        "sha256": sha256,
        "variant": "freethreaded",
        "build": time.strftime("%Y%m%d", time.gmtime(contents.epoch)),
    }
    return (json.dumps({key: entry}, indent=1) + "\n").encode()
