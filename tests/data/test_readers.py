from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from miniatures import picture
from PIL import Image
from refusals import refused

from diptych.core.errors import CaptionError, DataError, UsageError
from diptych.data.readers import READERS, read_collection


def karpathy(folder: Path, images: list[dict[str, Any]], name: str = "dataset_tiny.json") -> Path:
    document = {"dataset": "tiny", "images": images}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(document))
    return folder


def entry(name: str, split: str, *captions: str, **more: Any) -> dict[str, Any]:
    sentences = [{"raw": raw, "sentid": hash((name, i))} for i, raw in enumerate(captions)]
    return {"filename": name, "split": split, "sentences": sentences, **more}


def test_karpathy_with_file_paths_and_restval(tmp_path: Path) -> None:
    folder = karpathy(
        tmp_path,
        [
            entry("a.png", "train", "one", "two ", filepath="train2014", cocoid=7),
            entry("b.png", "restval", "three", filepath="val2014"),
            entry("c.png", "test", "four", filepath="val2014"),
        ],
    )
    picture(tmp_path / "images" / "val2014" / "b.png", 9)
    found = read_collection(folder)
    assert found.name == "tiny"
    assert found.image_ids == ["train2014/a.png", "val2014/b.png", "val2014/c.png"]
    assert found.captions == ["one", "two", "three", "four"]
    assert found.split_sizes == {"train": 2, "test": 1}
    assert found.records[0] == {"cocoid": 7}
    assert found.caption_records[0] == {}
    assert found.image(1).getpixel((0, 0)) == (9, 0, 0)
    assert read_collection(folder, restval=False).split_sizes == {"train": 1, "restval": 1, "test": 1}
    assert read_collection(folder, max_captions=1).captions == ["one", "three", "four"]


def test_karpathy_gzipped_with_pictures_elsewhere(tmp_path: Path) -> None:
    folder = karpathy(tmp_path / "a", [entry("a.png", "test", "one")])
    file = folder / "dataset_tiny.json"
    (folder / "dataset_tiny.json.gz").write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()
    picture(tmp_path / "elsewhere" / "a.png", 5)
    found = read_collection(folder, images=tmp_path / "elsewhere")
    assert found.image(0).getpixel((0, 0)) == (5, 0, 0)


@pytest.mark.parametrize("raw", ["", "   ", "...", "\n"])
def test_an_empty_caption_is_named_or_left_out_and_counted(tmp_path: Path, raw: str) -> None:
    folder = karpathy(tmp_path, [entry("a.png", "test", "one", raw)])
    refused(CaptionError, r"of a\.png is empty", read_collection, folder)
    kept = read_collection(folder, skip_bad_captions=True)
    assert kept.captions == ["one"]
    assert kept.notes == ("1 empty captions left out",)


def test_a_caption_of_100_000_characters_is_named(tmp_path: Path) -> None:
    folder = karpathy(tmp_path, [entry("a.png", "test", "x" * 100_000)])
    refused(CaptionError, "has 100,000 characters, more than the 20,000 allowed", read_collection, folder)


def test_pairs_in_csv_tsv_and_jsonl_agree(tmp_path: Path) -> None:
    rows = [("a.png", "a, red thing", "train"), ("b.png", "blue", "test"), ("a.png", "red again", "train")]
    files = {
        mark: "\n".join(["image\tcaption\tsplit", *(f'{i}\t"{c}"\t{s}' for i, c, s in rows)])
        for mark in ",\t"
    }
    lines = [json.dumps({"image": i, "caption": c, "split": s}) for i, c, s in rows]
    kinds = {"csv": files[","].replace("\t", ","), "tsv": files["\t"], "jsonl": "\n".join(lines)}
    for kind, text in kinds.items():
        (tmp_path / f"shop.{kind}").write_text(text)
        found = read_collection(tmp_path / f"shop.{kind}")
        assert found.image_ids == ["a.png", "b.png"]
        assert found.captions == ["a, red thing", "red again", "blue"]
        assert found.caption_image.tolist() == [0, 0, 1]
        assert found.splits == ["train", "test"]


def test_hugging_face_datasets_on_disk(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    words = datasets.List(datasets.Value("string"))
    kinds = {"image": datasets.Image(), "caption": words, "split": datasets.Value("string")}
    columns = {
        "image": [Image.new("RGB", (4, 4), (colour, 0, 0)) for colour in (1, 2, 3)],
        "caption": [["a", "b"], ["c"], ["d", "e"]],
        "split": ["train", "test", "test"],
    }
    table = datasets.Dataset.from_dict(columns, features=datasets.Features(kinds))
    datasets.DatasetDict({"test": table}).save_to_disk(str(tmp_path / "hf"))
    found = read_collection(tmp_path / "hf", split_column="split")
    assert found.captions == ["a", "b", "c", "d", "e"]
    assert found.split_sizes == {"train": 1, "test": 2}
    assert found.caption_ids[:2] == ["test-0000000#0", "test-0000000#1"]
    assert found.split("test").image(1).getpixel((0, 0)) == (3, 0, 0)
    refused(UsageError, "no caption column 'words'", read_collection, tmp_path / "hf", caption_column="words")


def test_what_cannot_be_read(tmp_path: Path) -> None:
    refused(DataError, "does not exist", read_collection, tmp_path / "gone")
    (tmp_path / "notes.txt").write_text("hello")
    caught = refused(UsageError, r"no reader recognises .*notes.txt", read_collection, tmp_path / "notes.txt")
    assert ", ".join(READERS.names()) in caught.fix
    with pytest.raises(UsageError, match="unknown reader 'karpaty'.*did you mean 'karpathy'"):
        read_collection(tmp_path, reader="karpaty")
    karpathy(tmp_path / "k", [entry("a.png", "test", "one")])
    with pytest.raises(DataError, match="image folder .*gone does not exist"):
        read_collection(tmp_path / "k", images=tmp_path / "gone")
    karpathy(tmp_path / "k", [entry("a.png", "test", "one")], "dataset_two.json")
    refused(DataError, "2 candidates", read_collection, tmp_path / "k")


def test_what_pictures_show_is_known_or_given(tmp_path: Path, scenes_folder: Path) -> None:
    karpathy(tmp_path / "k", [entry("a.png", "test", "one")])
    assert read_collection(tmp_path / "k").centric is None
    document = {"dataset": "flickr8k", "images": [entry("a.png", "test", "one")]}
    (tmp_path / "k" / "dataset_tiny.json").write_text(json.dumps(document))
    assert read_collection(tmp_path / "k").centric == "scene"
    assert read_collection(tmp_path / "k", centric="object").centric == "object"
    refused(UsageError, "'both', it is scene or object", read_collection, tmp_path / "k", centric="both")
    assert read_collection(scenes_folder).centric == "scene"
