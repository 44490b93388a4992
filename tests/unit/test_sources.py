from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BODY, Answer

from ftnumpy import apt_mirrors, download, locks, pip_index, sources
from ftnumpy.download import NotThere, Route
from ftnumpy.errors import ArchiveNotFound, HashMismatch, SourceError
from ftnumpy.settings import ROOT, Settings
from ftnumpy.stack import CHANNELS, Project, Queue, Release

OTHER = BODY[:-1] + bytes([BODY[-1] ^ 1])


def put(file: Path, content: bytes = BODY) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def left(settings: Settings) -> set[str]:
    """The names in the cache's archive folder, but for the locks."""
    return {file.name for file in settings.archives.iterdir() if file.suffix != ".lock"}


def project(*releases: Release) -> Project:
    queue = Queue(project="pkg", folder=Path("none"))
    return Project(name="pkg", releases=releases, queue=queue, requires=(), options=(), profiles={}, builds={})


def test_url_gives_the_archive_and_the_cache_gives_it_again(server, release, settings):
    server.answers["/official"] = [Answer()]
    first = sources.fetch(release, CHANNELS, settings)
    again = sources.fetch(release, CHANNELS, settings)
    assert (first.channel, again.channel) == ("url", "cache")
    assert first.path == again.path == settings.archives / release.archive
    assert first.path.read_bytes() == BODY
    assert len(server.requests) == 1
    assert left(settings) == {release.archive}


def test_channels_are_tried_in_the_declared_order_and_no_others(server, release, settings):
    server.answers["/official"] = [Answer()]
    with pytest.raises(ArchiveNotFound) as caught:
        sources.fetch(release, ["cache", "folder"], settings)
    assert [channel for channel, _ in caught.value.reasons] == ["cache", "folder"]
    assert server.requests == []


@pytest.mark.parametrize("name", ["Pkg-1.0.tar.xz", "pkg_1.0.orig.tar.xz"])
def test_folder_is_taken_under_either_name(server, release, settings, tmp_path, name):
    put(tmp_path / "mine" / name)
    source = sources.fetch(release, CHANNELS, dataclasses.replace(settings, sources=tmp_path / "mine"))
    assert source.channel == "folder"
    assert source.path.read_bytes() == BODY
    assert server.requests == []
    assert left(settings) == {release.archive}


def test_wrong_bytes_in_the_folder_are_an_error_and_the_users_file_is_left_alone(server, release, settings, tmp_path):
    server.answers["/official"] = [Answer()]
    file = put(tmp_path / "mine" / release.archive, OTHER)
    with pytest.raises(HashMismatch) as caught:
        sources.fetch(release, CHANNELS, dataclasses.replace(settings, sources=tmp_path / "mine"))
    assert caught.value.channel == "folder"
    assert str(file) in str(caught.value)
    assert file.read_bytes() == OTHER
    assert left(settings) == set()
    assert server.requests == []


def test_damaged_cache_is_repaired_from_another_channel(server, release, settings, capsys):
    server.answers["/official"] = [Answer()]
    put(settings.archives / release.archive, OTHER)
    source = sources.fetch(release, CHANNELS, settings)
    assert source.channel == "url"
    assert source.path.read_bytes() == BODY
    assert "removed and is fetched anew" in capsys.readouterr().err


def test_damaged_cache_without_another_channel_is_removed_and_said(release, settings):
    file = put(settings.archives / release.archive, OTHER)
    with pytest.raises(ArchiveNotFound, match="was damaged and has been removed"):
        sources.fetch(release, ["cache", "folder"], settings)
    assert not file.exists()


def test_wrong_hash_names_everything_and_leaves_no_file(server, release, settings):
    server.answers["/official"] = [Answer(OTHER)]
    with pytest.raises(HashMismatch) as caught:
        sources.fetch(release, CHANNELS, settings)
    message = str(caught.value)
    for part in (release.archive, "url", release.url, release.sha256, hashlib.sha256(OTHER).hexdigest()):
        assert part in message
    assert left(settings) == set()


