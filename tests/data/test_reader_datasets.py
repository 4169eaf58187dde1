from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from miniatures import BIRDS, cub, flickr30k, karpathy, picture, retrieval_json
from refusals import refused

from diptych.core.errors import CaptionError, DataError, ImageError, UsageError
from diptych.data import read_collection
from diptych.data.products import attributes_of, paths_of

FINE = {
    "COCO_val2014_02": [f"a fine two {i}" for i in range(2)],
    "COCO_val2014_01": ["a fine one 0", "a fine one 1"],
}


def fine(folder: Path, content: Any = FINE, name: str = "MSCOCO_FG_ann.json") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(content))
    return folder / name


def test_fine_captions_and_karpathys_sentences(tmp_path: Path) -> None:
    file = fine(tmp_path)
    picture(tmp_path / "images" / "COCO_val2014_01.jpg", 7)
    for path in (file, tmp_path):
        found = read_collection(path)
        assert found.describe() == (
            "coco-fg: 2 images, 4 captions (2 captions per image); test 2; scene-centric"
        )
        assert found.image_ids == ["COCO_val2014_02.jpg", "COCO_val2014_01.jpg"]
        assert found.captions_of(1) == FINE["COCO_val2014_01"]
        assert found.image(1).size == (4, 4)
    images = {
        f"val2014/COCO_val2014_0{i}.jpg": ("test", [f"{i} {k}" for k in range(n)])
        for i, n in ((1, 3), (2, 2))
    }
    reference = karpathy(tmp_path / "coco", {"val2014/COCO_val2014_00.jpg": ("train", ["zero"]), **images})
    found = read_collection(fine(tmp_path), karpathy=reference, images=tmp_path / "coco" / "images")
    assert found.image_ids == list(images)
    assert found.captions == ["a fine one 0", "a fine one 1", "a fine two 0", "a fine two 1"]
    # Sentence 103, the third of the first picture, has no fine-grained counterpart.
    assert found.caption_ids == ["101", "102", "104", "105"]
    assert found.image(0).size == (4, 4)
    other = karpathy(tmp_path / "other", {"COCO_val2014_01.jpg": ("test", ["one"])})
    with pytest.raises(DataError, match="no image for 1 of 2 entries .*first COCO_val2014_02"):
        read_collection(fine(tmp_path), karpathy=other)
    fewer = {"COCO_val2014_01.jpg": ("test", ["one"]), "COCO_val2014_02.jpg": ("test", ["a", "b"])}
    short = karpathy(tmp_path / "short", fewer)
    with pytest.raises(DataError, match="has 2 captions of COCO_val2014_01, .* has 1"):
        read_collection(fine(tmp_path), karpathy=short)
    file.write_text('{"a": ["one"], "b": ["two"], "b": ["three"]}')
    refused(DataError, "is not JSON: it has the key 'b' twice", read_collection, file)


SPLITS = {"train": ["1", "2", "3"], "val": ["4"], "test": ["5", "6"]}


def test_tokens_with_lists_of_splits(tmp_path: Path) -> None:
    file = flickr30k(tmp_path, SPLITS, unlisted=["7"])
    for path in (tmp_path, file):
        found = read_collection(path)
        assert found.describe() == (
            "flickr30k: 6 images, 30 captions (5 captions per image); train 3, val 1, test 2; scene-centric"
        )
        assert found.image_ids[0] == "1.jpg"
        assert found.caption_ids[:2] == ["1.jpg#0", "1.jpg#1"]
        assert found.captions[5] == "person 2 is said 0 times ."
        assert found.notes == ("1 images in no list of splits left out",)
        assert found.image(5).size == (4, 4)


def test_the_widespread_table_with_its_broken_line(tmp_path: Path) -> None:
    lines = ["image_name| comment_number| comment", "1.jpg| 0| Two men , one | two ."]
    lines += ["1.jpg| 1   A dog runs across the grass .", "2.jpg| 0| A cat ."]
    (tmp_path / "results.csv").write_text("\n".join(lines) + "\n")
    picture(tmp_path / "flickr30k_images" / "1.jpg", 9)
    found = read_collection(tmp_path)
    assert found.captions == ["Two men , one | two .", "A dog runs across the grass .", "A cat ."]
    assert found.caption_ids == ["1.jpg#0", "1.jpg#1", "2.jpg#0"]
    assert found.image(0).size == (4, 4)
    (tmp_path / "results.csv").write_text("image,caption\na.png,one\n")  # another table
    assert read_collection(tmp_path).image_ids == ["a.png"]


