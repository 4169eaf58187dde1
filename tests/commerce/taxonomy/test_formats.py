from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from diptych.commerce.taxonomy import TAXONOMIES, CategoryTree, Taxonomy, read_taxonomy, shape_of
from diptych.core.errors import DataError, DiptychError, UsageError
from diptych.data.products import MAX_LEVELS

GOOGLE = """# Google_Product_Taxonomy_Version: 2021-09-21
1 - Animals & Pet Supplies
3237 - Animals & Pet Supplies > Live Animals
166 - Apparel & Accessories
412 - Food, Beverages & Tobacco
499 - Food, Beverages & Tobacco > A>B - C
"""
GID = "gid://shopify/TaxonomyCategory/"
SHOPIFY = f"""# Shopify Product Taxonomy - Categories: 2024-07
# Format: {{GID}} : {{Ancestor name}} > ... > {{Category name}}

{GID}ap         : Animals & Pet Supplies
{GID}ap-2       : Animals & Pet Supplies > Pet Supplies
{GID}ap-2-10    : Animals & Pet Supplies > Pet Supplies > Bird Supplies : Toys
{GID}aa         : Apparel
"""
PARENTS = """category_id,parent_id,name
7,3,Dresses
3,,Women
4,0,Men
5,4,"Shirts, Tops"
6,3,Accessories
8,4,Accessories
"""


def write(folder: Path, text: str, name: str = "tree.txt", encoding: str = "utf-8") -> Path:
    file = folder / name
    content = text.encode(encoding)
    file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return file


def texts(taxonomy: Taxonomy) -> list[str]:
    return [taxonomy.tree.text(node) for node in range(len(taxonomy.tree))]


@pytest.mark.parametrize("name", ["taxonomy-with-ids.en-US.txt", "taxonomy-with-ids.en-US.txt.gz"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "marked"])
def test_google_with_ids(tmp_path: Path, name: str, mark: str) -> None:
    found = read_taxonomy(write(tmp_path, mark + GOOGLE.replace("\n", "\r\n"), name))
    assert texts(found) == [
        *("Animals & Pet Supplies", "Animals & Pet Supplies > Live Animals", "Apparel & Accessories"),
        *("Food, Beverages & Tobacco", "Food, Beverages & Tobacco > A>B - C"),
    ]
    assert found.tree.codes["Animals & Pet Supplies", "Live Animals"] == "3237"
    assert (found.name, found.version, found.language) == ("Google product taxonomy", "2021-09-21", "en-US")
    assert found.notes == ()
    assert found.describe().startswith("Google product taxonomy 2021-09-21 en-US: 5 categories on 2 levels")
    bare = read_taxonomy(write(tmp_path, "# Google_Product_Taxonomy_Version: 2015-02-19\nA\nA > B - C\n"))
    assert (texts(bare), bare.version, bare.tree.codes) == (["A", "A > B - C"], "2015-02-19", {})
    german = read_taxonomy(write(tmp_path, "1 - A\n2 - A > B\n", "own.de-DE.txt"))
    assert german.tree.codes == {("A",): "1", ("A", "B"): "2"}
    assert (german.version, german.language) == ("", "de-DE")


def test_shopify(tmp_path: Path) -> None:
    found = read_taxonomy(write(tmp_path, SHOPIFY))
    assert texts(found)[-1] == "Apparel"
    place = ("Animals & Pet Supplies", "Pet Supplies", "Bird Supplies : Toys")
    assert found.tree.codes[place] == f"{GID}ap-2-10"
    assert (found.name, found.version) == ("Shopify product taxonomy", "2024-07")


def test_paths_line_by_line_and_the_ancestors_that_nobody_listed(tmp_path: Path) -> None:
    found = read_taxonomy(
        write(tmp_path, "# ours\nWomen > Shoes > Boots\nMen > Shoes\nMen > Shoes\nMen\n", "shop.txt")
    )
    assert texts(found) == ["Men", "Men > Shoes", "Women", "Women > Shoes", "Women > Shoes > Boots"]
    assert "2 categories that only stand in paths of others added, the first: Women" in found.notes
    assert found.name == "shop"
    assert found.tree.meant("shoes") == [1, 3]  # one name under two roots is two categories
    slashes = read_taxonomy(write(tmp_path, "a/b\na/c d\n"), format="paths", separator="/")
    assert texts(slashes) == ["a", "a > b", "a > c d"]
    assert texts(read_taxonomy(write(tmp_path, "/a/b\n"), format="paths", separator="/")) == ["a", "a > b"]


