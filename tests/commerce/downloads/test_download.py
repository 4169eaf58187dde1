"""Pictures from a host with moods: what comes is kept once, what does not says why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from picture_host import PictureHost, picture_host
from PIL import Image
from refusals import refused

from diptych.commerce.downloads import JOURNAL, DownloadOptions, Downloads, Wanted, download_pictures
from diptych.core.context import stop_when
from diptych.core.errors import DataError, Interrupted, StorageError, UsageError
from diptych.data.products import picture_name


@pytest.fixture
def host() -> Iterator[PictureHost]:
    with picture_host() as running:
        yield running


def fetch(
    host: PictureHost,
    folder: Path,
    *paths: str,
    limit: int | None = None,
    retry: bool = False,
    **options: Any,
) -> Downloads:
    """Fetch paths of the host; the id of each is its path."""
    given = {"contact": "me@example.org", "rate": 1000.0, "allow_private": True, "back_off": 0.0, **options}
    wanted = [Wanted(path, host.address + path) for path in paths]
    return download_pictures(wanted, folder, DownloadOptions(**given), limit=limit, retry_failed=retry)


def journal(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / JOURNAL).read_text().splitlines()]


def test_pictures_are_kept_as_they_came_under_the_name(host: PictureHost, tmp_path: Path) -> None:
    paths = [f"/ok/a.{ending}" for ending in ("jpg", "png", "webp", "gif")]
    done = fetch(host, tmp_path / "images", *paths)
    assert (done.wanted, done.there, done.fetched, done.left, done.failures) == (4, 4, 4, 0, ())
    for path in paths:
        file = tmp_path / "images" / f"{picture_name(path)}.{path[-4:].lstrip('.')}"
        with Image.open(file) as picture:
            assert picture.size == (8, 8)
    assert {line["file"] for line in journal(tmp_path / "images")} == {
        file.name for file in (tmp_path / "images").iterdir() if file.name != JOURNAL
    }
    assert len(host.agents) == 1
    assert "(+me@example.org)" in host.agents.pop()
    assert fetch(host, tmp_path / "images", "/once-cut/1").there == 1
    assert host.counts["/once-cut/1"] == 2, "what was cut once is whole the second time"


@pytest.mark.parametrize(
    ("path", "kind", "word", "times"),
    [
        ("/gone/1", "not found", "404", 1),
        ("/html/1", "no picture", "text/html", 1),
        ("/bomb/1", "no picture", "refused", 1),
        ("/loop/1", "redirects", "5 redirects", 1),
        ("/away/1", "address", "file:///etc/passwd", 1),
        ("/large/1", "too large", "999,999,999", 1),
        ("/endless/1", "too large", "50,000", 1),
        ("/dot/1", "placeholder", "1 × 1", 1),
        ("/packed/1", "encoding", "deflate", 1),
        ("/cut/1", "cut", "cut", 3),
        ("/broken/1", "server", "500", 3),
        ("/slow/1", "slow", "0.2 s", 3),
    ],
)
def test_a_picture_that_does_not_come_says_why(
    host: PictureHost, tmp_path: Path, path: str, kind: str, word: str, times: int
) -> None:
    done = fetch(host, tmp_path, path, "/ok/b.png", attempts=3, max_bytes=50_000, timeout=0.2)
    assert done.there == 1
    assert done.reasons == {kind: 1}
    assert word in done.failures[0]["error"]
    assert done.failures[0]["id"] == path
    assert host.counts[path] == times
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".jsonl", ".png"]


def test_a_busy_host_is_left_alone_for_as_long_as_it_says(host: PictureHost, tmp_path: Path) -> None:
    host.busy_for, host.retry_after = 1, "1"
    assert fetch(host, tmp_path, "/busy/1", "/ok/a.png", ignore_robots=True).there == 2
    assert host.asked == ["/busy/1", "/busy/1", "/ok/a.png"]
    assert host.at[1] - host.at[0] >= 0.95


def test_a_host_that_wants_a_long_rest_is_left_for_another_time(host: PictureHost, tmp_path: Path) -> None:
    host.busy_for, host.retry_after = 9, "86400"
    done = fetch(host, tmp_path, "/busy/1", "/ok/a.png")
    assert (done.there, done.left, done.failures) == (0, 2, ())
    assert list(done.given_up.values()) == ["asks to wait 86,400 s"]
    host.busy_for = 0
    assert fetch(host, tmp_path, "/busy/1", "/ok/a.png").there == 2


def test_a_dead_host_is_given_up_and_tried_again_another_time(host: PictureHost, tmp_path: Path) -> None:
    dead = [Wanted(f"d{i}", f"http://127.0.0.1:9/{i}.png") for i in range(10)]
    given = {"allow_private": True, "back_off": 0.0, "attempts": 2, "ignore_robots": True}
    options = DownloadOptions(contact="me@example.org", rate=1000.0, **given)
    done = download_pictures([*dead, Wanted("a", f"{host.address}/ok/a.png")], tmp_path, options)
    assert (done.there, done.reasons, done.left) == (1, {"unreachable": 3}, 7)
    assert list(done.given_up) == ["127.0.0.1:9"]


def test_one_request_at_a_time_and_so_many_per_second(host: PictureHost, tmp_path: Path) -> None:
    fetch(host, tmp_path, *(f"/ok/{i}.png" for i in range(6)), rate=20.0, ignore_robots=True)
    assert host.together == 1
    gaps = [later - earlier for earlier, later in zip(host.at, host.at[1:], strict=False)]
    assert sum(gaps) >= 5 / 20 * 0.9
    fetch(host, tmp_path, *(f"/slow/{i}" for i in range(4)), ignore_robots=True, connections=4)
    assert 2 <= host.together <= 4


def test_robots_txt_is_kept_to_and_read_once(host: PictureHost, tmp_path: Path) -> None:
    host.robots = "User-agent: *\nDisallow: /slow/\nDisallow: /moved\nUser-agent: other\nDisallow: /\n"
    done = fetch(host, tmp_path, "/ok/a.png", "/slow/1", "/moved/b.png")
    assert done.there == 1
    assert done.reasons == {"robots": 2}
    assert host.asked == ["/robots.txt", "/ok/a.png"]
    assert fetch(host, tmp_path, "/slow/1", ignore_robots=True, retry=True).there == 1
    host.robots = "User-agent: diptych\nDisallow: /ok/"
    assert fetch(host, tmp_path, "/moved/c.png").reasons == {"robots": 1}
    assert host.counts["/ok/c.png"] == 0, "it holds for where a redirect leads"


@pytest.mark.parametrize(("status", "there"), [(404, 1), (403, 0), (500, 0)])
def test_a_robots_txt_that_cannot_be_had(host: PictureHost, tmp_path: Path, status: int, there: int) -> None:
    host.robots = status
    assert fetch(host, tmp_path, "/ok/a.png", attempts=2).there == there
    assert host.counts["/ok/a.png"] == there


def test_a_crawl_delay_slows_down(host: PictureHost, tmp_path: Path) -> None:
    host.robots = "User-agent: *\nCrawl-delay: 1\n"
    fetch(host, tmp_path, "/ok/a.png", "/ok/b.png")
    assert host.at[2] - host.at[1] >= 0.95
    host.robots = f"User-agent: *\nCrawl-delay: {'9' * 400}\n"
    assert fetch(host, tmp_path / "other", "/ok/a.png").reasons == {"robots": 1}
    assert len(host.asked) == 4, "an endless one is a refusal"


def test_private_addresses_are_refused_unless_allowed(host: PictureHost, tmp_path: Path) -> None:
    port = host.address.rsplit(":", 1)[1]
    names = ("127.0.0.1", "localhost", "[::1]", "0.0.0.0")
    wanted = [Wanted(name, f"http://{name}:{port}/ok/a.png") for name in names]
    done = download_pictures(wanted, tmp_path, DownloadOptions(contact="me@example.org", rate=1000.0))
    assert done.reasons == {"private": 4}
    assert not host.asked


def test_the_same_call_goes_on_where_it_stopped(host: PictureHost, tmp_path: Path) -> None:
    paths = ["/ok/a.png", "/ok/b.png", "/gone/1", "/ok/c.png"]
    assert fetch(host, tmp_path, *paths, limit=2).left == 2
    done = fetch(host, tmp_path, *paths)
    assert (done.there, done.fetched, done.left, len(done.failures)) == (3, 1, 0, 1)
    again = fetch(host, tmp_path, *paths)
    assert (again.there, again.fetched) == (3, 0)
    assert all(host.counts[path] == 1 for path in paths)
    fetch(host, tmp_path, *paths, retry=True)
    assert host.counts["/gone/1"] == 2


def test_a_kill_in_the_middle_of_a_line_loses_that_picture_only(host: PictureHost, tmp_path: Path) -> None:
    fetch(host, tmp_path, "/ok/a.png", "/ok/b.png")
    content = (tmp_path / JOURNAL).read_bytes()
    (tmp_path / JOURNAL).write_bytes(content[:-9])
    half_written = tmp_path / ".half.png.1.tmp"
    half_written.write_bytes(b"x")
    assert fetch(host, tmp_path, "/ok/a.png", "/ok/b.png").fetched == 1
    assert len(journal(tmp_path)) == 2
    assert not half_written.exists()


def test_a_picture_that_was_removed_or_has_moved_is_fetched_again(host: PictureHost, tmp_path: Path) -> None:
    fetch(host, tmp_path, "/ok/a.png")
    next(tmp_path.glob("*.png")).unlink()
    assert fetch(host, tmp_path, "/ok/a.png").fetched == 1
    options = DownloadOptions(contact="me@example.org", rate=1000.0, allow_private=True)
    done = download_pictures([Wanted("/ok/a.png", f"{host.address}/ok/z.jpg")], tmp_path, options)
    assert done.fetched == 1
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".jpg", ".jsonl"]
    wanted = [Wanted(name, f"{host.address}/ok/x.png") for name in ("A", "B", "C")]
    assert download_pictures(wanted, tmp_path, options).fetched == 3
    assert host.counts["/ok/x.png"] == 1, "items of one address are fetched once"
    assert (tmp_path / "B.png").is_file()


def test_a_stop_keeps_what_came(host: PictureHost, tmp_path: Path) -> None:
    options = DownloadOptions(contact="me@example.org", rate=1000.0, allow_private=True)
    wanted = [Wanted(f"P{i}", f"{host.address}/ok/{i}.png") for i in range(20)]
    with stop_when(lambda: len(host.asked) > 5), pytest.raises(Interrupted, match="came"):
        download_pictures(wanted, tmp_path, options)
    came = len(journal(tmp_path))
    assert 0 < came < 20
    assert download_pictures(wanted, tmp_path, options).fetched == 20 - came


def test_somebody_elses_folder_is_left_alone(host: PictureHost, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    (tmp_path / ".mine.tmp").write_text("mine too")
    refused(UsageError, "holds other things", fetch, host, tmp_path, "/ok/a.png")
    assert len(list(tmp_path.iterdir())) == 2
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / JOURNAL).write_text('{"x": 1}\n')
    refused(StorageError, "line 1", fetch, host, tmp_path / "ours", "/ok/a.png")
    refused(DataError, "'/ok/a.png' occurs twice", fetch, host, tmp_path / "new", "/ok/a.png", "/ok/a.png")


@pytest.mark.parametrize("given", [{"contact": " "}, {"contact": "a\nb"}, {"rate": 0.0}, {"attempts": 0}])
def test_options_that_cannot_be(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        DownloadOptions.read({"contact": "me@example.org", **given}, "download")