def test_flickr8k_in_its_authors_form(tmp_path: Path) -> None:
    lines = [
        f"{name}#{i}\tit {name} {i}\n" for name in ("1.jpg", "2.jpg", "3.jpg", "4.jpg.1") for i in range(5)
    ]
    (tmp_path / "Flickr8k.token.txt").write_text("".join(lines))
    for name, part in enumerate(("train", "dev", "test"), 1):
        (tmp_path / f"Flickr_8k.{part}Images.txt").write_text(f"{name}.jpg\n")
        picture(tmp_path / "Flicker8k_Dataset" / f"{name}.jpg")
    found = read_collection(tmp_path)
    assert found.name == "flickr8k"
    assert found.split_sizes == {"train": 1, "val": 1, "test": 1}
    assert found.notes == ("1 images in no list of splits left out",)
    assert found.image(2).size == (4, 4)


def test_what_is_wrong_with_it(tmp_path: Path) -> None:
    file = flickr30k(tmp_path, SPLITS)
    content = file.read_text()
    file.write_text(content + "nonsense\n")
    refused(DataError, "line 31: 'nonsense' is no file name", read_collection, tmp_path)
    file.write_text("".join(line for line in content.splitlines(keepends=True) if not line.startswith("6")))
    refused(DataError, "no captions for 1 of 6 listed images, first 6", read_collection, tmp_path)
    file.write_text(content)
    lists = tmp_path / "flickr30k_entities"
    (lists / "test.txt").write_text("5\n4\n")
    refused(DataError, "4 is listed in val and in test", read_collection, tmp_path)
    (lists / "test.txt").unlink()
    refused(DataError, "no list of test", read_collection, tmp_path)
    file.write_text("")
    refused(DataError, "has no captions", read_collection, tmp_path)
    refused(DataError, r"no results_20130124\.token in", read_collection, lists, "flickr30k")
    file.write_bytes(b"\xef\xbb\xbf1.jpg#0\tone\r\n1.jpg#0\ttwo\r\n")
    refused(DataError, r"results_20130124\.token has 1\.jpg#0 twice", read_collection, tmp_path)


def test_a_folder_of_lists(tmp_path: Path) -> None:
    retrieval_json(tmp_path)
    found = read_collection(tmp_path)
    assert found.describe() == (
        "coco_karpathy: 4 images, 14 captions (2–5 captions per image); train 2, val 1, test 1; scene-centric"
    )
    assert found.image_ids == [f"val2014/{name}.jpg" for name in "abcd"]
    assert found.captions_of(0) == ["a 0", "a 1"]
    assert found.captions_of(3) == [f"d {i}" for i in range(5)]
    assert found.caption_ids[:3] == ["val2014/a.jpg#0", "val2014/a.jpg#1", "val2014/b.jpg#0"]
    assert found.records[1] == {"image_id": "coco_b"}
    assert found.image(2).size == (4, 4)


def test_the_split_is_in_the_files_name(tmp_path: Path) -> None:
    def listed(name: str) -> Path:
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text(json.dumps([{"image": "a.jpg", "caption": "one"}]))
        return tmp_path / name / name

    for name, split, dataset in (
        *(("coco_karpathy_test.json", "test", "coco_karpathy"), ("flickr30k_val.json", "val", "flickr30k")),
        *(("cub-dev.json", "val", "cub"), ("abo_test_small.json", "test", "abo_small")),
    ):
        found = read_collection(listed(name))
        assert (found.name, found.split_sizes) == (dataset, {split: 1})
        assert read_collection(tmp_path / name).split_sizes == {split: 1}
    assert read_collection(listed("birds.json")).split_sizes == {"all": 1}
    found = read_collection(tmp_path / "birds.json" / "birds.json", split="test", centric="object")
    assert (found.name, found.centric, found.split_sizes) == ("birds", "object", {"test": 1})


