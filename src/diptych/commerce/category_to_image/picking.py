"""The best images for every category of a tree, and indexes of products."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from scipy.sparse import csr_array

from diptych.commerce.catalogue import Catalogue, nodes_on_paths
from diptych.commerce.category_to_image.results import count_cell, percent
from diptych.commerce.category_to_image.run import CategoryRun, OtherData, PartOptions
from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.core.files import check_replaceable, write_json
from diptych.core.options import parameter, parse_values
from diptych.core.table import Table, Tabular
from diptych.index import ENGINES, build_index
from diptych.index.engine import OF_PRODUCTS
from diptych.metrics.runs import blocks, starts
from diptych.metrics.sparse_products import sparse_top_k
from diptych.metrics.topk import top_k

PICKS = "picks.json"

Among = Literal["all", "members"]
"""Whose images a category may get: any product's, or those of the products sorted into it or below it."""

Distinct = Literal["content", "title"]
"""Distinguishes products, besides their image: the bytes of its file, their titles in lower case."""

_FOUND = 1 << 21  # products held while duplicates are looked for


class PickOptions(PartOptions):
    """Options of images for categories; written to RUN/picks by default."""

    k: int = parameter(8, "Images per category.", "-k", ge=1)
    among: Among = parameter("all", "members: only of products in it or below.")
    beyond: bool = parameter(False, "Fill up to -k where a category has fewer products.")
    distinct: list[str] = parameter([], "content or title: equal ones are picked once. Repeatable.")
    sheet: bool = parameter(True, "Write the tree's contact sheet.")
    side: int = parameter(112, "Longest side of its images, in pixels.", ge=16, le=640)


