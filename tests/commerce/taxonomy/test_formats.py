from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from diptych.commerce.taxonomy import TAXONOMIES, CategoryTree, read_taxonomy, shape_of
from diptych.core.errors import DataError, DiptychError, UsageError
from diptych.data.products import MAX_LEVELS

GOOGLE = """# Google_Product_Taxonomy_Version: 2021-09-21
1 - Animals & Pet Supplies
3237 - Animals & Pet Supplies > Live Animals
499 - Food, Beverages & Tobacco > A>B - C
499000 - Food, Beverages & Tobacco
"""
GID = "gid://shopify/TaxonomyCategory/"
SHOPIFY = f"""# Shopify Product Taxonomy - Categories: 2024-07
# Format: {{GID}} : {{Ancestor name}} > ... > {{Category name}}

{GID}ap         : Animals
{GID}ap-2       : Animals > Pet Supplies
{GID}ap-2-10    : Animals > Pet Supplies > Birds : Toys
"""
PARENTS = """category_id,parent_id,name
7,3,Dresses
3,,Women
4,0,Men
5,4,"Shirts, Tops"
6,3,Accessories
8,4,Accessories
"""
TREE = "Men=4|Men > Accessories=8|Men > Shirts, Tops=5|Women=3|Women > Accessories=6|Women > Dresses=7"
ORPHANS = f"{PARENTS}10,99,Hats\n11,10,Caps\n"
TWINS = "id,parent,name\n1,,A\n2,1,B\n3,1,B\n4,2,C\n5,3,D\n"
FOOD = 'id;Category Path;n\n1;"Food, Drink > Tea";3\n2;Food, Drink;4\n'


def write(folder: Path, text: str, name: str = "tree.txt", encoding: str = "utf-8") -> Path:
    file = folder / name
    content = text.encode(encoding)
    file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return file


SHOP = "# ours\nWomen > Boots\nMen > Boots\nMen > Boots\nMen\n"
BARE = "# Google_Product_Taxonomy_Version: 2015-02-19\nA\nA > B - C\n"
PETS = "Animals & Pet Supplies"
# Name and text of the file, options, paths with their ids, and name, version and language, or notes.
GOOD: list[tuple[str, str, dict[str, str], str, tuple[str | None, ...]]] = [
    (
        "taxonomy.en-US.txt.gz",
        "\ufeff" + GOOGLE.replace("\n", "\r\n"),
        {},
        f"{PETS}=1|{PETS} > Live Animals=3237|Food, Beverages & Tobacco=499000|Food, Beverages & Tobacco > A>B - C=499",
        ("Google product taxonomy", "2021-09-21", "en-US"),
    ),
    ("t.txt", BARE, {}, "A=|A > B - C=", ("Google product taxonomy", "2015-02-19", "")),
    (
        "t.txt",
        SHOPIFY,
        {},
        f"Animals={GID}ap|Animals > Pet Supplies={GID}ap-2|Animals > Pet Supplies > Birds : Toys={GID}ap-2-10",
        ("Shopify product taxonomy", "2024-07", ""),
    ),
    (
        "shop.txt",
        SHOP,
        {},
        "Men=|Men > Boots=|Women=|Women > Boots=",
        (
            "1 categories that only stand in paths of others added, the first: Women",
            "1 lines that repeat a category left out",
        ),
    ),
    ("t.txt", "/a/b\na/c d\n", {"format": "paths", "separator": "/"}, "a=|a > b=|a > c d=", ()),
    ("shop.csv", FOOD, {}, "Food, Drink=2|Food, Drink > Tea=1", ()),
    ("s.csv", FOOD, {"id_column": "N", "column": "category path"}, "Food, Drink=4|Food, Drink > Tea=3", ()),
    ("c.csv", f"\ufeff{PARENTS}", {}, TREE, ()),
    ("c.tsv", PARENTS.replace(",", "\t").replace("Shirts\t", "Shirts,"), {}, TREE, ()),
    ("c.csv.gz", PARENTS.replace(",", ";").replace("Shirts;", "Shirts,"), {}, TREE, ()),
    (
        "c.csv",
        ORPHANS,
        {"orphans": "root"},
        f"Hats=10|Hats > Caps=11|{TREE}",
        ("1 categories whose parent is not there made roots: 'Hats' (id 10, parent 99)",),
    ),
    (
        "c.csv",
        TWINS,
        {},
        "A=1|A > B=2|A > B > C=4|A > B > D=5",
        ("1 categories with a sibling's name are one with it, the first: A > B (ids 2 and 3)",),
    ),
    ("l.txt", "M\xf6bel > A\n", {"encoding": "latin-1"}, "Möbel=|Möbel > A=", ()),
]


def test_every_format(tmp_path: Path) -> None:
    for name, text, options, expected, about in GOOD:
        found = read_taxonomy(write(tmp_path, text, name, options.get("encoding", "utf-8")), **options)
        tree = found
        assert (
            "|".join(f"{tree.text(node)}={tree.codes.get(path, '')}" for node, path in enumerate(tree.paths))
            == expected
        )
        assert not about or about in ((found.name, found.version, found.language), found.notes)
        assert found.describe().startswith(found.name)


