"""``diptych search`` of an index of products: a category's name, or any words."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.cli.categories.sources import OtherData
from diptych.cli.console import progress
from diptych.cli.search import OF_PRODUCTS, Found, Hit, SearchOptions, image_path
from diptych.cli.sparse_folder import looks_like_a_picture
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.table import Table

if TYPE_CHECKING:
    from diptych.data.taxonomy import CategoryTree
    from diptych.index import Index

_NAMED = 3  # categories of one name that are spelt out
_MARKS = {True: "✓", False: "✗", None: ""}


class ProductSearcher:
    """An index of products with the run that embedded them."""

    note = ""

    def __init__(self, index: Index, folder: Path, options: SearchOptions) -> None:
        from diptych.commerce.category_to_image.runs import CategoryRun
        from diptych.encoders.embeddings import check_still_there

        self.index, self.folder, self.options = index, folder, options
        if options.model is not None or options.own_terms:
            raise UsageError("--model and --own-terms are of searches for images", "leave them out")
        about = index.about.get(OF_PRODUCTS)
        if about is None:
            fix = "make one: diptych categories index RUN, or leave --category out"
            raise UsageError(f"{folder} is no index of products", fix)
        try:
            given = {key: value for key, value in about["other"].items() if value is not None}
            run, split = Path(about["run"]), about["split"]
        except (KeyError, TypeError, AttributeError) as error:
            raise StorageError(f"{folder} does not say which run it is of: {error}", "index again") from None
        other = OtherData.read(given, str(folder), StorageError, "index again")
        check_still_there(str(run), folder)
        with progress():
            self.run = CategoryRun.open(run)
            self.catalogue, _ = other.catalogue(self.run, split)
        self.rows = {name: row for row, name in enumerate(self.catalogue.ids)}

    def find(self, query: str) -> Found:
        """Search for a category of the products' tree, by name or path, or for any words."""
        from diptych.commerce.catalogue.catalogue import category_texts

        if looks_like_a_picture(query):
            raise UsageError(f"{query!r} is an image; products are found by words", "give a category's name")
        run, tree, options = self.run, self.catalogue.tree, self.options
        meant, words = tree.meant(query), query
        if len(meant) == 1 and run.options.query == "path":  # as the run knows categories
            words = category_texts(tree, meant, "path")[0]
        best, after = options.best_of(
            self.index.search(
                run.model.category_rows(run.category_features([words])),
                options.k,
                encoder=run.model.fingerprint,
                **options.of_index(self.index),
            )
        )
        hits, lines = [], []
        for rank, (name, score) in enumerate(best, 1):
            hit, places = self._described(name, score, set(meant))
            hits.append(hit)
            line = (f"{rank}", f"{score:.3f}", name, _MARKS[hit.right], hit.text, places)
            lines.append((*line, hit.path) if options.paths else line)
        columns = ("rank", "score", "id", "", "title", "category", *(["path"] if options.paths else []))
        title = f"products for {query!r}" + (f", encoded as {words!r}" if words != query else "")
        notes = [legend(tree, query, meant)]
        seen = sum(run.splits.get(hit.name) == "train" for hit in hits)
        if meant and seen:
            known = f"the run was trained on {seen:,} of these {len(hits):,}"
            notes.append(f"{known}: what is right among them flatters it")
        return Found(query, Table.of(title, after, columns, lines), hits, notes)

    def next_steps(self, query: str) -> list[list[object]]:
        """Return the command that draws what was found."""
        return [["diptych", "search", self.folder, query, "--category", "--sheet", "found.png"]]

    def _described(self, name: str, score: float, meant: set[int]) -> tuple[Hit, str]:
        """Return a hit with title and image, and the texts of its categories."""
        shop = self.catalogue
        if name not in self.rows:
            message = f"the index finds {name!r}, which {shop.name} no longer holds"
            raise DataError(message, "index the products again")
        row = self.rows[name]
        right = shop.is_in(row, meant) if meant else None
        image, picture, path = int(shop.picture_rows[row]), None, ""
        if image >= 0:
            picture, path = partial(shop.collection.image, image), image_path(shop.collection, image)
        hit = Hit(name, score, shop.titles[row], path, picture, right)
        return hit, "; ".join(map(shop.tree.text, shop.places_of(row).tolist()))


def legend(tree: CategoryTree, query: str, meant: list[int]) -> str:
    """Return what the marks mean."""
    if not meant:
        return f"{query!r} is no category of the tree: nothing found is right or wrong"
    texts = [tree.text(node) for node in meant[:_NAMED]]
    more = f" and {len(meant) - _NAMED:,} more" if len(meant) > _NAMED else ""
    return f"✓ sorted into {' or '.join(texts)}{more}, or below it; ✗ elsewhere; no mark: without a category"
