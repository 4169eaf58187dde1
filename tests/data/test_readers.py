"""What holds for every reader: its declaration, how it is recognised, and how few files reading enters."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from miniatures import cub, flickr30k, karpathy, picture, retrieval_json
from PIL import Image
from refusals import refused

from diptych.commerce.readers.xmarket import MAX_LITERAL
from diptych.commerce.scenes.products import make_product_scenes
from diptych.core.errors import CaptionError, DataError, DiptychError, ImageError, UsageError
from diptych.data.readers import READERS, read_collection
from diptych.data.readers.contract import fitting
from diptych.data.scenes import make_scenes


def texts(**files: str) -> Callable[[Path], object]:
    """Return what writes text files; __ in a name stands for a slash, and a gzipped one is packed."""

    def write(folder: Path) -> None:
        for name, text in files.items():
            path = folder / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            content = text.encode()
            path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)

    return write


def regions(folder: Path) -> None:
    np.save(folder / "test_ims.npy", np.ones((2, 3, 4), dtype=np.float32))
    (folder / "test_caps.txt").write_text("one\ntwo\n")


LAYOUTS: dict[str, tuple[Callable[[Path], object], bool]] = {
    "abo": (texts(**{"listings__metadata__listings_0.json.gz": "{}"}), False),
    "captions-tsv": (texts(**{"train.tsv": "a dog\thttp://x/1.jpg\n"}), True),
    "cub": (cub, False),
    "fashion200k": (texts(**{"labels__dress_train_detect_all.txt": ""}), False),
    "feed": (texts(**{"shop.csv": "id,title,link\n1,a,l\n"}), True),
    "fine-grained": (texts(**{"MSCOCO_FG_ann.json": '{"a": ["one"]}'}), True),
    "flickr30k": (lambda folder: flickr30k(folder, {"train": ["1"], "val": ["2"], "test": ["3"]}), True),
    "huggingface": (texts(**{"dataset_info.json": "{}"}), False),
    "images": (lambda folder: picture(folder / "deep" / "down" / "a.JPG"), False),
    "karpathy": (lambda folder: karpathy(folder, {"a.png": ("test", ["one"])}), True),
    "pairs": (texts(**{"pairs.jsonl": '{"image": "a.png", "caption": "one"}\n'}), True),
    "precomp": (regions, False),
    "product-scenes": (lambda folder: make_product_scenes(folder / "it", n_products=2), False),
    "retrieval-json": (retrieval_json, True),
    "scenes": (lambda folder: make_scenes(folder / "it", n_train=1, n_val=1, n_test=1), False),
    "webdataset": (texts(**{"train-000.tar": "x"}), True),
    "xmarket": (texts(**{"metadata_us_Home.json.gz": '{"asin": "B1"}'}), True),
}
"""What writes a folder of each format, and whether its first file by itself is recognised too."""


def test_it_is_declared_and_recognised(tmp_path: Path) -> None:
    for reader in READERS:
        assert reader.patterns
        assert all(reader.options.values())
        write, is_file = LAYOUTS[reader.name]
        folder = tmp_path / reader.name
        folder.mkdir()
        write(folder)
        folder = folder / "it" if (folder / "it").is_dir() else folder
        assert next(iter(fitting(folder))).name == reader.name
        if is_file:
            file = next(path for path in sorted(folder.iterdir()) if path.is_file())
            assert next(iter(fitting(file))).name == reader.name
        with pytest.raises(UsageError, match=f"reader '{reader.name}' has no option 'colour'"):
            read_collection(folder, reader.name, colour=3)


def test_names_before_contents(tmp_path: Path) -> None:
    """Files are opened where formats share a name, and what lies in the same folder does not mislead."""
    texts(
        **{"dataset.json": json.dumps({"images": []}), "notes.csv": "image,caption\n", "train.tar": ""},
        **{"MSCOCO_FG_ann.json": "{}", "coco_test.json": '[{"image": "a", "caption": "b"}]'},
    )(tmp_path)
    assert [one.name for one in fitting(tmp_path)][:2] == ["karpathy", "fine-grained"]
    texts(**{"results.csv": "image,caption\na.png,one\n"})(tmp_path / "other")
    assert [one.name for one in fitting(tmp_path / "other")] == ["pairs"]
    texts(**{".hidden.csv": "image,caption\n", "readme.md": ""})(tmp_path / "none")
    refused(UsageError, "no reader recognises", read_collection, tmp_path / "none")


def karpathy_folder(folder: Path, images: list[dict[str, Any]], name: str = "dataset_tiny.json") -> Path:
    document = {"dataset": "tiny", "images": images}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(document))
    return folder


def entry(name: str, split: str, *captions: str, **more: Any) -> dict[str, Any]:
    sentences = [{"raw": raw, "sentid": hash((name, i))} for i, raw in enumerate(captions)]
    return {"filename": name, "split": split, "sentences": sentences, **more}


def test_karpathy_with_file_paths_and_restval(tmp_path: Path) -> None:
    folder = karpathy_folder(
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


def test_captions_that_cannot_be_used(tmp_path: Path) -> None:
    for raw in ("", "   ", "...", "\n"):
        folder = karpathy_folder(tmp_path, [entry("a.png", "test", "one", raw)])
        refused(CaptionError, r"of a\.png is empty", read_collection, folder)
    folder = karpathy_folder(tmp_path, [entry("a.png", "test", "x" * 100_000)])
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
    karpathy_folder(tmp_path / "k", [entry("a.png", "test", "one")])
    with pytest.raises(DataError, match="image folder .*gone does not exist"):
        read_collection(tmp_path / "k", images=tmp_path / "gone")
    karpathy_folder(tmp_path / "k", [entry("a.png", "test", "one")], "dataset_two.json")
    refused(DataError, "2 candidates", read_collection, tmp_path / "k")


def test_what_pictures_show_is_known_or_given(tmp_path: Path, scenes_folder: Path) -> None:
    karpathy_folder(tmp_path / "k", [entry("a.png", "test", "one")])
    assert read_collection(tmp_path / "k").centric is None
    document = {"dataset": "flickr8k", "images": [entry("a.png", "test", "one")]}
    (tmp_path / "k" / "dataset_tiny.json").write_text(json.dumps(document))
    assert read_collection(tmp_path / "k").centric == "scene"
    assert read_collection(tmp_path / "k", centric="object").centric == "object"
    refused(UsageError, "'both', it is scene or object", read_collection, tmp_path / "k", centric="both")
    assert read_collection(scenes_folder).centric == "scene"


LABELS = [
    f"{kind}_{split}" for kind in ("dress", "jacket", "pants", "skirt", "top") for split in ("train", "test")
]
LISTINGS, IMAGES = "listings/metadata/listings_0.json.gz", "images/metadata/images.csv.gz"
NAMED = [{"language_tag": "en_US", "value": "a"}]
LISTING = {
    "item_id": "B1",
    "main_image_id": "i1",
    "item_name": NAMED,
    "country": "US",
    "domain_name": "amazon.com",
}

WHOLE: dict[str, dict[str, str]] = {
    "abo": {LISTINGS: json.dumps(LISTING), IMAGES: "image_id,path\ni1,a1/1.png\n", "images/small/0.png": ""},
    "captions-tsv": {"images/0.png": ""},
    "fashion200k": {"women/0.png": "", **{f"labels/{name}_detect_all.txt": "" for name in LABELS}},
}
"""What lies there beside the file, by reader; a picture's content is not given."""