DEEP = " > ".join(["a"] * (MAX_LEVELS + 1))
ROWS = "id,parent,name\n"
CYCLE = "".join(f"{n},{n + 1},N\n" for n in range(60))
BAD: list[tuple[str, str, str]] = [
    ("t.txt", "", "no taxonomy format recognises"),
    ("t.txt", "just a name\n", "no taxonomy format recognises"),
    ("t.txt", "1 - A\nB\n", "line 2 has no id: 'B'"),
    ("t.txt", "1 - A\n1 - B\n", "line 2: id 1 is 'B'; before, 'B' had id 1, and id 1 was 'A'"),
    ("t.txt", "1 - A\n2 - A\n", "line 2: id 2 is 'A'; before, 'A' had id 1"),
    ("t.txt", "1 - A >  > B\n", "line 1: a level of 'A >  > B' has no name"),
    ("t.txt", "A > B\nA >\n", "line 2: a level of 'A >' has no name"),
    ("t.txt", "A > B\n > A\n", "line 2: a level of '> A' has no name"),
    ("t.txt", "A > B\nA > <br>\n", "line 2: a level .* has no name"),
    ("t.txt", f"A > B\n{DEEP}\n", "line 2 has 51 levels, more than 50"),
    ("t.txt", f"A > B\n{'a > ' * 1_000_000}a\n", "line 2 has 1,000,001 levels"),
    ("t.txt", "# Google_Product_Taxonomy_Version: 1\n", "lists no categories"),
    (
        "t.txt",
        f"{GID}ap : A\n{GID}ap-1 : A > B > C\n",
        "line 2: by its id .*ap-1 'A > B > C' stands under 'A'",
    ),
    ("t.txt", f"{GID}ap : A\n{GID}ap-1 : B > C\n", "line 2: by its id .*ap-1 'B > C' stands under 'A'"),
    ("t.txt", f"{GID}ap : A\nB > C\n", "line 2 has no id: 'B > C'"),
    ("c.csv", f"{ROWS}1,1,A\n", r"1 categories stand above themselves: 'A' \(id 1\) → 'A' \(id 1\)"),
    ("c.csv", f"{ROWS}9,,R\n5,3,D\n1,2,A\n2,3,B\n3,1,C\n", r"3 categories .*'C' \(id 3\) → 'A' \(id 1\)"),
    ("c.csv", f"{ROWS}1,,A\n1,,B\n", "line 3: id 1 is 'B', and was 'A' before"),
    ("c.csv", f"{ROWS}1,,A\n2,1\n", "line 3: a category without id or name"),
    ("c.csv", f"{ROWS},,A\n", "line 2: a category without id"),
    ("c.csv", f"{ROWS}1,,<i></i>\n", "line 2: a category without id or name"),
    ("c.csv", ROWS, "lists no categories"),
    ("c.csv", f"{ROWS}{CYCLE}60,,N\n", "has 51 levels"),
    ("c.csv", f"{ROWS}{CYCLE}60,0,N\n", "61 categories stand above themselves"),
    ("c.csv", ORPHANS, r"1 of 8 .* not there: 'Hats' \(id 10, parent 99\).*orphans=root"),
]


def test_bad_files(tmp_path: Path) -> None:
    for name, text, message in BAD:
        error: type[DiptychError] = UsageError if message.startswith("no taxonomy") else DataError
        assert refused(error, message, read_taxonomy, write(tmp_path, text, name)).fix


def test_formats_options_and_encodings_by_name(tmp_path: Path) -> None:
    file, path = write(tmp_path, GOOGLE), write(tmp_path, "path\nA\n", "p.csv")
    assert sorted(TAXONOMIES) == ["google", "parents", "paths", "shopify", "written"]
    parents, latin = write(tmp_path, PARENTS, "c.csv"), write(tmp_path, "Möbel > A\n", "l.txt", "latin-1")
    for source, options, message in (
        (file, {"format": "googel"}, "'googel'"),
        (file, {"orphans": "root"}, "taxonomy format 'google' has no option 'orphans'"),
        (file, {"format": "paths", "separator": " "}, "separator is ' '"),
        (file, {"format": "paths", "id_column": "id"}, "has no column of the paths"),
        (path, {"column": 1}, "has no column of the paths '1'"),
        (parents, {"orphans": "drop"}, "orphans is 'drop'"),
    ):
        refused(UsageError, message, read_taxonomy, source, **options)
    refused(DataError, "line 1 is not utf-8", read_taxonomy, latin)
    refused(DataError, "does not exist", read_taxonomy, tmp_path / "none.txt")


PATHS = st.sets(st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(tuple), min_size=1, max_size=12)


@given(PATHS, st.randoms())
def test_every_format_gives_the_same_tree(
    tmp_path_factory: pytest.TempPathFactory, paths: set[tuple[str, ...]], order: random.Random
) -> None:
    folder, tree = tmp_path_factory.mktemp("trees"), CategoryTree(paths)
    nodes = list(range(len(tree)))
    order.shuffle(nodes)
    listed = "".join(f"{node + 1} - {tree.text(node)}\n" for node in nodes)
    below = "".join(f"{node + 1},{tree.parent[node] + 1 or ''},{tree.paths[node][-1]}\n" for node in nodes)
    plain = "".join(f"{tree.text(node)}\n" for node in nodes)
    google = read_taxonomy(write(folder, listed, "g.txt"))
    parents = read_taxonomy(write(folder, f"id,parent,name\n{below}", "p.csv"))
    bare = read_taxonomy(write(folder, plain, "t.txt"), format="paths")
    assert google.paths == parents.paths == bare.paths == tree.paths
    assert google.codes == parents.codes


@given(PATHS)
def test_a_tree_is_what_its_paths_say(paths: set[tuple[str, ...]]) -> None:
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
    for node, path in enumerate(tree.paths):
        assert [tree.paths[one] for one in tree.ancestors(node)] == [path[: k + 1] for k in range(len(path))]
        assert tree.meant(f" {path[-1].upper()} ") == [n for n, name in enumerate(names) if name == path[-1]]
        assert node in tree.meant(tree.text(node))