def test_too_short_a_file_is_a_wrong_file_not_a_lost_connection(server, release, settings):
    server.answers["/official"] = [Answer(BODY[:1000])]
    with pytest.raises(HashMismatch):
        sources.fetch(release, CHANNELS, settings)
    assert len(server.requests) == 1


def test_more_bytes_than_pinned_are_not_read_to_the_end(server, release, settings, monkeypatch):
    sizes: list[int] = []
    monkeypatch.setattr(sources, "_sha256", lambda file: sizes.append(file.stat().st_size) or "")
    server.answers["/official"] = [Answer(BODY * 40, headers={"Content-Length": str(10**12)})]
    with pytest.raises(HashMismatch, match="more than the pinned 600000 bytes"):
        sources.fetch(release, CHANNELS, settings)
    assert release.size < sizes[0] <= release.size + download.CHUNK
    assert left(settings) == set()


def test_kept_part_is_continued_with_a_range(server, release, settings):
    server.answers["/official"] = [Answer()]
    put(settings.archives / f"{release.archive}.part", BODY[:250_000])
    assert sources.fetch(release, CHANNELS, settings).path.read_bytes() == BODY
    assert server.ranges() == ["bytes=250000-"]


def test_lost_connection_is_continued_where_it_ended(server, release, settings):
    server.answers["/official"] = [Answer(cut=400_000), Answer()]
    assert sources.fetch(release, CHANNELS, settings).path.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=400000-"]


def test_part_survives_a_run_that_gives_up(server, release, settings):
    server.answers["/official"] = [Answer(cut=400_000, ranges=False)]
    with pytest.raises(ArchiveNotFound, match="tried 4 times"):
        sources.fetch(release, CHANNELS, settings)
    assert (settings.archives / f"{release.archive}.part").read_bytes() == BODY[:400_000]
    assert len(server.requests) == 4


def test_server_without_ranges_starts_over(server, release, settings):
    server.answers["/official"] = [Answer(ranges=False)]
    put(settings.archives / f"{release.archive}.part", OTHER[:10])
    assert sources.fetch(release, CHANNELS, settings).path.read_bytes() == BODY


@pytest.mark.parametrize("refusal", [Answer(b"", 416), Answer(shift=7)], ids=["416", "other range"])
def test_refused_range_starts_over(server, release, settings, refusal):
    server.answers["/official"] = [refusal, Answer()]
    put(settings.archives / f"{release.archive}.part", BODY[:10])
    assert sources.fetch(release, CHANNELS, settings).path.read_bytes() == BODY
    assert server.ranges() == ["bytes=10-", None]


@pytest.mark.parametrize("part", [OTHER[-10:], OTHER, OTHER * 2], ids=["short", "whole", "too long"])
def test_wrong_part_is_dropped_and_fetched_once_from_zero(server, release, settings, part):
    server.answers["/official"] = [Answer()]
    put(settings.archives / f"{release.archive}.part", part)
    assert sources.fetch(release, CHANNELS, settings).path.read_bytes() == BODY
    assert server.ranges() == (["bytes=10-", None] if len(part) == 10 else [None])


def test_wrong_part_and_wrong_server_end_in_an_error(server, release, settings):
    server.answers["/official"] = [Answer(OTHER)]
    put(settings.archives / f"{release.archive}.part", b"x" * 10)
    with pytest.raises(HashMismatch):
        sources.fetch(release, CHANNELS, settings)
    assert server.ranges() == ["bytes=10-", None]
    assert left(settings) == set()


def test_apt_continues_what_url_began(server, release, settings, tmp_path):
    server.answers["/official"] = [Answer(cut=200_000), Answer(b"", 404)]
    server.answers["/debian/pool/pkg_1.0.orig.tar.xz"] = [Answer()]
    put(tmp_path / "etc/apt/sources.list", f"deb {server.url}/debian/ trixie main\n".encode())
    source = sources.fetch(release, CHANNELS, settings)
    assert source.channel == "apt"
    assert source.path == settings.archives / release.archive
    assert source.path.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=200000-", "bytes=200000-"]


