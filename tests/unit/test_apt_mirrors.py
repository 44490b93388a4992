from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ftnumpy import apt_mirrors
from ftnumpy.apt_mirrors import DEFAULTS, mirrors, read_deb822, read_one_line

# conftest stands in for this function in the other tests.
ask_apt = apt_mirrors.ask_apt


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def urls(folder: Path, **config: str) -> list[str]:
    named = {key.replace("__", "::"): value for key, value in config.items()}
    return [place.url for place in mirrors({**DEFAULTS, "dir": str(folder), **named})]


def test_one_line_format():
    text = """
# deb http://commented.test/ x main
deb http://plain.test/debian trixie main contrib  # deb http://after.test/ y
deb [ arch=amd64 signed-by=/usr/share/keyrings/x.gpg ] http://spaced.test/debian trixie main
  deb [arch=amd64,arm64] http://tight.test/debian trixie main
deb-src\thttp://source.test/debian trixie main
debris http://not.test/ x main
"""
    hosts = ["plain", "spaced", "tight", "source"]
    assert list(read_one_line(text)) == [f"http://{host}.test/debian" for host in hosts]


def test_deb822_format():
    text = """# first
Types: deb deb-src
# URIs: http://commented.test/
uris: http://one.test/debian
  http://two.test/debian
# in between
\thttp://three.test/debian
Suites: trixie

Enabled: no
URIs: http://off.test/debian


Enabled: YES
URIs: http://four.test/debian http://five.test/debian
   \t
Types: deb
Enabled: false
URIs: http://off.test/too
"""
    hosts = ["one", "two", "three", "four", "five"]
    assert list(read_deb822(text)) == [f"http://{host}.test/debian" for host in hosts]


def test_files_in_apts_order_each_mirror_once_and_no_other_files(tmp_path):
    etc = tmp_path / "etc/apt"
    write(etc / "sources.list", "deb http://a.test/debian/ x main\ndeb http://a.test/debian y main\n")
    write(etc / "sources.list.d/20.list", "deb http://c.test/ x main\n")
    write(etc / "sources.list.d/10.sources", "URIs: http://b.test/\n")
    write(etc / "sources.list.d/30.list.save", "deb http://old.test/ x main\n")
    write(etc / "sources.list.d/40 copy.list", "deb http://copy.test/ x main\n")
    (etc / "sources.list.d/50.list").mkdir()
    assert urls(tmp_path) == ["http://a.test/debian", "http://b.test", "http://c.test"]


def test_dir_settings_are_followed(tmp_path):
    write(tmp_path / "own/apt/my.list", "deb http://a.test/ x main\n")
    write(tmp_path / "parts/b.list", "deb http://b.test/ x main\n")
    config = {"dir__etc": "own/apt", "dir__etc__sourcelist": "my.list", "dir__etc__sourceparts": f"{tmp_path}/parts"}
    assert urls(tmp_path, **config) == ["http://a.test", "http://b.test"]


def test_no_apt_has_no_mirrors(tmp_path):
    assert urls(tmp_path) == []


def test_local_mirrors_mirror_lists_and_media(tmp_path):
    write(tmp_path / "mirrors", "# ours\nhttp://m1.test/debian/\tpriority:1\n\nhttps://m2.test/debian\n")
    text = f"deb cdrom:[Debian 13 _Trixie_]/ trixie main\ndeb file:{tmp_path}/disk/ x main\n"
    write(tmp_path / "etc/apt/sources.list", f"{text}deb mirror+file://{tmp_path}/mirrors x main\n")
    assert urls(tmp_path) == [f"file://{tmp_path}/disk", "http://m1.test/debian", "https://m2.test/debian"]


def test_password_and_proxies(tmp_path):
    write(tmp_path / "etc/apt/sources.list", "deb http://me:pw@a.test/debian x main\n")

    def only(**config: str):
        (place,) = mirrors({**DEFAULTS, "dir": str(tmp_path), **config})
        return place

    place = only()
    assert (place.url, place.authorization) == ("http://a.test/debian", "Basic bWU6cHc=")
    assert place.route.proxies == {}
    proxied = only(**{"acquire::http::proxy": "http://p:1", "acquire::https::proxy": "DIRECT"})
    assert proxied.route.proxies == {"http": "http://p:1", "https": ""}


@pytest.fixture
def apt_config(tmp_path, monkeypatch):
    def install(script: str) -> None:
        tool = tmp_path / "bin/apt-config"
        write(tool, f"#!/bin/sh\n{script}\n")
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)

    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    return install


def test_apt_is_asked(apt_config):
    apt_config("""echo 'Dir "/elsewhere";'; echo 'Acquire "";'; echo 'APT::List:: "two words";'""")
    assert ask_apt() == {**DEFAULTS, "dir": "/elsewhere", "acquire": "", "apt::list::": "two words"}


@pytest.mark.parametrize("script", [None, "exit 1"])
def test_without_apt_config_the_defaults_hold(apt_config, script):
    if script:
        apt_config(script)
    assert ask_apt() == DEFAULTS
