"""The package index that pip on this machine is configured with, read by the Simple API."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import url2pathname

from packaging.utils import canonicalize_name

from ftnumpy.download import NotThere, Page, Place, Route, read_page, read_place

JSON_TYPE = "application/vnd.pypi.simple.v1+json"
ACCEPT = f"{JSON_TYPE}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"

# Run by an interpreter that has pip, or at least the wheel from which ensurepip would install it.  pip itself merges
# its files, its environment variables and its defaults, so that we hold no copy of any of these.
QUESTION = """
import glob, json, os, sys, sysconfig
try:
    import pip
except ImportError:
    import ensurepip
    folders = [os.path.join(os.path.dirname(ensurepip.__file__), "_bundled"), sysconfig.get_config_var("WHEEL_PKG_DIR")]
    sys.path[:0] = [wheel for folder in folders if folder for wheel in glob.glob(os.path.join(folder, "pip-*.whl"))]
from pip._internal.commands import create_command
options = create_command("install").parser.get_default_values()
bundle = options.cert or os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
print(json.dumps({
    "indexes": [] if options.no_index else [options.index_url, *options.extra_index_urls],
    "find_links": options.find_links,
    "proxy": options.proxy,
    "bundle": bundle,
}))
"""


@dataclass(frozen=True, kw_only=True)
class PipConfig:
    """Where pip looks: URLs or paths, as they stand in its configuration and perhaps with passwords."""

    indexes: tuple[str, ...] = field(repr=False)
    find_links: tuple[str, ...] = field(repr=False)
    route: Route


def ask_pip() -> PipConfig:
    """pip's configuration, from this interpreter's pip or else from that of a Python on ``PATH``.

    Raises `NotThere` when there is no pip at all.
    """
    pythons = [sys.executable, *filter(None, map(shutil.which, ("python3", "python")))]
    for python in dict.fromkeys(pythons):
        try:
            answer = subprocess.run([python, "-c", QUESTION], capture_output=True, text=True, timeout=60)
            data = json.loads(answer.stdout) if answer.returncode == 0 else None
        except (OSError, ValueError, subprocess.TimeoutExpired):
            continue
        if data is not None:
            proxy = data["proxy"]
            return PipConfig(
                indexes=tuple(data["indexes"]),
                find_links=tuple(data["find_links"]),
                route=Route(
                    proxies={"http": proxy, "https": proxy} if proxy else {},
                    ca=Path(data["bundle"]) if data["bundle"] else None,
                ),
            )
    raise NotThere(f"no pip to ask for its index (looked in {', '.join(dict.fromkeys(pythons))})")


def find(project: str, archive: str, config: PipConfig, note: Callable[[str], None]) -> Iterator[Place]:
    """The places of ``archive``, looked for as they are asked for; ``note`` is told of each page without it."""
    pages = [_place(link, config.route) for link in config.find_links]
    for index in config.indexes:
        pages.append(_place(index, config.route) / f"{canonicalize_name(project)}/")
    for page in pages:
        try:
            found = [link for link in _links(page) if _file_name(link) == archive]
        except NotThere as error:
            note(str(error))
            continue
        if not found:
            note(f"{page} does not list {archive}")
        for link in found:
            place = read_place(link, config.route)
            if place.authorization is None and place.origin == page.origin:
                place = replace(place, authorization=page.authorization)
            yield place


def _place(address: str, route: Route) -> Place:
    """pip takes a path wherever it takes a URL."""
    is_url = re.match(r"[a-z][a-z0-9+.-]*:", address, flags=re.IGNORECASE)
    return read_place(address if is_url else Path(address).expanduser().absolute().as_uri(), route)


def _links(place: Place) -> list[str]:
    """The absolute URLs on the page at ``place``, or of the files in the folder that it is.  Raises `NotThere`."""
    parts = urlsplit(place.url)
    if parts.scheme == "file":
        folder = Path(url2pathname(parts.path))
        if folder.is_dir():
            if not (folder / "index.html").is_file():
                return _files_in(folder)
            place = replace(place, url=(folder / "index.html").as_uri())
    page = read_page(place, ACCEPT)
    try:
        return _json_links(page) if page.content_type.partition(";")[0].strip() == JSON_TYPE else _html_links(page)
    except (ValueError, KeyError, TypeError):
        raise NotThere(f"{place}: not a page of the Simple API") from None


def _files_in(folder: Path) -> list[str]:
    try:
        return [file.as_uri() for file in sorted(folder.iterdir())]
    except OSError as error:
        raise NotThere(f"{folder}: {error.strerror}") from None


def _json_links(page: Page) -> list[str]:
    return [urljoin(page.url, file["url"]) for file in json.loads(page.body)["files"]]


def _html_links(page: Page) -> list[str]:
    parser = _Anchors(page.url)
    parser.feed(page.body.decode("utf-8", errors="replace"))
    return parser.links


class _Anchors(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__()
        self.base = base
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if href and tag == "base":
            self.base = urljoin(self.base, href)
        elif href and tag == "a":
            self.links.append(urljoin(self.base, href))


def _file_name(url: str) -> str:
    return unquote(urlsplit(url).path.rpartition("/")[2])