def test_paths_in_a_column(tmp_path: Path) -> None:
    file = write(tmp_path, 'id;Category Path;n\n1;"Food, Drink > Tea";3\n2;Food, Drink;4\n', "shop.csv")
    found = read_taxonomy(file)
    assert texts(found) == ["Food, Drink", "Food, Drink > Tea"]
    assert found.tree.codes == {("Food, Drink", "Tea"): "1", ("Food, Drink",): "2"}
    assert found.tree.codes == read_taxonomy(file, id_column="ID", column="category path").tree.codes
    refused(UsageError, r"has no column of the paths 'x'", read_taxonomy, file, column="x")


@pytest.mark.parametrize(("name", "delimiter"), [("c.csv", ","), ("c.tsv", "\t"), ("c.csv.gz", ";")])
def test_parents(tmp_path: Path, name: str, delimiter: str) -> None:
    text = PARENTS.replace(",", delimiter).replace(f"Shirts{delimiter} Tops", "Shirts, Tops")
    found = read_taxonomy(write(tmp_path, f"\ufeff{text}", name))
    assert texts(found) == [
        *("Men", "Men > Accessories", "Men > Shirts, Tops", "Women"),
        *("Women > Accessories", "Women > Dresses"),
    ]
    assert found.tree.codes["Women", "Accessories"] == "6"
    assert found.notes == ()


def test_orphans_are_named_or_made_roots(tmp_path: Path) -> None:
    file = write(tmp_path, PARENTS + "10,99,Hats\n11,10,Caps\n12,98,Bags\n", "c.csv")
    caught = refused(DataError, r"2 of 9 .* not there: 'Hats' \(id 10, parent 99\)", read_taxonomy, file)
    assert "orphans=root" in caught.fix
    found = read_taxonomy(file, orphans="root")
    assert ("Hats", "Caps") in found.tree
    assert found.notes[0].startswith("2 categories whose parent is not there made roots: 'Hats' (id 10")
    refused(UsageError, "orphans is 'drop'", read_taxonomy, file, orphans="drop")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,1,A\n", r"1 categories stand above themselves: 'A' \(id 1\) → 'A' \(id 1\)"),
        (
            "9,,R\n5,3,D\n1,2,A\n2,3,B\n3,1,C\n",
            r"3 categories .*: 'C' \(id 3\) → 'A' \(id 1\) →",
        ),
        ("".join(f"{n},{(n + 1) % 100},N{n}\n" for n in range(100)), "has 51 levels"),
        ("1,,A\n1,,B\n", "line 3: id 1 is 'B', and was 'A' before"),
        ("1,,A\n2,1\n", "line 3: a category without id or name"),
        (",,A\n", "line 2: a category without id"),
        ("", "lists no categories"),
        ("".join(f"{n},{n + 1},N\n" for n in range(60)) + "60,,N\n", "has 51 levels"),
        ("1,,<i></i>\n", "line 2: a category without id or name"),
    ],
    ids=range(9),
)
def test_tables_of_parents_that_are_no_tree(tmp_path: Path, rows: str, message: str) -> None:
    file = write(tmp_path, f"id,parent,name\n{rows}", "c.csv")
    assert refused(DataError, message, read_taxonomy, file).fix


def test_siblings_of_one_name_are_one_category(tmp_path: Path) -> None:
    file = write(tmp_path, "id,parent,name\n1,,A\n2,1,B\n3,1,B\n4,2,C\n5,3,D\n", "c.csv")
    found = read_taxonomy(file)
    assert texts(found) == ["A", "A > B", "A > B > C", "A > B > D"]
    assert found.notes[0].endswith("are one with it, the first: A > B (ids 2 and 3)")


