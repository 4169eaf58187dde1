"""``diptych categories tree``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Command

from diptych.data.taxonomy import read_taxonomy

GOOGLE = """# Google_Product_Taxonomy_Version: 2021-09-21
1 - Men
2 - Men > Shoes
3 - Women > Shoes
4 - Women > Sale > \x1b[31mHats
"""
FEED = """id,title,product_type
1,a,Men > Shoes
2,b,Men > Shoes
3,c,"Men > Shoes,Women > Hats"
4,d,
5,e,Women
"""


def words(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_taxonomy_and_back(diptych: Command, tmp_path: Path) -> None:
    file, out = tmp_path / "taxonomy.en-GB.txt", tmp_path / "tree.json"
    file.write_text(GOOGLE)
    done = diptych("categories", "tree", file, "--out", out)
    assert done.code == 0, done.err
    rows = words(done.out)
    assert rows[0] == (
        "Google product taxonomy 2021-09-21 en-GB: 6 categories on 3 levels: 2 most general, 3 without children"
    )
    for says in ("1 2 0 1.5 2", "2 3 2 1.0 1", "3 1 1 0.0 0", "Shoes 2"):
        assert says in rows, says
    assert "note: 2 categories that only stand in paths of others added, the first: Women" in rows
    assert "2 categories have no siblings: their level sorts nothing" in rows
    assert "\x1b" not in done.out
    assert rows[-1] == f"next: diptych categories train DATA --taxonomy {file} --out runs/shop"
    written = json.loads(out.read_text())
    assert written["shape"]["shared_names"] == {"Shoes": 2}
    assert written["categories"][1] == {"path": ["Men", "Shoes"], "id": "2"}
    first, again = read_taxonomy(file), read_taxonomy(out)
    assert again.tree.fingerprint == first.tree.fingerprint
    assert again.tree.codes == first.tree.codes
    assert (again.version, again.language) == ("2021-09-21", "en-GB")
    assert diptych("categories", "tree", out).code == 0


def test_the_tree_of_products(diptych: Command, tmp_path: Path) -> None:
    file, out = tmp_path / "feed.csv", tmp_path / "tree.json"
    file.write_text(FEED)
    done = diptych("categories", "tree", file, "--out", out)
    assert done.code == 0, done.err
    rows = words(done.out)
    assert "Men > Shoes 3 3" in rows
    assert "Women 1 2" in rows
    assert any(row.startswith("note: 'Men > Shoes' alone holds 75% of the products") for row in rows)
    assert rows[-1] == f"next: diptych categories train {file} --out runs/shop"
    written = json.loads(out.read_text())
    assert written["products"] == 5
    assert [
        (*one["path"], one["products"], one["products_with_those_below"]) for one in written["categories"]
    ] == [("Men", 0, 3), ("Men", "Shoes", 3, 3), ("Women", 1, 2), ("Women", "Hats", 1, 1)]
    taxonomy = tmp_path / "t.txt"
    taxonomy.write_text("Men > Shoes\nWomen > Hats\nChildren\n")
    with_empty = diptych("categories", "tree", file, "--taxonomy", taxonomy)
    assert "1 of 5 categories have no products, in them or below" in words(with_empty.out)


def test_what_was_mended_and_what_cannot_be(diptych: Command, tmp_path: Path) -> None:
    file = tmp_path / "categories.csv"
    file.write_text("id,parent,name\n1,,A\n2,9,B\n")
    done = diptych("categories", "tree", file)
    assert done.code == 1
    assert "'B' (id 2, parent 9)" in done.err
    assert "orphans=root" in done.err
    done = diptych("categories", "tree", file, "--option", "orphans=root", "--out", tmp_path / "tree.json")
    assert done.code == 0
    assert "note: 1 categories whose parent is not there made roots, the first: B" in words(done.out)
    file.write_text("id,parent,name\n1,2,A\n2,1,B\n")
    done = diptych("categories", "tree", file, "--out", tmp_path / "none.json")
    assert done.code == 1
    assert "'A' (id 1) → 'B' (id 2) → 'A' (id 1)" in done.err
    assert not (tmp_path / "none.json").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--format", "googel"), "unknown taxonomy format 'googel'"),
        (("--format", "google", "--option", "colour=red"), "has no option 'colour'"),
        (("--format", "google", "--reader", "feed"), "give one kind"),
    ],
    ids=["format", "option", "both"],
)
def test_usage(diptych: Command, tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    (tmp_path / "t.txt").write_text(GOOGLE)
    done = diptych("categories", "tree", tmp_path / "t.txt", *arguments)
    assert done.code == 2
    assert says in done.err


def test_help_and_a_file_that_is_not_there(diptych: Command, tmp_path: Path) -> None:
    assert (
        "diptych categories tree taxonomy-with-ids.en-US.txt" in diptych("categories", "tree", "--help").out
    )
    done = diptych("categories", "tree", tmp_path / "none.txt")
    assert done.code == 1
    assert "does not exist" in done.err


def test_a_shop_too_small_to_be_split_has_a_tree_all_the_same(diptych: Command, tmp_path: Path) -> None:
    lines = [{"asin": one, "title": one, "categories": ["Men", "Shoes"]} for one in ("A1", "A2", "A3")]
    (tmp_path / "metadata_us_Shoes.json").write_text("\n".join(map(json.dumps, lines)))
    done = diptych("categories", "tree", tmp_path)
    assert done.code == 0, done.err
    assert "3 products" in done.out
