"""The mirrors that apt on this machine is configured with.  Only reads; needs no root and works without apt's tools."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from ftnumpy.download import Place, Route, read_place

# apt's own defaults, for a machine with apt's files but without apt-config.
DEFAULTS = {
    "dir": "/",
    "dir::etc": "etc/apt",
    "dir::etc::sourcelist": "sources.list",
    "dir::etc::sourceparts": "sources.list.d",
}
NO = frozenset({"no", "false", "without", "off", "disable", "0"})  # what apt takes for "no"


def ask_apt() -> dict[str, str]:
    """apt's configuration, its keys in lower case, over `DEFAULTS`."""
    try:
        answer = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return dict(DEFAULTS)
    entries = re.findall(r'^(\S+) "(.*)";$', answer.stdout, flags=re.MULTILINE)
    return DEFAULTS | {key.lower(): value for key, value in entries}


def mirrors(config: Mapping[str, str]) -> tuple[Place, ...]:
    """The base addresses, each once, in the order in which apt reads them."""
    etc = Path(config["dir"]) / config["dir::etc"]
    files = [etc / config["dir::etc::sourcelist"]]
    with suppress(OSError):
        files += sorted((etc / config["dir::etc::sourceparts"]).iterdir())
    addresses: dict[str, None] = {}
    for file in files:
        # apt overlooks all other names, such as those that an upgrade or an editor leaves behind.
        if not re.fullmatch(r"[\w.-]+\.(list|sources)", file.name, flags=re.ASCII):
            continue
        with suppress(OSError):
            text = file.read_text(encoding="utf-8", errors="replace")
            read = read_deb822 if file.suffix == ".sources" else read_one_line
            addresses |= dict.fromkeys(address for uri in read(text) for address in _addresses(uri))
    route = Route(proxies=_proxies(config))
    return tuple(read_place(address, route) for address in addresses)


def _proxies(config: Mapping[str, str]) -> dict[str, str]:
    """By URL scheme; apt's https takes the proxy of its http unless it has its own."""
    http = config.get("acquire::http::proxy")
    proxies = {"http": http, "https": config.get("acquire::https::proxy") or http}
    return {scheme: "" if proxy == "DIRECT" else proxy for scheme, proxy in proxies.items() if proxy}


def read_one_line(text: str) -> Iterator[str]:
    """The URIs of a ``.list`` file: ``deb [options] URI suite components``, one source a line."""
    for line in text.splitlines():
        match = re.match(r"\s*deb(?:-src)?\s+(?:\[[^]]*\]\s*)?(\S+)\s", line.partition("#")[0] + " ")
        if match:
            yield match[1]


def read_deb822(text: str) -> Iterator[str]:
    """The URIs of a ``.sources`` file: stanzas of ``Field: value``, continued on indented lines."""
    lines = "\n".join(line.rstrip() for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\n+", lines):
        joined = re.sub(r"\n[ \t]+", " ", stanza)
        fields = {key.strip().lower(): value for key, _, value in (line.partition(":") for line in joined.splitlines())}
        if fields.get("enabled", "yes").strip().lower() not in NO:
            yield from fields.get("uris", "").split()


def _addresses(uri: str) -> Iterator[str]:
    """What ``uri`` means to a reader of URLs; nothing for media that we can't read, such as ``cdrom:``."""
    if uri.startswith("mirror+file:"):
        # A file of mirrors, one a line, each perhaps with options after a tab.
        with suppress(OSError):
            listing = Path("/" + uri.removeprefix("mirror+file:").lstrip("/")).read_text(encoding="utf-8")
            for line in listing.splitlines():
                if line.split() and not line.startswith("#"):
                    yield from _addresses(line.split()[0])
    elif uri.startswith(("file:", "copy:")):
        yield "file:///" + uri.partition(":")[2].strip("/")
    elif uri.startswith(("http://", "https://")):
        yield uri.rstrip("/")