def test_a_mirror_without_the_file_is_not_the_end_of_apt(server, release, settings, tmp_path):
    server.answers["/second/pool/pkg_1.0.orig.tar.xz"] = [Answer()]
    text = f"Types: deb\nURIs: {server.url}/first {server.url}/second\nSuites: trixie\n"
    put(tmp_path / "etc/apt/sources.list.d/x.sources", text.encode())
    assert sources.fetch(release, ["apt"], settings).channel == "apt"


def test_index_is_the_last_resort(server, release, settings, monkeypatch):
    server.answers["/simple/my-pkg/"] = [Answer(b'<a href="../../files/Pkg-1.0.tar.xz#sha256=0">x</a>')]
    server.answers["/files/Pkg-1.0.tar.xz"] = [Answer()]
    config = pip_index.PipConfig(indexes=(f"{server.url}/simple",), find_links=(), route=Route())
    monkeypatch.setattr(pip_index, "ask_pip", lambda: config)
    assert sources.fetch(release, CHANNELS, settings).channel == "index"
    assert [path for path, _ in server.requests] == ["/official", "/simple/my-pkg/", "/files/Pkg-1.0.tar.xz"]


def test_offline_uses_cache_and_folder_and_makes_no_connection(server, release, settings, tmp_path, monkeypatch):
    server.answers["/official"] = [Answer()]
    offline = dataclasses.replace(settings, offline=True, sources=tmp_path / "mine")

    def asked() -> None:
        raise AssertionError("asked for a network channel")

    monkeypatch.setattr(apt_mirrors, "ask_apt", asked)
    monkeypatch.setattr(pip_index, "ask_pip", asked)
    with pytest.raises(ArchiveNotFound) as caught:
        sources.fetch(release, CHANNELS, offline)
    assert str(caught.value).count("FTNUMPY_OFFLINE is set") == 3
    put(tmp_path / "mine" / release.archive)
    assert sources.fetch(release, CHANNELS, offline).channel == "folder"
    assert sources.fetch(release, CHANNELS, offline).channel == "cache"
    assert server.requests == []


def test_no_channel_says_why_for_each_and_what_to_do_by_hand(server, release, settings):
    with pytest.raises(ArchiveNotFound) as caught:
        sources.fetch(release, CHANNELS, settings)
    message = str(caught.value)
    assert [channel for channel, _ in caught.value.reasons] == ["cache", "folder", "url", "apt"]
    for part in ("does not exist", "FTNUMPY_SOURCES is not set", "HTTP 404", "apt is not configured with a mirror"):
        assert part in message
    assert f"put {release.archive} (sha256 {release.sha256}) into {settings.archives}" in message
    assert caught.value.exit_code == 3


def test_a_channel_that_stack_toml_gives_no_address_for_says_so(release, settings):
    bare = dataclasses.replace(release, url=None, apt_pool=None, index_project=None)
    with pytest.raises(ArchiveNotFound) as caught:
        sources.fetch(bare, CHANNELS, settings)
    assert [why for _, why in caught.value.reasons[2:]] == [
        f"stack.toml gives no {key}" for key in ("url", "apt-pool", "index-project")
    ]


def test_fallback_is_loud_and_recorded(server, release, settings, capsys):
    server.answers["/older"] = [Answer()]
    older = dataclasses.replace(release, version="0.9", archive="Pkg-0.9.tar.xz", url=f"{server.url}/older")
    source = sources.fetch_first(project(release, older), CHANNELS, settings)
    assert source.release is older
    assert source.path.name == "Pkg-0.9.tar.xz"
    warning = capsys.readouterr().err
    assert "USING THE FALLBACK RELEASE pkg 0.9" in warning
    assert "no channel has Pkg-1.0.tar.xz" in warning