DEEP = " > ".join(["a"] * (MAX_LEVELS + 1))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", UsageError, "no taxonomy format recognises"),
        ("just a name\n", UsageError, "no taxonomy format recognises"),
        ("1 - A\nB\n", DataError, "line 2 has no id: 'B'"),
        ("1 - A\n1 - B\n", DataError, "line 2: id 1 is 'B'; before, 'B' had id 1, and id 1 was 'A'"),
        ("1 - A\n2 - A\n", DataError, "line 2: id 2 is 'A'; before, 'A' had id 1"),
        ("1 - A >  > B\n", DataError, "line 1: a level of 'A >  > B' has no name"),
        ("A > B\nA >\n", DataError, "line 2: a level of 'A >' has no name"),
        ("A > B\n > A\n", DataError, "line 2: a level of '> A' has no name"),
        ("A > B\nA > <br>\n", DataError, "line 2: a level .* has no name"),
        (f"A > B\n{DEEP}\n", DataError, "line 2 has 51 levels, more than 50"),
        (f"A > B\n{'a > ' * 1_000_000}a\n", DataError, "line 2 has 1,000,001 levels"),
        ("# Google_Product_Taxonomy_Version: 1\n", DataError, "lists no categories"),
        (
            f"{GID}ap : A\n{GID}ap-1 : A > B > C\n",
            DataError,
            "by its id ap-1 'A > B > C' stands under 'A'",
        ),
        (f"{GID}ap : A\n{GID}ap-1 : B > C\n", DataError, "by its id ap-1 'B > C' stands under 'A'"),
        (f"{GID}ap : A\nB > C\n", DataError, "line 2 has no id: 'B > C'"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, error: type[DiptychError], message: str) -> None:
    assert refused(error, message, read_taxonomy, write(tmp_path, text)).fix


def test_wrong_encodings_and_damaged_files(tmp_path: Path) -> None:
    file = write(tmp_path, "Möbel > Stühle\n", encoding="latin-1")
    refused(DataError, "line 1 is not utf-8", read_taxonomy, file)
    assert texts(read_taxonomy(file, encoding="latin-1"))[0] == "Möbel"
    refused(DataError, "does not exist", read_taxonomy, tmp_path / "none.txt")


def test_formats_and_options_by_name(tmp_path: Path) -> None:
    file, path = write(tmp_path, GOOGLE), write(tmp_path, "path\nA\n", "p.csv")
    assert sorted(TAXONOMIES) == ["google", "parents", "paths", "shopify", "written"]
    for source, options, message in (
        (file, {"format": "googel"}, "'googel'"),
        (file, {"orphans": "root"}, "taxonomy format 'google' has no option 'orphans'"),
        (file, {"format": "paths", "separator": " "}, "separator is ' '"),
        (file, {"format": "paths", "id_column": "id"}, "has no column of the paths"),
        (path, {"column": 1}, "has no column of the paths '1'"),
    ):
        refused(UsageError, message, read_taxonomy, source, **options)


LETTER = st.sampled_from("abc")


@given(st.sets(st.lists(LETTER, min_size=1, max_size=4).map(tuple), min_size=1, max_size=12), st.randoms())
def test_every_format_gives_the_same_tree(
    tmp_path_factory: pytest.TempPathFactory, paths: set[tuple[str, ...]], order: random.Random
) -> None:
    folder = tmp_path_factory.mktemp("trees")
    tree = CategoryTree(paths)
    nodes = list(range(len(tree)))
    order.shuffle(nodes)
    listed = "".join(f"{node + 1} - {tree.text(node)}\n" for node in nodes)
    below = "".join(f"{node + 1},{tree.parent[node] + 1 or ''},{tree.paths[node][-1]}\n" for node in nodes)
    google = read_taxonomy(write(folder, listed, "g.txt"))
    parents = read_taxonomy(write(folder, f"id,parent,name\n{below}", "p.csv"))
    plain = read_taxonomy(
        write(folder, "".join(f"{tree.text(node)}\n" for node in nodes), "t.txt"), format="paths"
    )
    assert google.tree.paths == parents.tree.paths == plain.tree.paths == tree.paths
    assert google.tree.codes == parents.tree.codes


@given(st.sets(st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(tuple), min_size=1, max_size=12))
def test_levels_counted_from_the_paths(paths: set[tuple[str, ...]]) -> None:
    tree = CategoryTree(paths)
    shape = shape_of(tree)
    children = {path: [one for one in tree.paths if one[:-1] == path] for path in tree.paths}
    for level in shape["levels"]:
        counts = [len(children[path]) for path in tree.paths if len(path) == level["level"]]
        some = [count for count in counts if count]
        expected = (len(counts), counts.count(0), max(counts), sum(some) / len(some) if some else 0)
        assert tuple(level.values())[1:] == expected
    assert shape["categories"] == sum(level["categories"] for level in shape["levels"])
    assert shape["only_children"] == sum(len(one) == 1 for one in children.values())
    names = [path[-1] for path in tree.paths]
    assert shape["shared"] == {name: names.count(name) for name in names if names.count(name) > 1}
