"""Images from a host with moods: what comes is kept once, what does not says why."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import SimpleNamespace
from typing import Any

import pytest
from picture_host import PictureHost, picture_host
from PIL import Image
from refusals import refused

from diptych.commerce import downloads
from diptych.commerce.downloads import JOURNAL, Downloads, FetchOptions, download
from diptych.core.context import stop_when
from diptych.core.errors import DataError, Interrupted, UsageError
from diptych.data.products import picture_name


@pytest.fixture
def host() -> Iterator[PictureHost]:
    with picture_host() as running:
        yield running


def fetch(host: PictureHost, folder: Path, *paths: str, **options: Any) -> Downloads:
    """Fetch paths of the host; the id of each is its path."""
    return fetch_all([(path, host.address + path) for path in paths], folder, **options)


def fetch_all(addresses: Sequence[tuple[str, str]], folder: Path, **options: Any) -> Downloads:
    given = {"contact": "me@example.org", "rate": 1000.0, "allow_private": True, **options}
    with NamedTemporaryFile("w", suffix=".csv", newline="") as file:
        csv.writer(file).writerows([("id", "address"), *addresses])
        file.flush()
        return download(FetchOptions(data=Path(file.name), out=folder, **given))


def journal(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / JOURNAL).read_text().splitlines()]


def test_images_are_kept_as_they_came(host: PictureHost, tmp_path: Path) -> None:
    paths = [f"/ok/a.{ending}" for ending in ("jpg", "png", "webp", "gif")]
    done = fetch(host, tmp_path / "images", *paths, "/moved/b.png")
    assert done == Downloads(5, 5, 0, [])
    for path in paths:
        file = tmp_path / "images" / f"{picture_name(path)}.{path[-4:].lstrip('.')}"
        with Image.open(file) as image:
            assert image.size == (8, 8)
    files = {file.name for file in (tmp_path / "images").iterdir()}
    assert {line["file"] for line in journal(tmp_path / "images")} == files - {JOURNAL}
    assert host.together == 1
    assert [agent.split()[1] for agent in host.agents] == ["(+me@example.org)"]


def test_an_image_that_does_not_come(host: PictureHost, tmp_path: Path) -> None:
    cases: Any = [
        ("/gone/1", "status 404", False),
        ("/html/1", "not an image", False),
        ("/bomb/1", "refused", False),
        ("/loop/1", "redirects", False),
        ("/away/1", "file://", False),
        ("/endless/1", "more than 50,000 bytes", False),
        ("/dot/1", "1 × 1", False),
        ("/large/1", "closed", True),
        ("/cut/1", "closed", True),
        ("/broken/1", "status 500", True),
        ("/slow/1", "timed out", True),
    ]
    for path, reason, again in cases:
        for calls in (1, 2):
            done = fetch(host, tmp_path / path[1:4], path, "/ok/b.png", max_bytes=50_000, timeout=0.2)
            assert done.there == 1
            (failure,) = done.failures
            assert reason in failure["error"]
            assert (failure["id"], failure["again"]) == (path, again)
            assert host.counts[path] == (calls if again else 1) or path == "/loop/1"
        assert sorted(file.suffix for file in (tmp_path / path[1:4]).iterdir()) == [".jsonl", ".png"]


def test_a_drop_at_a_time_takes_too_long(
    host: PictureHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 1_000_000, 50))
    own = SimpleNamespace(monotonic=lambda: float(next(clock)), sleep=lambda seconds: None)
    monkeypatch.setattr(downloads, "time", own)
    (failure,) = fetch(host, tmp_path, "/endless/1", timeout=5.0, max_bytes=10**9).failures
    assert failure["error"] == "not there after 50 s"


def test_a_host_that_gives_nothing_is_left_for_another_call(host: PictureHost, tmp_path: Path) -> None:
    addresses = [(f"d{i}", f"http://127.0.0.1:9/{i}.png") for i in range(10)]
    done = fetch_all([*addresses, ("a", f"{host.address}/ok/a.png")], tmp_path)
    assert (done.there, len(done.failures), done.left) == (1, 3, 7)
    host.busy_for = 1
    assert fetch(host, tmp_path / "busy", "/busy/1").failures[0]["error"] == "status 429"
    assert fetch(host, tmp_path / "busy", "/busy/1").there == 1


def test_so_many_requests_per_second(
    host: PictureHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, slept = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    # Only the module's own clock: other threads go on as they are.
    monkeypatch.setattr(downloads, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    fetch(host, tmp_path, *(f"/ok/{i}.png" for i in range(6)), rate=10.0)
    assert sum(slept) == pytest.approx(0.5)


def test_private_addresses_are_refused_unless_allowed(host: PictureHost, tmp_path: Path) -> None:
    port = host.address.rsplit(":", 1)[1]
    names = ("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:10.0.0.1]", "169.254.169.254")
    done = fetch_all(
        [(name, f"http://{name}:{port}/ok/a.png") for name in names], tmp_path, allow_private=False
    )
    assert [one["error"].split(":")[0] for one in done.failures] == ["private"] * len(names)
    assert not host.asked


def test_the_same_call_resumes(host: PictureHost, tmp_path: Path) -> None:
    paths = ["/ok/a.png", "/ok/b.png", "/gone/1", "/ok/c.png"]
    assert fetch(host, tmp_path, *paths[:2])[:3] == (2, 2, 0)
    assert fetch(host, tmp_path, *paths)[:3] == (3, 1, 0)
    assert fetch(host, tmp_path, *paths)[:3] == (3, 0, 0)
    assert all(host.counts[path] == 1 for path in paths)
    fetch(host, tmp_path, *paths, retry_failed=True)
    assert host.counts["/gone/1"] == 2
    (tmp_path / JOURNAL).write_bytes((tmp_path / JOURNAL).read_bytes()[:-9])  # killed in the middle of a line
    assert fetch(host, tmp_path, *paths)[:3] == (3, 0, 0)
    assert len(journal(tmp_path)) == 4
    next(tmp_path.glob("*.png")).unlink()
    assert fetch(host, tmp_path, *paths).fetched == 1
    assert fetch_all([("/ok/a.png", f"{host.address}/ok/z.jpg")], tmp_path).fetched == 1  # it has moved


def test_a_stop_keeps_what_came(host: PictureHost, tmp_path: Path) -> None:
    addresses = [(f"P{i}", f"{host.address}/ok/{i}.png") for i in range(20)]
    with stop_when(lambda: len(host.asked) > 5), pytest.raises(Interrupted):
        fetch_all(addresses, tmp_path)
    came = len(journal(tmp_path))
    assert 0 < came < 20
    assert fetch_all(addresses, tmp_path).fetched == 20 - came


def test_lists_and_folders_that_cannot_be_used(host: PictureHost, tmp_path: Path) -> None:
    given = FetchOptions(data=tmp_path / "list.csv", out=tmp_path / "images", contact="me@example.org")
    for text in ("id,address\n,http://x/1\n", "id,address\na,\n"):
        given.data.write_text(text)
        refused(DataError, "no addresses", given.addresses)
    given.data.write_text("\ufeffid,address,more\na,http://x/1,z\nb,\n")
    assert given.addresses() == {"a": "http://x/1"}
    refused(UsageError, "holds other things", fetch, host, tmp_path, "/ok/a.png")
    for contact in (" ", "a\nb"):
        with pytest.raises(UsageError):
            FetchOptions.read({"data": "a.csv", "out": "b", "contact": contact}, "download")