LINE = 'the "0" of it\thttp://example.org/0.jpg\n'
LAUGHS = '<!DOCTYPE rss [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><rss><item><id>&b;</id></item></rss>'

Case = tuple[Any, ...]
"""The file's content; the error, where it is no ``DataError``; what it says; options of the reader."""

CASES: dict[tuple[str, str], list[Case]] = {
    ("karpathy", "dataset.json"): [
        ("not json", "is not JSON"),
        ("[1, 2]", "is not Karpathy's JSON: no list under 'images'"),
        ('{"images": {}}', "is not Karpathy's JSON"),
        ('{"images": [{"file": "a.png"}]}', "image 0 is not as Karpathy's JSON says"),
        ('{"images": [7]}', "image 0 is not as Karpathy's JSON says"),
        (
            '{"annotations": [], "images": [{"filename": "a", "split": "t", "sentences": [{}]}]}',
            "KeyError: 'raw'",
        ),
    ],
    ("pairs", "pairs.csv"): [
        ("image,words\na.png,one\n", UsageError, "has no caption column"),
        ("Bild,Text\na.png,one\n", UsageError, "has no image column and no caption column"),
        ("image,caption\n", "has no rows"),
        ("image,caption\na.png,\n", CaptionError, r"line 2, caption a\.png#0 is empty"),
        ("image,caption\n,one\n", "line 2: no image name"),
        (
            "image,caption,split\na.png,x,train\na.png,y,test\n",
            r"line 3: a\.png is in split 'train' \(pairs\.csv, line 2\) and in 'test'",
        ),
        ("image,caption\n../../a.png,one\n", "points outside"),
    ],
    ("captions-tsv", "train.tsv"): [
        ("", "is empty"),
        ("a caption alone", "neither a caption and an address nor headings"),
        ("caption\tprice", "neither a caption and an address nor headings"),
        (f"{LINE}no address", "Row #2: Expected 2 columns, got 1"),
        (LINE, UsageError, "has no column 'words'", {"caption_column": "words"}),
        ("caption\turl\none\tu", UsageError, "has no column 'file'", {"image_column": "file"}),
        ("\thttp://a", CaptionError, "line 1 is empty"),
        ("caption\tpath\none\t../../etc/passwd", ImageError, "points outside .*line 2"),
        ("caption\tpath\none\t/etc/passwd", ImageError, "points outside"),
        ("caption\tpath\none\tgone.png", "0 images have one", {"missing": "skip"}),
        (LINE, "the image folder gone does not exist", {"images": "gone"}),
        (LINE, UsageError, "missing is 'maybe'", {"missing": "maybe"}),
        (LINE, UsageError, "are no shares", {"test": 0.7, "validation": 0.7}),
    ],
    ("feed", "feed.csv"): [
        (b"id,title,link\n,a,l\n", "line 2: '' is no id of a product"),
        (b"id,title,link\n" + b"i" * 300 + b",a,l\n", "is no id of a product"),
        (b"id,title,product_type\n1,a,%s\n" % b" > ".join([b"a"] * 60), "category of 1 has 60 levels"),
        (b"id,title,link\n", "feed has no products"),
        (b"title,link\na,l\n", UsageError, "has no column id"),
        (b",,\n1,a\n", UsageError, "has no column id"),
    ],
    ("feed", "feed.xml.gz"): [
        (LAUGHS, "the document declares a type"),
        ('<!DOCTYPE rss SYSTEM "file:///etc/passwd"><rss></rss>', "declares a type"),
        ("<rss><item><id>1</id></rss>", "is corrupt: mismatched tag: line 1"),
        ("<rss><item><id>&b;</id></item></rss>", "is corrupt: undefined entity"),
        ("<rss>" + "<a>" * 40, "nested more than 32 deep"),
        ("<rss><item><id>1</id><title>" + "x" * (1 << 23), "item 1 is longer"),
        ('<rss><item><id>1</id><a b="' + "x" * (1 << 23), "item 1 is longer"),
        ("<rss><item><id>1</id>" + '<link href="https://x/1"/>' * 300_000, "item 1 is longer"),
        ("<rss><item><title>a</title></item></rss>", "item 1: '' is no id"),
        ("<rss></rss>", "has no products"),
    ],
    ("fashion200k", "labels/dress_train_detect_all.txt"): [
        ("a.jpeg\t1", r"dress_train_detect_all\.txt, line 1 has 2 fields"),
        ("a.jpeg 1 red dress", "has 1 fields"),
        ("a.jpeg\tscore\tred", "'score' is no score"),
        ("\t1\tred", "line 1 has 3 fields, not an image"),
        ("a.jpeg\t1\t ", CaptionError, r"dress_train_detect_all\.txt, line 1, caption a\.jpeg#0 is empty"),
        ("../a.jpeg\t1\tred", "points outside"),
    ],
    ("retrieval-json", "a_test.json"): [
        ([{"image": "a.jpg", "caption": "one"}, {"image": 3, "caption": "x"}], "entry 1 has no"),
        ([{"image": "a.jpg", "caption": "one"}, {"image": "b.jpg"}], "entry 1 has no image and"),
        ([{"image": "a.jpg", "caption": [1]}], "entry 0 has no image and caption"),
        ([{"image": "a.jpg", "caption": "one"}, 7], "entry 1 has no image and caption"),
        ([{"image": "a.jpg", "caption": "  "}], CaptionError, r"a_test\.json, caption a\.jpg#0 is empty"),
        ({"image": "a.jpg", "caption": "one"}, "is not a list"),
        ([], "lists no images"),
    ],
    ("xmarket", "metadata_us_Home.json.gz"): [
        ("{broken", "line 1 is neither JSON"),
        ("__import__('os').system('true')", "nor a Python literal"),
        ("{'asin': 'B1', 'n': 9**9**9}", "nor a Python literal"),
        ("{'asin': 'B1', 'n': f'{1}'}", "nor a Python literal"),
        ("'" + "\\'" * 50_000, "nor a Python literal"),
        ("[" * 100_000, "line 1 is neither JSON nor a Python literal"),
        ('{"asin": ' * 900 + "1" + "}" * 900, "neither JSON|it has no asin"),
        ("9" * 5000, "neither JSON"),
        ("{'asin': 'B', 'x': '" + "x" * MAX_LITERAL + "'}", "characters are too long"),
        ("1", "line 1 is no product: it has no asin"),
        ('{"title": "lamp"}', "it has no asin"),
        ('[{"asin": "B1"}, {"asin": 3}]', "it has no asin"),
        ('{"asin": " "}', "is no id of a product"),
        ('{"asin": "B\\ud800"}', "is no id of a product"),
        (json.dumps({"asin": "B1", "categories": ["a"] * 51}), "category of B1 has 51 levels, more than 50"),
    ],
    ("abo", LISTINGS): [
        (b"{broken", r"listings_0\.json\.gz, line 1 is not JSON"),
        (b"[1]", r"line 1 is not a listing \(TypeError"),
        (b"{}", r"line 1 is not a listing \(KeyError: 'item_id'"),
        (b'{"item_id": "B", "item_name": ["lamp"]}', "not a listing"),
        (b'{"item_id": "B", "node": ["/Home"]}', "not a listing"),
        ({**LISTING, "node": [{"path": "/a" * 60}]}, "category of B1 has 60 levels, more than 50"),
        (
            {**LISTING, "item_name": [{"language_tag": "en_US", "value": "!"}]},
            CaptionError,
            "line 1, caption B1#0 is empty: '!'",
        ),
    ],
    ("abo", IMAGES): [
        ("image_id,height\ni1,4\n", UsageError, "has no column of the path"),
        ("id,file\n", UsageError, "has no column of the image_id"),
        ("image_id,path\ni1,../../../etc/passwd\n", "points outside"),
        ("image_id,path\ni1\n", r"1 of 1 products have no image in .*small, the first: B1"),
        ('image_id,path\n"' + "x" * 200_000 + "\n", "the row is no table.s: field larger"),
    ],
}


def test_what_a_file_may_not_hold(tmp_path: Path) -> None:
    for number, ((reader, file), cases) in enumerate(CASES.items()):
        for case in cases:
            folder = tmp_path / str(number)
            refuse(folder, reader, file, case)
            shutil.rmtree(folder)


def refuse(tmp_path: Path, reader: str, file: str, case: Case) -> None:
    content, *rest = case
    error: type[DiptychError] = next((one for one in rest if isinstance(one, type)), DataError)
    (message,) = (one for one in rest if isinstance(one, str))
    options = next((one for one in rest if isinstance(one, dict)), {})
    for name, given in {**WHOLE.get(reader, {}), file: content}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".png"):
            picture(path)
            continue
        text = given if isinstance(given, bytes | str) else json.dumps(given)
        whole = text.encode() if isinstance(text, str) else text
        path.write_bytes(gzip.compress(whole) if name.endswith(".gz") else whole)
    recognised = reader in ("karpathy", "pairs", "fashion200k", "abo")  # by what lies in the folder
    source = (tmp_path, None) if recognised else (tmp_path / file, reader)
    assert refused(error, message, read_collection, *source, **options).fix
