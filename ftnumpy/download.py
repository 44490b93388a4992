"""Bytes from a URL into a file, with a progress bar, resume and retries.

Only the standard library: ``urllib`` honours the environment's proxies, ``ssl`` its ``SSL_CERT_FILE``.  What comes back
is not trusted here; ``ftnumpy.sources`` checks the hash.
"""

from __future__ import annotations

import base64
import http.client
import re
import ssl
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit

from ftnumpy import console

CONNECT_SECONDS = 10.0  # until the connection stands; TCP repeats a lost packet by itself within this time
SILENCE_SECONDS = 60.0  # between two pieces of an answer
BACK_OFF = (1.0, 3.0, 9.0)  # seconds before the second, third and fourth try
CHUNK = 256 * 1024  # bytes
TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504})  # HTTP answers after which another try makes sense

T = TypeVar("T")


class NotThere(Exception):
    """A place doesn't have the file, or can't be reached.  The message says why and holds no credentials."""


class Interrupted(Exception):
    """A transfer ended in a way that another try can mend."""


class _RangeRefused(Interrupted):
    """The server doesn't continue where our partial file ends."""


class _Unreachable(OSError):
    """No connection within `CONNECT_SECONDS`."""


@dataclass(frozen=True, kw_only=True)
class Route:
    """How to reach a server: proxies by URL scheme in place of the environment's (empty: none at all), a CA bundle
    (file or folder) besides the system's."""

    proxies: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Place:
    """A URL without user and password, and the ``Authorization`` header that these became."""

    url: str
    authorization: str | None = field(default=None, repr=False)
    route: Route

    @property
    def origin(self) -> tuple[str, str]:
        parts = urlsplit(self.url)
        return parts.scheme, parts.netloc

    def __truediv__(self, path: str) -> Place:
        """The place ``path`` under this one."""
        return replace(self, url=f"{self.url.rstrip('/')}/{path}")

    def __str__(self) -> str:
        """For the reader; a query is left out because it may hold a token."""
        return self.url.partition("?")[0]


@dataclass(frozen=True)
class Page:
    """A small document.  ``url`` is where it was found after redirections."""

    url: str
    content_type: str
    body: bytes