def test_pinned_release_is_used_in_silence(server, release, settings, capsys):
    server.answers["/official"] = [Answer()]
    older = dataclasses.replace(release, version="0.9", archive="Pkg-0.9.tar.xz")
    assert sources.fetch_first(project(release, older), CHANNELS, settings).release is release
    assert capsys.readouterr().err == ""


def test_no_release_at_all_lists_every_one(server, release, settings):
    older = dataclasses.replace(release, version="0.9", archive="Pkg-0.9.tar.xz")
    with pytest.raises(SourceError) as caught:
        sources.fetch_first(project(release, older), CHANNELS, settings)
    for archive in ("Pkg-1.0.tar.xz", "Pkg-0.9.tar.xz"):
        assert f"put {archive}" in str(caught.value)


def test_wrong_hash_does_not_lead_to_the_fallback(server, release, settings):
    server.answers["/official"] = [Answer(OTHER)]
    server.answers["/older"] = [Answer()]
    older = dataclasses.replace(release, version="0.9", archive="Pkg-0.9.tar.xz", url=f"{server.url}/older")
    with pytest.raises(HashMismatch):
        sources.fetch_first(project(release, older), CHANNELS, settings)


def test_two_runs_at_once_download_once(server, release, settings):
    server.answers["/official"] = [Answer()]
    program = """
import json, os, sys
from ftnumpy import settings, sources, stack
data = json.loads(sys.argv[1])
source = sources.fetch(stack.Release(**data), ["cache", "url"], settings.read_settings(os.environ))
print(source.channel)
"""
    argv = [sys.executable, "-c", program, json.dumps(dataclasses.asdict(release))]
    settings.archives.mkdir(parents=True)
    env = {**os.environ, "FTNUMPY_CACHE": str(settings.cache), "PYTHONPATH": str(ROOT)}
    with locks.held(settings.archives / f"{release.archive}.lock", "not here"):
        runs = [subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        lines = [run.stdout.readline() for run in runs]
        assert all("waiting for another run" in line for line in lines)
    channels = sorted(run.communicate(timeout=30)[0].splitlines()[-1] for run in runs)
    assert channels == ["cache", "url"]
    assert len(server.requests) == 1


def test_full_disk_names_the_path(server, release, settings):
    server.answers["/official"] = [Answer()]
    settings.archives.mkdir(parents=True)
    (settings.archives / f"{release.archive}.part").symlink_to("/dev/full")
    with pytest.raises(SourceError, match="No space left on device") as caught:
        sources.fetch(release, CHANNELS, settings)
    assert not isinstance(caught.value, ArchiveNotFound)
    assert str(settings.archives / release.archive) in str(caught.value)
    assert "FTNUMPY_CACHE" in str(caught.value)


def test_part_written_before_the_disk_was_full_is_continued(server, release, settings):
    server.answers["/official"] = [Answer()]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, limits[1]))
    try:
        with pytest.raises(SourceError, match="File too large"):
            sources.fetch(release, CHANNELS, settings)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert left(settings) == {f"{release.archive}.part"}
    assert sources.fetch(release, CHANNELS, settings).path.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=300000-"]


def test_cache_that_cannot_be_made_is_a_clear_error(release, settings):
    put(settings.cache)
    with pytest.raises(SourceError, match=str(settings.archives)):
        sources.fetch(release, CHANNELS, settings)


def test_warm_cache_needs_no_lock(release, settings):
    put(settings.archives / release.archive)
    assert sources.fetch(release, CHANNELS, settings).channel == "cache"
    assert not list(settings.archives.glob("*.lock"))


def test_no_pip_is_a_reason_not_a_crash(server, release, settings, monkeypatch):
    def none() -> None:
        raise NotThere("no pip to ask")

    monkeypatch.setattr(pip_index, "ask_pip", none)
    with pytest.raises(ArchiveNotFound, match="index: no pip to ask"):
        sources.fetch(release, CHANNELS, settings)
