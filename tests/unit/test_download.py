from __future__ import annotations

import socket
import time

import pytest
from conftest import BODY, Answer

from ftnumpy import download
from ftnumpy.download import NotThere, Route, read_page, read_place


def get(url: str, **route: object) -> bytes:
    return read_page(read_place(url, Route(**route)), "*/*").body


@pytest.mark.parametrize("status", [500, 503, 429])
def test_temporary_answers_are_tried_again(server, status):
    server.answers["/x"] = [Answer(b"", status), Answer(b"", status), Answer(b"yes")]
    assert get(f"{server.url}/x") == b"yes"
    assert len(server.requests) == 3


def test_back_off_grows_and_ends(server, monkeypatch):
    pauses: list[float] = []
    monkeypatch.setattr(download, "BACK_OFF", (1.0, 3.0, 9.0))
    monkeypatch.setattr(time, "sleep", pauses.append)
    server.answers["/x"] = [Answer(b"", 503)]
    with pytest.raises(NotThere, match="HTTP 503 Service Unavailable; tried 4 times"):
        get(f"{server.url}/x")
    assert [pause for pause in pauses if pause] == [1.0, 3.0, 9.0]  # the server sleeps 0 s


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_final_answers_are_not_tried_again(server, status):
    server.answers["/x"] = [Answer(b"", status)]
    with pytest.raises(NotThere, match=f"HTTP {status}"):
        get(f"{server.url}/x")
    assert len(server.requests) == 1


def test_refused_connection_is_not_tried_again(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("waited"))
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    with pytest.raises(NotThere, match="Connection refused"):
        get(f"http://127.0.0.1:{port}/x")


def test_host_that_does_not_answer_is_given_up_without_another_try(monkeypatch):
    monkeypatch.setattr(download, "CONNECT_SECONDS", 0.2)
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("waited"))
    with socket.socket() as sock, socket.socket() as first:
        sock.bind(("127.0.0.1", 0))
        sock.listen(0)
        first.connect(sock.getsockname())  # fills the queue, so that the next one hangs
        start = time.monotonic()
        with pytest.raises(NotThere, match="no connection within"):
            get(f"http://127.0.0.1:{sock.getsockname()[1]}/x")
        assert time.monotonic() - start < 5


def test_silent_server_is_tried_again(monkeypatch):
    monkeypatch.setattr(download, "SILENCE_SECONDS", 0.1)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(10)
        with pytest.raises(NotThere, match="no bytes for 0 s; tried 4 times"):
            get(f"http://127.0.0.1:{sock.getsockname()[1]}/x")


def test_connected_server_may_think_longer_than_a_connection_may_take(server, monkeypatch):
    monkeypatch.setattr(download, "CONNECT_SECONDS", 0.2)
    server.answers["/x"] = [Answer(b"yes", pause=0.5)]
    assert get(f"{server.url}/x") == b"yes"
    assert len(server.requests) == 1


def test_password_goes_to_its_server_and_nowhere_else(server):
    server.answers["/x"] = [Answer(b"", 302, {"Location": "/y"})]
    server.answers["/y"] = [Answer(b"", 404)]
    place = read_place(server.url.replace("//", "//me:s%40cret@") + "/x?token=s@cret", Route())
    server.answers["/x?token=s@cret"] = server.answers["/x"]
    with pytest.raises(NotThere) as caught:
        read_page(place, "*/*")
    first, second = (headers.get("Authorization") for _, headers in server.requests)
    assert first == "Basic bWU6c0BjcmV0"
    assert second is None
    assert "cret" not in str(caught.value) + str(place)
    assert "bWU6c0BjcmV0" not in repr(place)


def test_proxy_of_the_route_and_of_the_environment(server, monkeypatch):
    server.answers["http://elsewhere.invalid/x"] = [Answer(b"proxied")]
    assert get("http://elsewhere.invalid/x", proxies={"http": server.url}) == b"proxied"
    monkeypatch.setenv("http_proxy", server.url)
    assert get("http://elsewhere.invalid/x") == b"proxied"
    with pytest.raises(NotThere):
        get("http://elsewhere.invalid/x", proxies={"http": ""})


def test_file_url(tmp_path):
    (tmp_path / "x").write_bytes(BODY)
    assert get((tmp_path / "x").as_uri()) == BODY
    with pytest.raises(NotThere, match="No such file"):
        get((tmp_path / "y").as_uri())


@pytest.mark.parametrize("url", ["gopher://h/x", "no url", "http://[bad/x", "http://h:port/x"])
def test_what_is_no_url_is_a_reason(url):
    with pytest.raises(NotThere):
        get(url)


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_unusable_ca_bundle_is_named(tmp_path, text):
    bundle = tmp_path / "bundle.pem"
    if text is not None:
        bundle.write_text(text)
    with pytest.raises(NotThere, match=f"the CA bundle {bundle}"):
        get("https://127.0.0.1:1/x", ca=bundle)