def test_whole_paths_fewer_captions_and_half_characters(tmp_path: Path) -> None:
    """JSON can hold half a character, which no file can; nothing after the reader has to care."""
    file = tmp_path / "shop_test.json"
    file.write_text(json.dumps([{"image": "/export/shop/a.jpg", "caption": ["one", "two"]}]))
    refused(ImageError, "points outside", read_collection, file)
    found = read_collection(file, remove_prefix="/export/shop/", max_captions=1)
    assert (found.image_ids, found.captions) == (["a.jpg"], ["one"])
    file.write_bytes(b'\xef\xbb\xbf[{"image": "a.jpg", "caption": ["whole", "half \\ud800"]}]')
    refused(CaptionError, r"a\.jpg#1 holds half a character", read_collection, file)
    found = read_collection(file, skip_bad_captions=True)
    assert list(found.captions) == ["whole"]
    assert found.text_fingerprint
    file.write_text('[{"image": "a\\ud800.jpg", "caption": "one"}]')
    refused(ImageError, "holds half a character", read_collection, file)


def test_birds_with_species_splits_and_ten_captions(tmp_path: Path) -> None:
    names, file = cub(tmp_path), tmp_path / "CUB_200_2011" / "images.txt"
    for folder in (tmp_path, tmp_path / "CUB_200_2011"):
        found = read_collection(folder)
        assert found.describe() == (
            "cub: 6 images, 60 captions (10 captions per image); train 4, test 2; object-centric"
        )
        assert list(found.image_ids) == names
    assert list(found.splits) == ["train", "train", "test"] * 2
    assert found.captions_of(1) == [f"a bird 1 seen {i} times" for i in range(10)]
    assert found.records[0] == {"class": BIRDS[0], "species": "Black footed Albatross"}
    assert found.caption_ids[10] == f"{names[1]}#0"
    assert found.image(4).size == (4, 4)
    assert read_collection(tmp_path, max_captions=2).captions[2:4] == found.captions[10:12]
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert list(read_collection(tmp_path).image_ids) == names


def test_three_parts_from_a_table(tmp_path: Path) -> None:
    names, folder, file = cub(tmp_path), tmp_path / "CUB_200_2011", tmp_path / "parts.csv"
    refused(DataError, "does not exist", read_collection, folder, split_file=file)
    parts = ["train", "dev", "test"] * 2
    for written in (names, [name.split("/")[1] for name in names]):
        rows = [f"{name},{part}" for name, part in zip(written, parts, strict=True)]
        file.write_text("image_file,eval_status\n" + "\n".join(rows))
        assert list(read_collection(folder, split_file=file).splits) == ["train", "val", "test"] * 2
    for table, error, message in (
        ("image_file,eval_status\nBlack_footed_Albatross_0000_0.jpg,test\n", DataError, "no split to 5 of 6"),
        ("image_file,eval_status\nPenguin_0001.jpg,test\n", DataError, r"names 1 that are not there"),
        ("image_file,words\n", UsageError, "no column of the splits"),
        ("bird,eval_status\n", UsageError, "no column of the images"),
    ):
        file.write_text(table)
        refused(error, message, read_collection, folder, split_file=file)


def test_lists_that_disagree_or_lead_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file, content, message in (
        ("classes.txt", "1 001.Black_footed_Albatross\n", "labelled as class 2, None"),
        ("image_class_labels.txt", "1 1\n", "says nothing of 5 of 6 images"),
        ("train_test_split.txt", "1 1\n1 0\n", "line 2: number 1 twice"),
        ("images.txt", "1\n", "line 1: no value for 1"),
    ):
        cub(tmp_path)
        (tmp_path / "CUB_200_2011" / file).write_text(content)
        assert "CUB_200_2011.tgz" in refused(DataError, message, read_collection, tmp_path, "cub").fix
    cub(tmp_path)
    file = tmp_path / "CUB_200_2011" / "images.txt"
    rest = file.read_text().split("\n", 1)[1]
    monkeypatch.setattr("diptych.data.readers.cub._captions", lambda file: pytest.fail(f"read {file}"))
    for name, message in (
        *(("../../secret.jpg", "points outside"), ("/etc/secret.jpg", "points outside"), (".", "names '.'")),
    ):
        file.write_text(f"1 {name}\n{rest}")
        refused(DataError, message, read_collection, tmp_path)


CATEGORIES = ("dress", "jacket", "pants", "skirt", "top")


def name(product: int, number: int, category: str = "dress") -> str:
    return f"women/{category}/casual/{product}/{product}_{number}.jpeg"


