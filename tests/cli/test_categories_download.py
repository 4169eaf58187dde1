"""``diptych categories download``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Command
from picture_host import PictureHost, picture_host


@pytest.fixture
def host() -> Iterator[PictureHost]:
    with picture_host() as running:
        yield running


OPTIONS = ("--contact", "me@example.org", "--rate", "1000", "--allow-private", "--attempts", "1")


def test_a_list_of_addresses_in_two_calls(diptych: Command, host: PictureHost, tmp_path: Path) -> None:
    rows = [f"A{i},{host.address}/ok/{i}.png" for i in range(4)] + [f"x y,{host.address}/gone/1", "none,"]
    (tmp_path / "list.csv").write_text("\n".join(["id,address", *rows]) + "\n")
    call = ("categories", "download", tmp_path / "list.csv", "--out", tmp_path / "images", *OPTIONS)
    first = diptych(*call, "--limit", "3")
    assert first.code == 0, first.err
    assert "3 of 5 pictures" in first.out
    assert "0 failed, 2 not tried yet" in first.out
    assert "# to go on" in first.out
    second = diptych(*call)
    assert "4 of 5 pictures" in second.out
    assert "1 of them fetched now; 1 failed, 0 not tried yet" in second.out
    assert "not found" in second.out
    assert "status 404" in second.out
    assert "--retry-failed" in second.out
    assert sorted(file.name for file in (tmp_path / "images").glob("*.png")) == [
        f"A{i}.png" for i in range(4)
    ]
    assert host.counts["/gone/1"] == 1
    assert host.counts["/robots.txt"] == 2
    lines = (tmp_path / "images" / "downloads.jsonl").read_text().splitlines()
    assert {json.loads(line)["id"] for line in lines} == {"A0", "A1", "A2", "A3", "x y"}


def test_a_dataset_without_addresses_and_a_list_that_is_none(
    diptych: Command, scenes_folder: Path, tmp_path: Path
) -> None:
    done = diptych("categories", "download", scenes_folder, "--out", tmp_path / "images", *OPTIONS)
    assert done.code == 1
    assert "says where its picture is" in done.err
    (tmp_path / "twice.csv").write_text("id,address\na,http://x/1\na,http://x/2\n")
    done = diptych("categories", "download", tmp_path / "twice.csv", "--out", tmp_path / "images", *OPTIONS)
    assert done.code == 1
    assert "'a' occurs twice" in done.err
    assert not (tmp_path / "images").exists()


def test_a_contact_has_to_be_given(diptych: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIPTYCH_CONTACT", raising=False)
    (tmp_path / "list.csv").write_text("id,address\na,http://x/1\n")
    done = diptych("categories", "download", tmp_path / "list.csv", "--out", tmp_path / "images")
    assert done.code == 2
    assert "--contact" in done.err


def test_private_networks_are_closed(diptych: Command, host: PictureHost, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(f"id,address\na,{host.address}/ok/a.png\n")
    done = diptych(
        "categories", "download", tmp_path / "list.csv", "--out", tmp_path / "i", "--contact", "me@x.org"
    )
    assert done.code == 0
    assert "not on the public internet" in done.out
    assert host.asked == []


def test_a_feed_has_its_pictures_afterwards(diptych: Command, host: PictureHost, tmp_path: Path) -> None:
    from diptych.commerce.catalogue import catalogue_of
    from diptych.data import read_collection

    lines = ["id,title,link,image_link,price,product_type"]
    for name, path in (("SKU-1", "moved/a.jpg"), ("sku 2", "ok/b.png"), ("sku 3", "gone/c")):
        lines.append(f"{name},A thing,http://x/{name},{host.address}/{path},3 EUR,Home > Things")
    (tmp_path / "feed.csv").write_text("\n".join(lines) + "\n")
    images = tmp_path / "pictures"
    done = diptych("categories", "download", tmp_path / "feed.csv", "--out", images, *OPTIONS)
    assert done.code == 0, done.err
    assert "2 of 3 pictures" in done.out
    shop = catalogue_of(read_collection(tmp_path / "feed.csv", images=images))
    assert list(shop.ids) == ["SKU-1", "sku 2", "sku 3"]
    assert shop.pictured.tolist() == [True, True, False]
    assert shop.collection.image(int(shop.picture_rows[1])).size == (8, 8)
