"""Product feeds: what shops write, and what is refused."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from miniatures import picture
from refusals import refused

from diptych.commerce.readers.feed import paths_in
from diptych.core.errors import DataError, UsageError
from diptych.data.products import attributes_of, paths_of
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