def labels(folder: Path, **lines: list[str]) -> None:
    (folder / "labels").mkdir(exist_ok=True)
    for category in CATEGORIES:
        for split in ("train", "test"):
            content = "".join(f"{line}\n" for line in lines.get(f"{category}_{split}", []))
            (folder / "labels" / f"{category}_{split}_detect_all.txt").write_text(content)


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    labels(
        tmp_path,
        dress_train=[f"{name(1, i)}\t-1.5\tred dress" for i in range(2)] + [f"{name(2, 0)}\t0.5\tblue dress"],
        top_train=[f"{name(3, 0, 'top')}\t2\tred dress"],
        dress_test=[f"{name(4, i)}\t1\tgreen dress" for i in range(2)],
    )
    picture(tmp_path / name(4, 1), 9)
    return tmp_path


def test_the_official_layout(dataset: Path) -> None:
    found = read_collection(dataset)
    assert found.image_ids == [name(1, 0), name(1, 1), name(2, 0), name(3, 0, "top"), name(4, 0), name(4, 1)]
    assert [text.split()[0] for text in found.captions] == ["red", "red", "blue", "red", "green", "green"]
    assert found.split_sizes == {"train": 4, "test": 2}
    assert found.records[0]["detection_score"] == -1.5
    assert found.image(5).getpixel((0, 0))[0] == pytest.approx(9, abs=2)
    assert (found.name, found.centric) == ("fashion200k", "object")
    assert found.notes[0].startswith("4 products, 3 different descriptions")
    assert read_collection(dataset / "labels").image_ids == found.image_ids
    assert paths_of(found.records[0]) == (("women", "dress", "casual"),)
    assert [record["product"] for record in found.records] == ["1", "1", "2", "3", "4", "4"]
    first = read_collection(dataset, pictures="first")
    assert first.image_ids == [name(1, 0), name(2, 0), name(3, 0, "top"), name(4, 0)]
    assert "2 further images of a product left out" in first.notes


def test_half_a_dataset(dataset: Path) -> None:
    (dataset / "labels" / "top_test_detect_all.txt").unlink()
    refused(DataError, r"lacks 1 of 10 files of labels: top_test_detect_all\.txt", read_collection, dataset)
    labels(dataset)
    refused(DataError, "are empty", read_collection, dataset)
    (dataset / "women").rename(dataset / "men")
    assert "women.tar.gz" in refused(DataError, "no folder of images women/", read_collection, dataset).fix


def test_other_encodings_empty_captions_and_options_that_are_none(dataset: Path) -> None:
    labels(dataset, dress_train=[f"{name(1, 0)}\t1\t."])
    kept = read_collection(dataset, skip_bad_captions=True)
    assert kept.captions_per_image.tolist() == [0]
    assert kept.notes[1:] == ("1 empty captions left out",)
    (dataset / "labels" / "dress_train_detect_all.txt").write_bytes(
        f"{name(1, 0)}\t1\t".encode() + b"caf\xe9\n"
    )
    refused(DataError, "line 1 is not utf-8", read_collection, dataset)
    assert read_collection(dataset, encoding="latin-1").captions == ["café"]
    refused(UsageError, "pictures is 'last'", read_collection, dataset, pictures="last")


def tagged(*texts: str) -> list[dict[str, str]]:
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
        item_name=tagged("de_DE: Lampe", "en_GB: Lamp"),
        product_description=tagged("en_US:  A lamp\nfor reading "),
        bullet_point=tagged("en_US: bright", "de_DE: hell", "en_US: cheap"),
        product_type=[{"value": "LAMP"}],
        node=[{"node_id": 1, "node_name": "/Home/Lighting/Lamps"}],
    )
    chair = {
        "item_name": tagged("en_IN: Chair", "en_US: Seat"),
        "bullet_point": tagged("en_US: soft", "en_US: red"),
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
    colour = {**tagged("de_DE: Rot")[0], "standardized_values": ["Red", "Red"]}
    paths = ("/Categories/Home & Kitchen/Lamps", "/Categories/Home &amp; Kitchen/Lamps", "/Categories")
    lamp = listing(
        "B1",
        item_name=tagged("en_US: Lamp &amp; <b>shade</b>"),
        brand=tagged("en_US: Rivet", "en_GB: Rivet", "de_DE: Niete"),
        color=[colour],
        material=tagged("en_US: Wood &amp; Steel", "en_US: Glass"),
        style=tagged("en_US:  "),
        node=[*({"path": path} for path in paths), {"node_name": "/Categories/Sale//Lamps/"}],
    )
    write(tmp_path, [lamp])
    (record,) = read_collection(tmp_path).records
    assert attributes_of(record) == (
        *(("brand", "Rivet"), ("color", "Red"), ("material", "Wood & Steel"), ("material", "Glass")),
    )
    assert paths_of(record) == (("Home & Kitchen", "Lamps"), ("Sale", "Lamps"))


def named(item: str, text: str, image: str | None = "i1") -> dict[str, Any]:
    return listing(item, image, item_name=tagged(text))


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
    refused(ImageError, "B3 has no image", found.image, 2)
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
        ({"language": "fi", "caption": "name"}, "no listing of 6 has an image and name in fi"),
    ):
        refused(DataError, message, read_collection, tmp_path, **options)


