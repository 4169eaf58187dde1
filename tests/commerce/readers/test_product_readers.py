"""Product feeds and XMarket's metadata: what shops write, and what is refused."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from miniatures import picture
from refusals import refused

from diptych.commerce.readers.feed import paths_in
from diptych.commerce.readers.xmarket import parse_line
from diptych.core.errors import DataError, UsageError
from diptych.data.products import attributes_of, paths_of, picture_name
from diptych.data.readers import read_collection

HEADER = "id\ttitle\tlink\timage_link\tproduct_type\tgoogle_product_category\tbrand\tcolor\tprice\n"
TAXONOMY = """# Google_Product_Taxonomy_Version: 2021-09-21
166 - Apparel & Accessories
2271 - Apparel & Accessories > Dresses
"""


def write(folder: Path, text: str, name: str = "feed.tsv", encoding: str = "utf-8") -> Path:
    file = folder / name
    content = text.encode(encoding)
    file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return file


def row(product: str, **fields: str) -> str:
    names = HEADER.strip().split("\t")[1:]
    return "\t".join([product, *(fields.get(name, "") for name in names)]) + "\n"


def test_a_feed_of_a_shop(tmp_path: Path) -> None:
    first = row(
        "s-1",
        title="<b>Red</b> dress, 3&nbsp;&lt;5",
        image_link="https://x/1.jpg",
        product_type='"Women > Dresses > Maxi, long,Sale & More > A>B"',
        google_product_category="2271",
        brand="Fair &amp; Co",
        color="Red",
        price="9 EUR",
    )
    other = row("s-2", title="Shoe", product_type="Women > Shoes")
    file = write(tmp_path, f"\ufeff{HEADER}{first}\n{other}")
    picture(tmp_path / "images" / "s-2.png", 9)
    found = read_collection(tmp_path)
    assert found.image_ids == ["s-1", "s-2"]
    assert found.captions == ["Red dress, 3 <5", "Shoe"]
    assert paths_of(found.records[0]) == (("Women", "Dresses", "Maxi, long"), ("Sale & More", "A>B"))
    assert attributes_of(found.records[0]) == (("brand", "Fair & Co"), ("color", "Red"))
    assert found.records[0]["picture_address"] == "https://x/1.jpg"
    assert "price" not in found.records[0]
    assert found.records[1] == {"title": "Shoe", "category_path": ("Women", "Shoes")}
    assert found.pictured.tolist() == [False, True]
    assert found.image(1).getpixel((0, 0)) == (9, 0, 0)
    assert (found.name, found.centric) == ("feed", "object")
    assert read_collection(file, missing="skip").image_ids == ["s-2"]


def test_delimiters(tmp_path: Path) -> None:
    cases: Any = [("a.csv", ","), ("a.csv.gz", ";"), ("a.txt", "|"), ("a.tsv", "\t")]
    for name, delimiter in cases:
        lines = [
            ["id", "Title", "g:product type", "image link"],
            ["1", '"a\nlamp"', "Home > Lamps", "https://x"],
        ]
        found = read_collection(
            write(tmp_path, "".join(delimiter.join(line) + "\r\n" for line in lines), name)
        )
        assert found.captions == ["a lamp"]
        assert paths_of(found.records[0]) == (("Home", "Lamps"),)  # type: ignore[index]


def test_ids_of_categories_become_paths(tmp_path: Path) -> None:
    file = write(
        tmp_path, 'id,title,google_product_category\n1,a,2271\n2,b,999\n3,c,"A > Food, Drink"\n', "f.csv"
    )
    without = read_collection(file)
    assert [paths_of(one) for one in without.records or ()] == [(), (), (("A", "Food, Drink"),)]
    assert any(note.startswith("2 category ids without a path") for note in without.notes)
    taxonomy = write(tmp_path, TAXONOMY, "taxonomy-with-ids.en-US.txt.gz")
    found = read_collection(file, taxonomy=taxonomy)
    assert paths_of(found.records[0]) == (("Apparel & Accessories", "Dresses"),)  # type: ignore[index]
    assert "1 category ids that the taxonomy does not have" in found.notes
    assert not paths_of(read_collection(file, categories="product_type").records[0])  # type: ignore[index]
    plain = write(tmp_path, "# Google_Product_Taxonomy_Version: 1\nApparel\n", "plain.txt")
    refused(DataError, "has no ids", read_collection, file, taxonomy=plain)


def _slow_paths_in(text: str) -> list[tuple[str, ...]]:
    parts: list[str] = []
    for one in re.split(rf",\s+(?={re.escape(text.split(' > ')[0] + ' > ')})", text):
        first, *others = one.split(",")
        parts.append(first)
        for other in others:
            if " > " in other and " > " in parts[-1] and not other[0].isspace():
                parts.append(other)
            else:
                parts[-1] += f",{other}"
    names = (tuple(filter(None, (" ".join(name.split()) for name in part.split(" > ")))) for part in parts)
    return [path for path in names if path]


@given(st.lists(st.sampled_from(["a", "b", " ", ",", " > ", ", ", "a > "]), max_size=14).map("".join))
def test_paths_of_a_field_are_those_of_the_slow_form(text: str) -> None:
    assert paths_in(text) == _slow_paths_in(text)


def test_repeated_columns_details_and_groups(tmp_path: Path) -> None:
    lines = ["id,item_group_id,title,product_type,product_type,product_detail,additional_image_link"]
    details = '"General:Bulb:E14,""Size, all:Height"",x","https://a,https://b"'
    lines += [f"v{n},model-{n // 10},lamp,Home > Lamps,Sale > Lamps,{details}" for n in range(200)]
    found = read_collection(write(tmp_path, "\n".join(lines), "feed.csv")).divided()
    assert paths_of(found.records[0]) == (("Home", "Lamps"), ("Sale", "Lamps"))
    assert attributes_of(found.records[0]) == (("Bulb", "E14"), ("Size, all", "Height"))
    for start in range(0, 200, 10):  # variants of a model are never in two splits
        assert len(set(found.splits[start : start + 10])) == 1
    assert len(found.split_sizes) > 1


def test_products_that_are_there_twice(tmp_path: Path) -> None:
    file = write(
        tmp_path, HEADER + "".join(row("1", title=one, product_type=f"Home > {one}") for one in ("a", "b"))
    )
    with pytest.raises(DataError, match=r"feed\.tsv, line 3: product 1 was in feed\.tsv, line 2") as caught:
        read_collection(file)
    assert "duplicates=first" in caught.value.fix
    first = read_collection(file, duplicates="first")
    assert first.captions == ["a"]
    assert "1 lines that list a product again left out" in first.notes
    merged = read_collection(file, duplicates="merge")
    assert paths_of(merged.records[0]) == (("Home", "a"), ("Home", "b"))  # type: ignore[index]


def test_lines_with_other_numbers_of_fields_and_stray_quotes(tmp_path: Path) -> None:
    file = write(tmp_path, "id,title,link\n1,a,l\n2,b\n3,c,l,x\n4,d,l\n", "feed.csv")
    refused(DataError, r"feed\.csv, line 3 has 2 fields, the header has 3", read_collection, file)
    found = read_collection(file, skip_bad_lines=True)
    assert found.image_ids == ["1", "4"]
    assert "2 lines with more or fewer fields than columns left out" in found.notes
    long = "".join(f"{n}\tlamp\tl\n" for n in range(100, 20_000))
    stray = write(tmp_path, f'id\ttitle\tlink\n1\t"Big" lamp\tl\nx\t"lamp 24\tl\n{long}', "feed.tsv")
    with pytest.raises(DataError, match=r"feed\.tsv, line 3: the row is no table's: field larger") as caught:
        read_collection(stray)
    assert "quotes=false" in caught.value.fix
    assert read_collection(stray, quotes=False).captions[:2] == ['"Big" lamp', '"lamp 24']


def test_bad_options_and_folders(tmp_path: Path) -> None:
    file = write(tmp_path, "id,title,link\n1,a,l\n", "feed.csv")
    wrong = {"categories": "both", "missing": "no", "duplicates": "last", "validation": 2}
    for option, value in wrong.items():
        refused(UsageError, option, read_collection, file, **{option: value})
    write(tmp_path, file.read_text(), "other.csv")
    refused(DataError, r"one product feed expected in .*: feed\.csv, other\.csv", read_collection, tmp_path)


RSS = """<?xml version="1.0" encoding="ISO-8859-1"?>
<rss version="2.0" xmlns:g="http://base.google.com/ns/1.0"><channel><title>Caf\xe9</title>
<item><g:id>1</g:id><title><![CDATA[A <b>red</b> caf\xe9 lamp &amp; more]]></title><link>https://x/1</link>
<g:image_link>https://x/1.jpg</g:image_link><g:product_type>Home &gt; Lamps</g:product_type>
<g:product_type>Sale &gt; Lamps</g:product_type><g:color>Red</g:color>
<g:product_detail><g:section_name>General</g:section_name><g:attribute_name>Bulb</g:attribute_name>
<g:attribute_value>E14</g:attribute_value></g:product_detail></item>
<item><g:id>2</g:id><g:title>Chair</g:title><g:product_type/></item></channel></rss>
"""


def test_rss(tmp_path: Path) -> None:
    cases: Any = ["feed.xml", "feed.xml.gz"]
    for name in cases:
        found = read_collection(write(tmp_path, RSS, name, "latin-1"))
        assert found.image_ids == ["1", "2"]
        assert found.captions == ["A red café lamp & more", "Chair"]
        assert paths_of(found.records[0]) == (("Home", "Lamps"), ("Sale", "Lamps"))
        assert attributes_of(found.records[0]) == (("color", "Red"), ("Bulb", "E14"))
        assert found.records[0]["picture_address"] == "https://x/1.jpg"
        assert found.records[1] == {"title": "Chair"}


def test_atom(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:g="http://base.google.com/ns/1.0"><entry><g:id>1</g:id>'
        '<title>Lamp</title><link href="https://x/1"/><g:google_product_category>2271</g:google_product_category>'
        "</entry></feed>",
        "atom.xml",
    )
    taxonomy = write(tmp_path, TAXONOMY, "t.txt")
    found = read_collection(file, taxonomy=taxonomy)
    assert found.records == [{"title": "Lamp", "category_path": ("Apparel & Accessories", "Dresses")}]


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


def write_lines(file: Path, *lines: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in lines)
    content = text.encode()
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
    return file


def test_a_product_with_all_that_pages_have(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "metadata_us_Home.json.gz", LAMP)
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
    as_json = write_lines(tmp_path / "a" / "metadata_us_Home.json", *products)
    as_python = write_lines(tmp_path / "b" / "metadata_us_Home.json", *map(repr, products), "")
    as_lists = write_lines(
        tmp_path / "c" / "metadata_us_Home.json.gz", repr(products[:3]), [], json.dumps(products[3:])
    )
    first, *others = (read_collection(file) for file in (as_json, as_python, as_lists))
    for other in others:
        assert other.image_ids == first.image_ids
        assert other.records == first.records
        assert other.captions == first.captions


def test_pictures_by_the_names_that_the_downloader_gives(tmp_path: Path) -> None:
    ids = ["B1", "../B2", "b3", "B4", "B5.x"]
    write_lines(tmp_path / "metadata_us_Home.json", *({**LAMP, "asin": one} for one in ids))
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
    write_lines(tmp_path / "metadata_us_Home.json.gz", LAMP)
    write_lines(tmp_path / "metadata_us_Toys.json", toy, {**toy, "asin": "B2"})
    write_lines(tmp_path / "metadata_us_Toys.json.gz", {**toy, "asin": "B9"})
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
    write_lines(tmp_path / "metadata_de_Toys.json", {**toy, "asin": "B3"})
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
    file = write_lines(
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
    file = write_lines(tmp_path / "metadata_us_Home.json", "{broken", LAMP, "[1]")
    found = read_collection(file, skip_bad_lines=True)
    assert found.image_ids == ["B00LAMP001"]
    assert "2 lines that are no products left out" in found.notes
    file.write_bytes("{'asin': 'B1', 'title': 'caf\xe9'}\n".encode("latin-1"))
    refused(DataError, "line 1 is not utf-8", read_collection, file)
    write_lines(file, "")
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
