"""Pictures from a host with moods: what comes is kept once, what does not says why."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pytest
from picture_host import PictureHost, picture_host
from PIL import Image
from refusals import refused

from diptych.commerce.downloads import JOURNAL, Downloads, FetchOptions, download
from diptych.core.context import stop_when
from diptych.core.errors import DataError, Interrupted, StorageError, UsageError
from diptych.data.products import picture_name


@pytest.fixture
def host() -> Iterator[PictureHost]:
    with picture_host() as running:
        yield running


def fetch(host: PictureHost, folder: Path, *paths: str, **options: Any) -> Downloads:
    """Fetch paths of the host; the id of each is its path."""
    return fetch_all([(path, host.address + path) for path in paths], folder, **options)


def fetch_all(wanted: Sequence[tuple[str, str]], folder: Path, **options: Any) -> Downloads:
    """Fetch addresses by ids."""
    given = {"contact": "me@example.org", "rate": 1000.0, "allow_private": True, "back_off": 0.0, **options}
    with NamedTemporaryFile("w", suffix=".csv", newline="") as file:
        csv.writer(file).writerows([("id", "address"), *wanted])
        file.flush()
        return download(FetchOptions(data=Path(file.name), out=folder, **given))


def journal(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / JOURNAL).read_text().splitlines()]


def kinds(done: Downloads) -> list[str]:
    return [str(one["kind"]) for one in done.failures]


def test_pictures_are_kept_as_they_came_under_the_name(host: PictureHost, tmp_path: Path) -> None:
    paths = [f"/ok/a.{ending}" for ending in ("jpg", "png", "webp", "gif")]
    done = fetch(host, tmp_path / "images", *paths)
    assert (done.wanted, done.there, done.fetched, done.left, done.failures) == (4, 4, 4, 0, [])
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
        ("/gone/1", "status 404", "404", 1),
        ("/html/1", "no image", "not an image", 1),
        ("/bomb/1", "no image", "refused", 1),
        ("/loop/1", "TooManyRedirects", "redirects", 1),
        ("/away/1", "address", "file://", 1),
        ("/large/1", "RemoteProtocolError", "closed", 3),
        ("/endless/1", "too large", "50,000", 1),
        ("/dot/1", "placeholder", "1 × 1", 1),
        ("/cut/1", "RemoteProtocolError", "closed", 3),
        ("/broken/1", "status 500", "500", 3),
        ("/slow/1", "ReadTimeout", "timed out", 3),
    ],
)
def test_a_picture_that_does_not_come_says_why(
    host: PictureHost, tmp_path: Path, path: str, kind: str, word: str, times: int
) -> None:
    done = fetch(host, tmp_path, path, "/ok/b.png", attempts=3, max_bytes=50_000, timeout=0.2)
    assert done.there == 1
    (failure,) = done.failures
    assert failure["kind"] == kind
    assert word in failure["error"]
    assert failure["id"] == path
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
    assert (done.there, done.left, done.failures) == (0, 2, [])
    assert list(done.given_up.values()) == ["asks to wait 86,400 s"]
    host.busy_for = 0
    assert fetch(host, tmp_path, "/busy/1", "/ok/a.png").there == 2


def test_a_dead_host_is_given_up_and_tried_again_another_time(host: PictureHost, tmp_path: Path) -> None:
    dead = [(f"d{i}", f"http://127.0.0.1:9/{i}.png") for i in range(10)]
    wanted = [*dead, ("a", f"{host.address}/ok/a.png")]
    done = fetch_all(wanted, tmp_path, attempts=2, ignore_robots=True)
    assert (done.there, kinds(done), done.left) == (1, ["ConnectError"] * 3, 7)
    assert list(done.given_up) == ["127.0.0.1:9"]


def test_one_request_at_a_time_and_so_many_per_second(host: PictureHost, tmp_path: Path) -> None:
    fetch(host, tmp_path, *(f"/ok/{i}.png" for i in range(6)), rate=20.0, ignore_robots=True)
    assert host.together == 1
    gaps = [later - earlier for earlier, later in zip(host.at, host.at[1:], strict=False)]
    assert sum(gaps) >= 5 / 20 * 0.9


def test_robots_txt_is_kept_to_and_read_once(host: PictureHost, tmp_path: Path) -> None:
    host.robots = "User-agent: *\nDisallow: /slow/\nDisallow: /moved\nUser-agent: other\nDisallow: /\n"
    done = fetch(host, tmp_path, "/ok/a.png", "/slow/1", "/moved/b.png")
    assert done.there == 1
    assert kinds(done) == ["robots"] * 2
    assert host.asked == ["/robots.txt", "/ok/a.png"]
    assert fetch(host, tmp_path, "/slow/1", ignore_robots=True, retry_failed=True).there == 1


@pytest.mark.parametrize(("status", "there"), [(404, 1), (403, 0), (500, 0)])
def test_a_robots_txt_that_cannot_be_had(host: PictureHost, tmp_path: Path, status: int, there: int) -> None:
    host.robots = status
    assert fetch(host, tmp_path, "/ok/a.png", attempts=2).there == there
    assert host.counts["/ok/a.png"] == there


def test_a_crawl_delay_slows_down(host: PictureHost, tmp_path: Path) -> None:
    host.robots = "User-agent: *\nCrawl-delay: 1\n"
    fetch(host, tmp_path, "/ok/a.png", "/ok/b.png")
    assert host.at[2] - host.at[1] >= 0.95


def test_private_addresses_are_refused_unless_allowed(host: PictureHost, tmp_path: Path) -> None:
    port = host.address.rsplit(":", 1)[1]
    names = ("127.0.0.1", "localhost", "[::1]", "0.0.0.0")
    wanted = [(name, f"http://{name}:{port}/ok/a.png") for name in names]
    done = fetch_all(wanted, tmp_path, allow_private=False)
    assert kinds(done) == ["private"] * 4
    assert not host.asked


def test_the_same_call_goes_on_where_it_stopped(host: PictureHost, tmp_path: Path) -> None:
    paths = ["/ok/a.png", "/ok/b.png", "/gone/1", "/ok/c.png"]
    assert fetch(host, tmp_path, *paths, limit=2).left == 2
    done = fetch(host, tmp_path, *paths)
    assert (done.there, done.fetched, done.left, len(done.failures)) == (3, 1, 0, 1)
    again = fetch(host, tmp_path, *paths)
    assert (again.there, again.fetched) == (3, 0)
    assert all(host.counts[path] == 1 for path in paths)
    fetch(host, tmp_path, *paths, retry_failed=True)
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
    assert fetch_all([("/ok/a.png", f"{host.address}/ok/z.jpg")], tmp_path).fetched == 1
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".jpg", ".jsonl"]
    wanted = [(name, f"{host.address}/ok/x.png") for name in ("A", "B", "C")]
    assert fetch_all(wanted, tmp_path).fetched == 3
    assert host.counts["/ok/x.png"] == 1, "items of one address are fetched once"
    assert (tmp_path / "B.png").is_file()


def test_lists_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "list.csv"
    given = FetchOptions(data=file, out=tmp_path / "images", contact="me@example.org")
    refused(DataError, "does not exist", given.wanted)
    file.write_text("id,address\n,http://x/1\n")
    refused(DataError, "line 2: no id", given.wanted)
    file.write_text("\ufeffid,address,more\na,http://x/1,z\nb,\n")
    assert given.wanted() == {"a": "http://x/1"}


def test_a_stop_keeps_what_came(host: PictureHost, tmp_path: Path) -> None:
    wanted = [(f"P{i}", f"{host.address}/ok/{i}.png") for i in range(20)]
    with stop_when(lambda: len(host.asked) > 5), pytest.raises(Interrupted):
        fetch_all(wanted, tmp_path)
    came = len(journal(tmp_path))
    assert 0 < came < 20
    assert fetch_all(wanted, tmp_path).fetched == 20 - came


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
        FetchOptions.read({"data": "a.csv", "out": "b", "contact": "me@example.org", **given}, "download")