def test_listings_with_one_picture_are_never_in_two_splits(tmp_path: Path) -> None:
    table = "image_id,height,width,path\n" + "".join(f"i{i},1,1,{i}.png\n" for i in range(100))
    write(
        tmp_path,
        [listing(f"B{n}", f"i{n % 100}", item_name=tagged(f"en_US: {n}")) for n in range(300)],
        images=table,
    )
    found = read_collection(tmp_path).divided()
    splits: dict[str, set[str]] = {}
    for record, split in zip(found.records, found.splits, strict=True):
        splits.setdefault(record["image_id"], set()).add(split)
    assert all(len(one) == 1 for one in splits.values())
    assert set(found.split_sizes) == {"train", "val", "test"}
    assert read_collection(tmp_path, validation=0, test=0).divided().split_sizes == {"train": 300}


def test_half_of_abo(tmp_path: Path) -> None:
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


def test_splits_from_a_file(tmp_path: Path) -> None:
    write(tmp_path, [listing(f"B{n}", item_name=tagged(f"en_US: {n}")) for n in range(3)])
    file = tmp_path / "splits.csv"
    file.write_text("B2,test\nB0,train\nB9,val\n")
    found = read_collection(tmp_path, split_file=file)
    assert dict(zip(found.image_ids, found.splits, strict=True)) == {"B0": "train", "B2": "test"}
    assert "1 items that splits.csv does not name left out" in found.notes
    for content, message in (("B0\n", "line 1 is 'B0'"), ("B0,a\nB0,b\n", "B0 has two splits")):
        file.write_text(content)
        refused(DataError, message, read_collection, tmp_path, split_file=file)


def test_captions_and_pictures_elsewhere_or_missing(tmp_path: Path) -> None:
    refused(DataError, r"no images\.txt", read_collection, tmp_path, "cub")
    names = cub(tmp_path)
    texts, seen = tmp_path / "said", tmp_path / "seen"
    (tmp_path / "cvpr2016_cub" / "text_c10").rename(texts)
    (tmp_path / "CUB_200_2011" / "images").rename(seen)
    found = read_collection(tmp_path, captions=texts, images=seen)
    assert found.n_captions == 60
    assert found.image(0).size == (4, 4)
    assert "diptych data show cub" in refused(DataError, "no captions near", read_collection, tmp_path).fix
    refused(DataError, r"folder .*gone does not exist", read_collection, tmp_path, captions=tmp_path / "gone")
    for name in names[4:]:
        (texts / name).with_suffix(".txt").unlink()
    with pytest.raises(DataError, match=f"no captions for 2 of 6 images, first {names[4]}"):
        read_collection(tmp_path, captions=texts)


def test_lists_of_several_datasets(tmp_path: Path) -> None:
    retrieval_json(tmp_path)
    (tmp_path / "flickr30k_test.json").write_text(json.dumps([{"image": "z.jpg", "caption": ["one"]}]))
    (tmp_path / "vqa_test.json").write_text(json.dumps([{"image": "z.jpg", "question": "who?"}]))
    refused(UsageError, "lists of 2 datasets: coco_karpathy, flickr30k", read_collection, tmp_path)
    assert read_collection(tmp_path, dataset="flickr30k").image_ids == ["z.jpg"]
    refused(UsageError, "no lists of 'vqa'", read_collection, tmp_path, dataset="vqa")
    (tmp_path / "flickr30k_dev.json").write_text(json.dumps([{"image": "y.jpg", "caption": ["one"]}]))
    (tmp_path / "flickr30k_val.json").write_text(json.dumps([{"image": "y.jpg", "caption": ["one"]}]))
    with pytest.raises(DataError, match=r"2 lists of val: flickr30k_dev\.json, flickr30k_val\.json"):
        read_collection(tmp_path, dataset="flickr30k")
    with pytest.raises(UsageError, match="split 'test' with the folder"):
        read_collection(tmp_path, dataset="flickr30k", split="test")
