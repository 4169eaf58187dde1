from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from miniatures import picture
from refusals import refused

from diptych.core.errors import DataError, ImageError, UsageError
from diptych.data.products import attributes_of, paths_of
from diptych.data.readers import read_collection


def said(*texts: str) -> list[dict[str, str]]:
    """``"en_GB: a lamp"`` as the listings have it."""
    return [dict(zip(("language_tag", "value"), text.split(": "), strict=True)) for text in texts]


def listing(item: str, image: str | None = "i1", **fields: Any) -> dict[str, Any]:
    main = {} if image is None else {"main_image_id": image, "other_image_id": ["i9"]}
    return {"item_id": item, "domain_name": "amazon.com", "country": "US", **main, **fields}


def write(folder: Path, *files: list[dict[str, Any]], images: str | None = None) -> Path:
    place = folder / "listings" / "metadata"
    place.mkdir(parents=True, exist_ok=True)
    for number, listings in enumerate(files):
        content = "".join(f"{json.dumps(one)}\n" for one in listings).encode()
        (place / f"listings_{number:x}.json.gz").write_bytes(gzip.compress(content))
    (folder / "images" / "metadata").mkdir(parents=True, exist_ok=True)
    (folder / "images" / "small").mkdir(exist_ok=True)
    table = images or "image_id,height,width,path\ni1,4,4,a1/1.png\ni2,4,4,b2/2.png\n"
    (folder / "images" / "metadata" / "images.csv.gz").write_bytes(gzip.compress(table.encode()))
    return folder


def test_one_picture_and_one_description_per_listing(tmp_path: Path) -> None:
    lamp = listing(
        "B1",
        "i2",
        item_name=said("de_DE: Lampe", "en_GB: Lamp"),
        product_description=said("en_US:  A lamp\nfor reading "),
        bullet_point=said("en_US: bright", "de_DE: hell", "en_US: cheap"),
        product_type=[{"value": "LAMP"}],
        node=[{"node_id": 1, "node_name": "/Home/Lighting/Lamps"}],
    )
    chair = {
        "item_name": said("en_IN: Chair", "en_US: Seat"),
        "bullet_point": said("en_US: soft", "en_US: red"),
    }
    others = [listing("B2", **chair), named("B3", "en_US: Sofa")]
    write(tmp_path, [lamp, *others], [named("B4", "fr_FR: Table"), named("B5", "en_US: Shelf", None)])
    picture(tmp_path / "images" / "small" / "b2" / "2.png", 22)
    found = read_collection(tmp_path)
    assert found.image_ids == ["B1", "B2", "B3"]
    assert found.captions == ["A lamp for reading", "soft red", "Sofa"]
    assert found.image(0).getpixel((0, 0)) == (22, 0, 0)
    record = {"title": "Lamp", "product_type": "LAMP", "category_path": ("Home", "Lighting", "Lamps")}
    assert found.records[0] == {**record, "country": "US", "domain": "amazon.com", "image_id": "i2"}
    assert "captions are product_description of 1, bullet_point of 1, item_name of 1" in found.notes[0]
    assert (found.name, found.centric) == ("abo", "object")
    assert read_collection(tmp_path, caption="name").captions == ["Lamp", "Chair", "Sofa"]
    assert read_collection(tmp_path, caption="name", language="en_US").captions == ["Seat", "Sofa"]
    assert read_collection(tmp_path, caption="description").image_ids == ["B1"]
    assert read_collection(tmp_path, language="de", caption="bullets, name").captions == ["hell"]


def test_attributes_and_all_places_in_the_tree(tmp_path: Path) -> None:
    colour = {**said("de_DE: Rot")[0], "standardized_values": ["Red", "Red"]}
    paths = ("/Categories/Home & Kitchen/Lamps", "/Categories/Home &amp; Kitchen/Lamps", "/Categories")
    lamp = listing(
        "B1",
        item_name=said("en_US: Lamp &amp; <b>shade</b>"),
        brand=said("en_US: Rivet", "en_GB: Rivet", "de_DE: Niete"),
        color=[colour],
        material=said("en_US: Wood &amp; Steel", "en_US: Glass"),
        style=said("en_US:  "),
        node=[*({"path": path} for path in paths), {"node_name": "/Categories/Sale//Lamps/"}],
    )
    write(tmp_path, [lamp])
    (record,) = read_collection(tmp_path).records
    assert attributes_of(record) == (
        *(("brand", "Rivet"), ("color", "Red"), ("material", "Wood & Steel"), ("material", "Glass")),
    )
    assert paths_of(record) == (("Home & Kitchen", "Lamps"), ("Sale", "Lamps"))


