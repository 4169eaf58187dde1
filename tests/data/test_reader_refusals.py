"""What each reader of collections refuses: a folder of its layout in which one file holds something else."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from miniatures import picture
from refusals import refused

from diptych.commerce.readers.xmarket import MAX_LITERAL
from diptych.core.errors import CaptionError, DataError, DiptychError, ImageError, UsageError
from diptych.data.readers import read_collection

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
        ("\t1\tred", "line 1 has 3 fields, not a picture"),
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
        ([], "lists no pictures"),
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


@pytest.mark.parametrize(
    ("reader", "file", "case"),
    [
        pytest.param(*key, case, id=f"{key[0]}-{number}")
        for key, cases in CASES.items()
        for number, case in enumerate(cases)
    ],
)
def test_what_a_file_may_not_hold(tmp_path: Path, reader: str, file: str, case: Case) -> None:
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
