from __future__ import annotations

import json
import sys

import pytest
from conftest import Answer

from ftnumpy import pip_index
from ftnumpy.download import NotThere, Route
from ftnumpy.pip_index import JSON_TYPE, PipConfig, find

ARCHIVE = "my_pkg-1.0.tar.gz"
# conftest stands in for this function in the other tests.
ask_pip = pip_index.ask_pip


def looked_up(*indexes: str, links: tuple[str, ...] = ()) -> tuple[list[str], list[str]]:
    """The URLs that were found, and the notes of why not."""
    notes: list[str] = []
    config = PipConfig(indexes=indexes, find_links=links, route=Route())
    return [place.url for place in find("My_Pkg", ARCHIVE, config, notes.append)], notes


def test_html_page(server):
    body = f"""<!DOCTYPE html><html><body>
      <a href="../../files/{ARCHIVE}.asc">sig</a> <a href="../../files/other-{ARCHIVE}">other</a>
      <A HREF="../../files/{ARCHIVE}#sha256=00" data-requires-python="&gt;=3">x</A><a name="none">y</a>"""
    server.answers["/simple/my-pkg/"] = [Answer(body.encode(), headers={"Content-Type": "text/html"})]
    assert looked_up(f"{server.url}/simple/") == ([f"{server.url}/files/{ARCHIVE}"], [])
    assert JSON_TYPE in server.requests[0][1]["Accept"]
    assert "text/html" in server.requests[0][1]["Accept"]


def test_html_base(server):
    body = f'<base href="http://files.test/a/"><a href="{ARCHIVE}">x</a>'
    server.answers["/simple/my-pkg/"] = [Answer(body.encode())]
    assert looked_up(f"{server.url}/simple")[0] == [f"http://files.test/a/{ARCHIVE}"]


def test_json_page_and_redirection(server):
    files = [{"filename": name, "url": f"../f/{name}"} for name in ("my_pkg-0.9.tar.gz", ARCHIVE)]
    page = Answer(json.dumps({"files": files}).encode(), headers={"Content-Type": f"{JSON_TYPE}; charset=utf-8"})
    server.answers["/moved/my-pkg/"] = [page]
    server.answers["/simple/my-pkg/"] = [Answer(b"", 301, {"Location": "/moved/my-pkg/"})]
    assert looked_up(f"{server.url}/simple")[0] == [f"{server.url}/moved/f/{ARCHIVE}"]


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"files": [{}]}', b"[1]"])
def test_page_that_says_it_is_json_and_is_not(server, body):
    server.answers["/simple/my-pkg/"] = [Answer(body, headers={"Content-Type": JSON_TYPE})]
    found, notes = looked_up(f"{server.url}/simple")
    assert found == []
    assert notes == [f"{server.url}/simple/my-pkg/: not a page of the Simple API"]


def test_next_index_is_asked_and_each_refusal_noted(server):
    server.answers["/empty/my-pkg/"] = [Answer(b"<html></html>")]
    server.answers["/extra/my-pkg/"] = [Answer(f'<a href="{ARCHIVE}">x</a>'.encode())]
    found, notes = looked_up(f"{server.url}/none", f"{server.url}/empty", f"{server.url}/extra")
    assert found == [f"{server.url}/extra/my-pkg/{ARCHIVE}"]
    assert notes == [
        f"{server.url}/none/my-pkg/: HTTP 404 Not Found",
        f"{server.url}/empty/my-pkg/ does not list {ARCHIVE}",
    ]


@pytest.mark.parametrize("as_url", [True, False])
def test_index_in_a_folder(tmp_path, as_url):
    page = tmp_path / "simple/my-pkg/index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<a href="../../files/{ARCHIVE}">x</a>')
    index = tmp_path / "simple"
    found = looked_up(index.as_uri() if as_url else str(index))[0]
    assert found == [f"{tmp_path.as_uri()}/files/{ARCHIVE}"]


def test_find_links_take_a_folder_and_a_page(server, tmp_path):
    (tmp_path / ARCHIVE).touch()
    server.answers["/links.html"] = [Answer(f'<a href="/f/{ARCHIVE}">x</a>'.encode())]
    found, notes = looked_up(links=(str(tmp_path), str(tmp_path / "none"), f"{server.url}/links.html"))
    assert found == [f"{tmp_path.as_uri()}/{ARCHIVE}", f"{server.url}/f/{ARCHIVE}"]
    assert len(notes) == 1
    assert "No such file" in notes[0]


def test_password_of_the_index_goes_to_its_own_host_only(server):
    body = f'<a href="/f/{ARCHIVE}">x</a><a href="http://cdn.test/{ARCHIVE}">x</a>'
    server.answers["/simple/my-pkg/"] = [Answer(body.encode())]
    index = server.url.replace("//", "//me:pw@") + "/simple"
    config = PipConfig(indexes=(index,), find_links=(), route=Route())
    own, cdn = find("My_Pkg", ARCHIVE, config, pytest.fail)
    assert server.requests[0][1]["Authorization"] == own.authorization == "Basic bWU6cHc="
    assert cdn.authorization is None
    assert "pw" not in repr(own) + repr(config)


def test_pip_is_asked_for_its_configuration(tmp_path, monkeypatch):
    for name in ("PIP_CERT", "PIP_FIND_LINKS", "PIP_NO_INDEX", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = http://a.test/simple\nextra-index-url =\n  http://b.test\n  http://c.test\n"
        "find-links = /links\nproxy = http://p:1\ncert = /bundle.pem\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    config = ask_pip()
    assert config.indexes[0] == "http://a.test/simple"
    assert {"http://b.test", "http://c.test"} <= set(config.indexes)
    assert config.find_links == ("/links",)
    assert config.route.proxies == {"http": "http://p:1", "https": "http://p:1"}
    assert str(config.route.ca) == "/bundle.pem"
    monkeypatch.setenv("PIP_INDEX_URL", "http://env.test/simple")
    assert ask_pip().indexes[0] == "http://env.test/simple"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert ask_pip().indexes == ()


def test_pip_knows_the_default_index(monkeypatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")  # pip then reads no configuration file
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    (index,) = ask_pip().indexes
    assert index.startswith("https://")


def test_interpreter_without_pip_is_passed_over(tmp_path, monkeypatch):
    real = sys.executable
    bare = tmp_path / "bare"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotThere, match="no pip"):
        ask_pip()
    other = tmp_path / "python3"
    other.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
    other.chmod(0o755)
    assert isinstance(ask_pip(), PipConfig)


def test_wheel_of_ensurepip_stands_in_for_a_missing_pip(tmp_path, monkeypatch):
    pytest.importorskip("ensurepip", reason="this Python comes without ensurepip")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')  # -S: no site-packages, hence no pip
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("PATH", "/usr/bin/none")
    assert isinstance(ask_pip(), PipConfig)