def read_place(url: str, route: Route) -> Place:
    """The place that ``url``, which may hold ``user:password@``, names.  Raises `NotThere` when it is no URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise NotThere("an address that is not a URL") from None
    user_info, _, host = parts.netloc.rpartition("@")
    bare = urlunsplit((parts.scheme, host, parts.path, parts.query, ""))
    if not user_info:
        return Place(url=bare, route=route)
    user, _, password = user_info.partition(":")
    token = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode("ascii")
    return Place(url=bare, authorization=f"Basic {token}", route=route)


def read_page(place: Place, accept: str) -> Page:
    """The document at ``place``.  Raises `NotThere`."""

    def attempt() -> Page:
        with _open(place, {"Accept": accept}) as response, _network(place):
            return Page(response.url, response.headers.get("Content-Type", ""), response.read())

    return _retried(place, attempt)


def download(place: Place, part: Path, size: int, description: str) -> bool:
    """Bring ``part`` to the bytes at ``place``, continuing a partial file when the server can.

    Stops when more than ``size`` bytes came.  Returns whether earlier bytes were continued, so that a wrong hash may be
    theirs.  Raises `NotThere` (``part`` keeps what came) and `OSError` when ``part`` can't be written.
    """
    continued = False

    def attempt() -> None:
        nonlocal continued
        continued = _download_once(place, part, size, description) or continued

    _retried(place, attempt)
    return continued


def _download_once(place: Place, part: Path, size: int, description: str) -> bool:
    have = part.stat().st_size if part.exists() else 0
    if have == size:
        return True
    if have > size:
        part.unlink()
        have = 0
    try:
        with _open(place, {"Range": f"bytes={have}-"} if have else {}) as response:
            continues = response.status == http.HTTPStatus.PARTIAL_CONTENT
            if continues and not re.match(rf"bytes {have}-", response.headers.get("Content-Range", "")):
                raise _RangeRefused("the server sent another part than the one asked for")
            if not continues:
                have = 0
            # What the server means to send; without a length only the pinned size tells a lost connection from the end.
            length = response.headers.get("Content-Length")
            end = have + int(length) if length and length.isdigit() else size
            resumed = have > 0
            with (
                part.open("ab" if continues else "wb") as sink,
                console.transfer(description, total=size, start=have) as progress,
            ):
                while have <= size:
                    with _network(place):
                        chunk = response.read(CHUNK)
                    if not chunk:
                        break
                    sink.write(chunk)
                    have += len(chunk)
                    progress.update(progress.task_ids[0], advance=len(chunk))
    except _RangeRefused:
        part.unlink()
        raise
    if have < min(end, size):
        raise Interrupted(f"the connection ended after {have} of {end} bytes")
    return resumed


def _retried(place: Place, attempt: Callable[[], T]) -> T:
    tries = 0
    while True:
        try:
            return attempt()
        except Interrupted as error:
            if tries == len(BACK_OFF):
                raise NotThere(f"{place}: {error}; tried {tries + 1} times") from None
            time.sleep(BACK_OFF[tries])
            tries += 1


def _open(place: Place, headers: Mapping[str, str]) -> Any:
    request_headers = {"User-Agent": "ftnumpy", **headers}
    with _network(place):
        request = urllib.request.Request(place.url, headers=request_headers)
        if place.authorization:
            # Not sent on to where the server redirects us.
            request.add_unredirected_header("Authorization", place.authorization)
        return _opener(place.route).open(request, timeout=SILENCE_SECONDS)


@contextmanager
def _network(place: Place) -> Iterator[None]:
    """Turn what the network does to us into `Interrupted` or `NotThere`, without quoting what could hold a secret."""
    try:
        yield
    except HTTPError as error:
        error.close()
        reason = f"HTTP {error.code} {http.client.responses.get(error.code, '')}".strip()
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise _RangeRefused(reason) from None
        if error.code in TEMPORARY:
            raise Interrupted(reason) from None
        raise NotThere(f"{place}: {reason}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, URLError) else error
        if _is_temporary(cause):
            raise Interrupted(_describe(cause)) from None
        raise NotThere(f"{place}: {_describe(cause)}") from None


def _is_temporary(cause: object) -> bool:
    if isinstance(cause, http.client.InvalidURL):
        return False
    lost = (TimeoutError, ConnectionResetError, ConnectionAbortedError, BrokenPipeError)
    return isinstance(cause, (*lost, http.client.HTTPException, ssl.SSLEOFError, ssl.SSLZeroReturnError))


def _describe(cause: object) -> str:
    if isinstance(cause, TimeoutError):
        return f"no bytes for {SILENCE_SECONDS:.0f} s"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({cause.verify_message})"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    if isinstance(cause, _Unreachable | http.client.RemoteDisconnected):
        return str(cause)
    return type(cause).__name__ if isinstance(cause, Exception) else "not a URL that can be fetched"


class _Connection(http.client.HTTPConnection):
    """Gives up on a silent host soon, but lets a connected server think."""

    def connect(self) -> None:
        patience, self.timeout = self.timeout, CONNECT_SECONDS
        try:
            super().connect()
        except TimeoutError:
            raise _Unreachable(f"no connection within {CONNECT_SECONDS:.0f} s") from None
        self.sock.settimeout(patience)


class _SecureConnection(_Connection, http.client.HTTPSConnection):
    pass


class _Handler(urllib.request.HTTPHandler):
    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, request)


class _SecureHandler(urllib.request.HTTPSHandler):
    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self.context = context

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_SecureConnection, request, context=self.context)


def _opener(route: Route) -> urllib.request.OpenerDirector:
    context = ssl.create_default_context()
    if route.ca is not None:
        kind = "capath" if route.ca.is_dir() else "cafile"
        try:
            context.load_verify_locations(**{kind: str(route.ca)})
        except OSError as error:
            raise NotThere(f"the CA bundle {route.ca} can't be used: {error.strerror}") from None
    proxies = {**urllib.request.getproxies(), **route.proxies}
    given = urllib.request.ProxyHandler({scheme: proxy for scheme, proxy in proxies.items() if proxy})
    return urllib.request.build_opener(given, _Handler(), _SecureHandler(context))