def named(item: str, text: str, image: str | None = "i1") -> dict[str, Any]:
    return listing(item, image, item_name=said(text))


def test_what_is_left_out_or_kept(tmp_path: Path) -> None:
    write(
        tmp_path,
        [named("B1", "en_US: a", None), named("B2", "de_DE: b"), named("B2", "en_US: b", "i2")],
        [named("B3", "en_US: c", "i7"), named("B4", "en_US: !"), named("B2", "en_US: again")],
    )
    picture(tmp_path / "images" / "small" / "b2" / "2.png", 22)
    skip = {"skip_bad_captions": True}
    found = read_collection(tmp_path, missing="none", **skip)
    assert (found.image_ids, found.captions) == (["B1", "B2", "B3"], ["a", "b", "c"])
    assert found.pictured.tolist() == [False, True, False]
    assert found.image(1).getpixel((0, 0)) == (22, 0, 0)
    refused(ImageError, "B3 has no picture", found.image, 2)
    assert "2 products without an image in small/ kept without one" in found.notes
    assert "1 lines that list a product again left out" in found.notes
    found = read_collection(tmp_path, missing="skip", **skip)
    assert found.image_ids == ["B2"]
    assert "1 products without an image in small/ left out" in found.notes
    for options, message in (
        (skip, r"1 of 2 products have no image in .*small, the first: B3 \(listings_1\.json\.gz, line 1\)"),
        (
            {**skip, "duplicates": "error"},
            r"listings_1\.json\.gz, line 3: product B2 was in listings_0\.json\.gz, line 3",
        ),
        ({"language": "fi", "caption": "name"}, "no listing of 6 has a picture and name in fi"),
    ):
        refused(DataError, message, read_collection, tmp_path, **options)


def test_listings_with_one_picture_are_never_in_two_splits(tmp_path: Path) -> None:
    table = "image_id,height,width,path\n" + "".join(f"i{i},1,1,{i}.png\n" for i in range(100))
    write(
        tmp_path,
        [listing(f"B{n}", f"i{n % 100}", item_name=said(f"en_US: {n}")) for n in range(300)],
        images=table,
    )
    found = read_collection(tmp_path).divided()
    splits: dict[str, set[str]] = {}
    for record, split in zip(found.records, found.splits, strict=True):
        splits.setdefault(record["image_id"], set()).add(split)
    assert all(len(one) == 1 for one in splits.values())
    assert set(found.split_sizes) == {"train", "val", "test"}
    assert read_collection(tmp_path, validation=0, test=0).divided().split_sizes == {"train": 300}


def test_splits_from_a_file(tmp_path: Path) -> None:
    write(tmp_path, [listing(f"B{n}", item_name=said(f"en_US: {n}")) for n in range(3)])
    file = tmp_path / "splits.csv"
    file.write_text("B2,test\nB0,train\nB9,val\n")
    found = read_collection(tmp_path, split_file=file)
    assert dict(zip(found.image_ids, found.splits, strict=True)) == {"B0": "train", "B2": "test"}
    assert "1 items that splits.csv does not name left out" in found.notes
    for content, message in (("B0\n", "line 1 is 'B0'"), ("B0,a\nB0,b\n", "B0 has two splits")):
        file.write_text(content)
        refused(DataError, message, read_collection, tmp_path, split_file=file)


def test_archives_in_folders_of_their_own(tmp_path: Path) -> None:
    write(tmp_path, [named("B1", "en_US: a")])
    for archive, folder in (("abo-listings", "listings"), ("abo-images-small", "images")):
        (tmp_path / archive).mkdir()
        (tmp_path / folder).rename(tmp_path / archive / folder)
    assert read_collection(tmp_path).captions == ["a"]


def test_half_a_dataset(tmp_path: Path) -> None:
    write(tmp_path, [])
    (tmp_path / "listings" / "metadata" / "listings_0.json.gz").unlink()
    refused(DataError, r"has no listings_\*\.json\.gz", read_collection, tmp_path)
    write(tmp_path, [named("B1", "en_US: a")])
    (tmp_path / "images" / "metadata" / "images.csv.gz").unlink()
    refused(DataError, r"has no images\.csv\.gz", read_collection, tmp_path)
    (tmp_path / "images" / "small").rmdir()
    refused(DataError, "small does not exist", read_collection, tmp_path)
    (tmp_path / "images").rename(tmp_path / "pictures")
    assert "abo-images-small.tar" in refused(DataError, "has no folder images", read_collection, tmp_path).fix
    for options in ({"caption": "title"}, {"missing": "no"}, {"duplicates": "last"}, {"test": -1}):
        with pytest.raises(UsageError):
            read_collection(tmp_path, **options)