@dataclass(frozen=True, eq=False)
class Picks(Tabular):
    """Products that stand for categories, best first."""

    catalogue: Catalogue  # the products and the tree
    texts: Sequence[str]  # the query of each of its nodes
    start: np.ndarray  # (nodes + 1,) int64: category i's products are products[start[i]:start[i + 1]]
    products: np.ndarray  # (m,) int64 rows of the catalogue
    scores: np.ndarray  # (m,) float64
    k: int  # the most of one category
    among: Among = "all"
    distinct: tuple[str, ...] = ()
    about: dict[str, Any] = field(default_factory=dict)  # the ranker, and other metadata of the result

    @cached_property
    def there(self) -> np.ndarray:
        """(nodes,) int64: how many products with an image are sorted into each category or below it."""
        return np.diff(members_of(self.catalogue)[0])

    @cached_property
    def right(self) -> np.ndarray:
        """(m,) int8: 1 for a product of the category or below, 0 for another, -1 for one without a category."""
        tree, places = self.catalogue.tree, self.catalogue.place_start
        n, nodes = len(self.catalogue), np.arange(len(tree))
        known = np.repeat(nodes, self.there) * n + members_of(self.catalogue)[1]
        found = np.isin(np.repeat(nodes, np.diff(self.start)) * n + self.products, known)
        return np.where(np.diff(places)[self.products] == 0, -1, found).astype(np.int8)

    def counts(self) -> dict[str, int]:
        sizes, right = np.diff(self.start), self.right
        counts = {
            "categories": len(sizes),
            "pictures": len(self.products),
            "categories without a picture": (sizes == 0).sum(),
            "of the category": (right == 1).sum(),
            "of another category": (right == 0).sum(),
            "of a product without a category": (right == -1).sum(),
        }
        return {name: int(count) for name, count in counts.items()}

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield each category with its query and its products, JSON-able."""
        shop, tree = self.catalogue, self.catalogue.tree

        def entry(at: int) -> dict[str, Any]:
            product, right = int(self.products[at]), int(self.right[at])
            image, own = int(shop.picture_rows[product]), shop.places_of(product).tolist()
            return {
                "id": shop.ids[product],
                "score": float(self.scores[at]),
                "title": shop.titles[product],
                "item": shop.collection.image_ids[image],
                "file": shop.collection.image_path(image),
                "categories": [list(tree.paths[place]) for place in own],
                "of_the_category": None if right < 0 else bool(right),
            }

        for node, path in enumerate(tree.paths):
            names = {"path": list(path), "category": tree.text(node), "code": tree.codes.get(path)}
            counts = {"query": self.texts[node], "pictured_products": int(self.there[node])}
            shown = map(entry, range(self.start[node], self.start[node + 1]))
            yield {**names, **counts, "products": list(shown)}

    def warnings(self) -> list[str]:
        setting = self.about.get("ranker", {}).get("options", {}).get("setting", "all")
        known, found = self.about.get("trained_on"), []
        if self.among == "all" and setting != "all":
            found.append(
                f"the run was trained on {setting} categories only; --setting all is for every level"
            )
        if self.among == "all" and known:
            trained = f"the run was trained on {known:,} of these products"
            found.append(f"{trained}: its share of right ones is too high; --split test has others")
        return found

    def tables(self) -> list[Table]:
        depth, found, rows = self.catalogue.tree.depth, np.diff(self.start), []
        owner, shares = np.repeat(depth, found), ["% found"] if self.among == "all" else []
        for level in np.unique(depth).tolist():
            right, there = self.right[owner == level], self.there[depth == level]
            could = int(np.minimum(there, self.k).sum())
            share = [percent(int((right == 1).sum()) / could if could else None) for _ in shares]
            counts = map(count_cell, (level, len(there), len(right), (there < self.k).sum()))
            rows.append([*counts, *share, count_cell((found[depth == level] == 0).sum())])
        after = "Level 1 is the most general."
        if shares:  # among members everything is found that can be
            after += f" % found: of the products sorted into a category or below it that could be among its {self.k}."
        heads = ["level", "categories", "images", f"below {self.k} products", *shares, "without an image"]
        split = f" of split {self.about['split']}" if self.about.get("split") else ""
        return [Table(f"Images of {len(self.catalogue):,} products{split}", heads, rows, after=after)]

    def save(self, folder: Path | str) -> Path:
        shop, file = self.catalogue, Path(folder) / PICKS
        content = {
            "catalogue": {"name": shop.name, "fingerprint": shop.fingerprint, "products": len(shop)},
            "k": self.k,
            "among": self.among,
            "distinct": ["picture", *self.distinct],
            "about": self.about,
            "counts": self.counts(),
            "categories": list(self.entries()),
        }
        write_json(file, content)
        return file


def members_of(catalogue: Catalogue) -> tuple[np.ndarray, np.ndarray]:
    """(nodes + 1,) starts and products with an image, ascending, sorted into each node or below it."""
    start, nodes = nodes_on_paths(catalogue)
    product = np.repeat(np.arange(len(catalogue)), np.diff(start))
    pictured = catalogue.pictured[product]
    nodes, product = nodes[pictured], product[pictured]
    counts = np.bincount(nodes, minlength=len(catalogue.tree))
    return starts(counts), product[np.argsort(nodes, kind="stable")]


def pick(
    categories: np.ndarray | csr_array,
    products: np.ndarray | csr_array,
    catalogue: Catalogue,
    k: int = 8,
    *,
    texts: Sequence[str],
    among: Among = "all",
    beyond: bool = False,
    distinct: Sequence[Distinct] = (),
    about: dict[str, Any] | None = None,
) -> Picks:
    """Pick the best ``k`` pictured products of each category, and no more than it has itself.

    Scores are exact, of equal ones the earlier product is first. Memory is a block of scores. ``categories`` are
    (nodes, d) float32 rows, ``products`` (n, d) of the same kind, which may be memory-mapped. With ``beyond`` other
    categories' products fill up to ``k``; so they do where no product has a category.
    """
    if unknown := set(distinct) - {*get_args(Distinct)}:
        raise UsageError(f"distinct by {min(unknown)!r}", f"some of {', '.join(get_args(Distinct))}")
    shapes = (categories.shape[0], products.shape[0], categories.shape[1])
    if shapes != (len(catalogue.tree), len(catalogue), products.shape[1]):
        problem = f"rows of categories {categories.shape} and of products {products.shape}"
        sizes = f"for {len(catalogue.tree):,} categories, {len(catalogue):,} products"
        raise MismatchError(f"{problem} {sizes}", "make both of this catalogue, with one ranker")
    if not catalogue.pictured.any():
        problem = f"none of {len(catalogue):,} products has an image, so there is nothing to pick"
        raise DataError(f"{catalogue.name}: {problem}", "fetch the images, or name their folder")
    start, members = members_of(catalogue)
    most = np.full(len(catalogue.tree), k) if beyond or not len(members) else np.minimum(k, np.diff(start))
    # Categories, and the products that they may show.
    groups = [(np.flatnonzero(most), np.flatnonzero(catalogue.pictured))]
    if among == "members":
        some = np.flatnonzero(np.diff(start))
        groups = [(np.array([node]), members[start[node] : start[node + 1]]) for node in some]
    find: Any = top_k if isinstance(products, np.ndarray) else sparse_top_k
    content, found = cache(catalogue.collection.source.content), [(members[:0], np.empty(0))] * len(most)

    def identity(product: int) -> set[object]:
        """Return what no other pick of a category may share with a product."""
        image = int(catalogue.collection.source_rows[catalogue.picture_rows[product]])
        title = catalogue.titles[product].casefold() if "title" in distinct else ""
        by_content = [("content", content(image))] if "content" in distinct else []
        return {image, *([title] if title else []), *by_content}

    for left, shown in groups:
        gallery, depth = products if len(shown) == len(catalogue) else products[shown], k
        while len(left):  # deeper for those that show too much twice
            unsatisfied = []
            for here in blocks(len(left), _FOUND // depth):
                rows, scores = find(categories[left[here]], gallery, depth)
                for node, mine, own in zip(left[here].tolist(), rows, scores, strict=True):
                    ranked, kept, seen = shown[mine[mine >= 0]], list[int](), set[object]()
                    for place, product in enumerate(ranked.tolist()):
                        if len(kept) < most[node] and seen.isdisjoint(keys := identity(product)):
                            seen |= keys
                            kept.append(place)
                    found[node] = ranked[kept], own[kept]
                    if len(kept) < most[node] and mine[-1] >= 0 and depth < len(shown):
                        unsatisfied.append(node)
            left, depth = np.array(unsatisfied, dtype=np.int64), 4 * depth
    return Picks(
        catalogue,
        texts,
        start=starts(np.array([len(mine) for mine, _ in found])),
        products=np.concatenate([mine for mine, _ in found]),
        scores=np.concatenate([scores for _, scores in found]),
        k=k,
        among=among,
        distinct=tuple(distinct),
        about=about or {},
    )


def pick_images(run: CategoryRun, data: OtherData, options: PickOptions, folder: Path) -> Picks:
    check_replaceable(folder, PICKS)
    catalogue = data.of(run, options.split)
    about = {"ranker": run.model.describe(), **data.use(run, options.split, catalogue)}
    texts = run.texts(catalogue.tree)
    how = options.model_dump(include={"k", "among", "beyond", "distinct"})
    with run.embeddings(catalogue) as embedded:
        return pick(run.category_rows(texts), embedded.rows, catalogue, texts=texts, about=about, **how)


_SAMPLE = 1000


class IndexOptions(PartOptions):
    """Options of an index of products; written to RUN/index-ENGINE by default."""

    engine: str = parameter(
        "exact", "The engine; diptych info engines lists them.", names="diptych.index:ENGINES"
    )
    option: list[str] = parameter([], "KEY=VALUE for the engine, e.g. ef_search=128. Repeatable.")


def index_products(run: CategoryRun, data: OtherData, options: IndexOptions, folder: Path) -> list[str]:
    """Build and save an index of products; return lines about it. Recall is measured on categories, as queries are."""
    engine, split = ENGINES.get(options.engine), options.split
    settings, catalogue = parse_values(options.option, "--option"), data.of(run, split)
    check_replaceable(folder, "index.json")
    if engine.filters:  # by title, all categories above, whether there is an image
        tree, pictured = catalogue.tree, catalogue.pictured.tolist()
        above = [tree.lineage[catalogue.places_of(product)] for product in range(len(catalogue))]
        names = [sorted(map(tree.text, {*of[of >= 0].tolist()})) for of in above]
        each = zip(catalogue.titles, names, pictured, strict=True)
        settings["records"] = [
            dict(zip(("title", "categories", "pictured"), one, strict=True)) for one in each
        ]
    about = {"dataset": catalogue.name, "split": split or "all", "model": run.about["model"]}
    sample = run.category_rows(run.texts(run.tree)[:_SAMPLE])
    with run.embeddings(catalogue, **about) as embedded:
        built = build_index(embedded, engine.name, sample=sample, **settings)
        other = data.model_dump(mode="json")
        built.about[OF_PRODUCTS] = {"run": str(run.folder.resolve()), "other": other, "split": split}
        built.save(folder)
    lines = [f"{len(built):,} products of {catalogue.name}, engine {built.engine_name}, in {folder}"]
    if recall := built.about.get("recall"):
        lines.append("recall@{k} against exact on {queries} categories: {value:.3f}".format(**recall))
    return lines
