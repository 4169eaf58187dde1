"""XMarket's files of metadata: what is read, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from miniatures import picture
from refusals import refused

from diptych.commerce.readers.xmarket import parse_line
from diptych.core.errors import DataError, UsageError
from diptych.data.products import attributes_of, paths_of, picture_name
from diptych.data.readers import read_collection

LAMP: dict[str, Any] = {
    "asin": "B00LAMP001",
    "title": "<b>Desk Lamp</b> &amp; Shade\n",
    "averageRating": "4.3",
    "price": "$12.86",
    "imgUrl": '{"https://x/small.jpg": [50, 60], "https://x/large.jpg": [500, 600], "ftp://x/huge.jpg": [9, 9999]}',
    "related": {"sponsored": ["B1"], "alsoBought": []},
    "productDetails": {
        "Customer Reviews": "4.3 out of 5 stars",
        "ASIN": "B00LAMP001",
        "Best Sellers Rank": "#12 in Kitchen & Dining (See Top 100)",
        "Rank elsewhere": "Nr. 7 in Schreibtischlampen",
        "Style": "/* <![CDATA[ */ .zg_hrsr { margin: 0; padding: 0; } Modern",
        "Script": "P.when('A').execute(function(A) { A.go(); });",
        "Colour : ": ["Red", "Gold", "Red", ""],
        "Batteries\u200e": "\u200e2 AA",
        "Empty": "",
    },
    "overviewFeatures": {"Brand": "Lumi", "Colour": "Red"},
    "features": ["Bright", "Cheap &amp; small"],
    "categories": ["Home &amp; Kitchen", "›", "Lamps", "Desk Lamps"],
}


def write(file: Path, *lines: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in lines)
    content = text.encode()
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
    return file


def test_a_product_with_all_that_pages_have(tmp_path: Path) -> None:
    file = write(tmp_path / "metadata_us_Home.json.gz", LAMP)
    found = read_collection(file)
    assert found.image_ids == ["B00LAMP001"]
    assert found.captions == ["Desk Lamp & Shade"]
    record = found.records[0]
    assert paths_of(record) == (("Home & Kitchen", "Lamps", "Desk Lamps"),)
    colours = (("Colour", "Red"), ("Colour", "Gold"))
    assert attributes_of(record) == (("Brand", "Lumi"), *colours, ("Batteries", "2 AA"))
    assert record["picture_address"] == "https://x/large.jpg"
    assert (found.name, found.centric) == ("xmarket-us", "object")
    assert "6 values that are ranks, reviews, ids, dates or code are no attributes" in found.notes
    assert attributes_of(read_collection(file, attributes="features").records[0]) == (  # type: ignore[index]
        ("feature", "Bright"),
        ("feature", "Cheap & small"),
    )
    everything = attributes_of(read_collection(file, attributes="all").records[0])  # type: ignore[index]
    assert len(everything) == 6


def test_json_python_and_lists_are_the_same(tmp_path: Path) -> None:
    products = [{**LAMP, "asin": f"B{n}", "title": f"it's {n} “inches”", "price": None} for n in range(4)]
    as_json = write(tmp_path / "a" / "metadata_us_Home.json", *products)
    as_python = write(tmp_path / "b" / "metadata_us_Home.json", *map(repr, products), "")
    as_lists = write(
        tmp_path / "c" / "metadata_us_Home.json.gz", repr(products[:3]), [], json.dumps(products[3:])
    )
    first, *others = (read_collection(file) for file in (as_json, as_python, as_lists))
    for other in others:
        assert other.image_ids == first.image_ids
        assert other.records == first.records
        assert other.captions == first.captions


def test_pictures_by_the_names_that_the_downloader_gives(tmp_path: Path) -> None:
    ids = ["B1", "../B2", "b3", "B4", "B5.x"]
    write(tmp_path / "metadata_us_Home.json", *({**LAMP, "asin": one} for one in ids))
    for name in ("B1.png", "B1.webp", f"{picture_name('../B2')}.png", "b3.PNG", "B4.txt", "B5.x.jpg"):
        picture(tmp_path / "images" / "x.png", 7)
        (tmp_path / "images" / "x.png").rename(tmp_path / "images" / name)
    found = read_collection(tmp_path)
    assert found.pictured.tolist() == [True, True, True, False, True]
    assert found.source.names == ["B1.png", f"{picture_name('../B2')}.png", "b3.PNG", "B5.x.jpg"]  # type: ignore[attr-defined]
    assert found.image(1).getpixel((0, 0)) == (7, 0, 0)
    assert read_collection(tmp_path, missing="skip").image_ids == ["B1", "../B2", "b3", "B5.x"]
    refused(DataError, "1 of 5 products have no image in .*: B4", read_collection, tmp_path, missing="error")


def test_several_files_and_markets(tmp_path: Path) -> None:
    toy = {**LAMP, "categories": ["Toys", "Lamps"], "title": "other"}
    write(tmp_path / "metadata_us_Home.json.gz", LAMP)
    write(tmp_path / "metadata_us_Toys.json", toy, {**toy, "asin": "B2"})
    write(tmp_path / "metadata_us_Toys.json.gz", {**toy, "asin": "B9"})
    (tmp_path / "ratings_us_Toys.txt.gz").write_bytes(b"")
    found = read_collection(tmp_path)
    assert found.image_ids == ["B00LAMP001", "B2"]
    places = (("Home & Kitchen", "Lamps", "Desk Lamps"), ("Toys", "Lamps"))
    assert paths_of(found.records[0]) == places  # type: ignore[index]
    assert found.captions[0] == "Desk Lamp & Shade"
    assert paths_of(read_collection(tmp_path, duplicates="first").records[0]) == places[:1]  # type: ignore[index]
    refused(
        DataError,
        r"Toys\.json, line 1: product B00LAMP001 was",
        read_collection,
        tmp_path,
        duplicates="error",
    )
    assert read_collection(tmp_path / "metadata_us_Toys.json").captions == ["other", "other"]
    write(tmp_path / "metadata_de_Toys.json", {**toy, "asin": "B3"})
    refused(UsageError, "2 markets: de, us", read_collection, tmp_path)
    assert read_collection(tmp_path, market="de").name == "xmarket-de"
    wrong = {
        "market": "fr",
        "missing": "no",
        "attributes": "x",
        "duplicates": "y",
        "test": 2,
    }
    for option, value in wrong.items():
        refused(UsageError, str(value), read_collection, tmp_path, **{"market": "us", option: value})


def test_products_that_lack_things(tmp_path: Path) -> None:
    file = write(
        tmp_path / "metadata_us_Home.json",
        {"asin": "B1"},
        {"asin": "B2", "title": None, "categories": None, "imgUrl": None, "productDetails": None},
        {
            "asin": "B3",
            "title": "!",
            "categories": [None, 3, ""],
            "productDetails": {},
            "overviewFeatures": [],
        },
        {"asin": "B4", "title": "Lamp \ud83d", "categories": "Home > Lamps", "imgUrl": "not json {"},
    )
    found = read_collection(file, validation=0, test=0)
    assert found.captions == ["Lamp"]
    assert found.caption_image.tolist() == [3]
    assert found.records == [{}, {}, {"title": "!"}, {"title": "Lamp", "category_path": ("Home", "Lamps")}]
    assert found.split_sizes == {"all": 4}
    assert found.divided().split_sizes == {"train": 4}


def test_bad_lines_are_left_out_when_asked(tmp_path: Path) -> None:
    file = write(tmp_path / "metadata_us_Home.json", "{broken", LAMP, "[1]")
    found = read_collection(file, skip_bad_lines=True)
    assert found.image_ids == ["B00LAMP001"]
    assert "2 lines that are no products left out" in found.notes
    file.write_bytes("{'asin': 'B1', 'title': 'caf\xe9'}\n".encode("latin-1"))
    refused(DataError, "line 1 is not utf-8", read_collection, file)
    write(file, "")
    refused(DataError, "has no products", read_collection, file)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_what_python_prints_is_read_back(value: Any) -> None:
    assert parse_line(repr(value), "here") == value
    assert parse_line(json.dumps(value), "here") == value
