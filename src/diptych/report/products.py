"""Search an index of products for categories."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from diptych.commerce.catalogue import Catalogue, category_texts
from diptych.commerce.category_to_image.filling import Filler, FillOptions, calibrated_filler, is_known
from diptych.commerce.category_to_image.run import CategoryRun, OtherData
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.table import Table
from diptych.data.collection import Collection
from diptych.encoders.embeddings import check_still_there
from diptych.index import Index
from diptych.index.engine import OF_PRODUCTS, query_type
from diptych.report.searcher import Found, Hit, Searcher

_NAMED = 3  # categories of one name that are spelt out
_MARKS = {True: "✓", False: "✗", None: ""}


class ProductSearcher(Searcher):
    """An index of products with the run that embedded them, searched for a category by name or path, or any words."""

    def __init__(self, index: Index, run: CategoryRun, catalogue: Catalogue) -> None:
        super().__init__(index, run.model, collection=catalogue.collection)
        self.kind, self.run, self.catalogue = "product", run, catalogue
        self.rows: dict[str, int] = {name: row for row, name in enumerate(catalogue.ids)}

    @classmethod
    def open(cls, index: Index, folder: Path) -> Self:
        if OF_PRODUCTS not in index.about:
            fix = "make one: diptych categories index RUN, or leave --category out"
            raise UsageError(f"{folder} is no index of products", fix)
        about = index.about[OF_PRODUCTS]
        check_still_there(about["run"], folder)
        run = CategoryRun.open(about["run"])
        other = OtherData.read(about["other"], str(folder), StorageError, "index again")
        return cls(index, run, other.of(run, about["split"]))

    def encode_texts(self, texts: Sequence[str]) -> Any:
        return self.run.category_rows([self._words(text) for text in texts])

    @cached_property
    def filler(self) -> Filler:
        """Return what suggests categories, calibrated on the run's validation products when it is first needed."""
        return calibrated_filler(self.run, self.run.products(), FillOptions())[0]

    def fill(self, ids: Sequence[str], threshold: float) -> list[dict[str, Any]]:
        """Suggest categories for products of the index, as :func:`fill_catalogue` does."""
        part, filler = self.catalogue.subset([self.rows[name] for name in ids]), self.filler
        found = replace(filler, threshold=threshold).fill(
            self.index.vectors(ids), part, is_known(self.run, part)
        )
        return [dict(one) for one, _ in found]

    def captions(self, name: str) -> list[str]:
        return [self.catalogue.titles[self._product(name)]]

    def shows(self, name: str, record: Mapping[str, Any] | None = None) -> bool:
        return bool(self.catalogue.picture_rows[self._product(name)] >= 0)

    def locate(self) -> None:
        """The catalogue is open from the beginning."""

    def _row(self, name: str) -> tuple[Collection, int]:
        return self.catalogue.collection, int(self.catalogue.picture_rows[self._product(name)])

    def record(self, name: str) -> dict[str, Any]:
        return {}

    def path(self, name: str, record: Mapping[str, Any] | None = None) -> str:
        collection, image = self._row(name)
        return collection.image_path(image) if image >= 0 else ""

    def _product(self, name: str) -> int:
        if name not in self.rows:
            problem = f"the index finds {name!r}, which {self.catalogue.name} no longer holds"
            raise DataError(problem, "index the products again")
        return self.rows[name]

    def find(self, query: str, k: int = 10, **options: Any) -> list[Found]:
        if options.get("own_terms"):
            raise UsageError("--own-terms is of searches for images", "leave it out")
        if query_type(query) != "text":
            problem = f"{query!r} is an image or vectors; products are found by words"
            raise UsageError(problem, "give a category's name")
        [found] = super().find(query, k, **options)
        tree, meant, hits = self.catalogue.tree, self.catalogue.tree.meant(query), found.hits
        if not meant:
            return [replace(found, notes=[f"{query!r} is no category of the tree: no hit is right or wrong"])]
        named = " or ".join(map(tree.text, meant[:_NAMED]))
        more = f" and {len(meant) - _NAMED:,} more" if len(meant) > _NAMED else ""
        notes = [f"✓ sorted into {named}{more}, or below it; ✗ elsewhere; no mark: without a category"]
        if seen := sum(self.run.splits.get(hit.name) == "train" for hit in hits):
            notes.append(
                f"the run was trained on {seen:,} of these {len(hits):,}: their share of ✓ is too high"
            )
        return [replace(found, notes=notes)]

    def _words(self, query: str) -> str:
        """Return a category's text as the run knows it, or the words of the query."""
        tree, form = self.catalogue.tree, self.run.options.query
        meant = tree.meant(query)
        return category_texts(tree, meant, form)[0] if len(meant) == 1 and form != "name" else query

    def _encoded(self, query: str, own_terms: bool, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return self.run.category_rows([self._words(query)]), options

    def _described(self, query: str, best: Sequence[tuple[str, float]], row: Any, paths: bool) -> list[Hit]:
        """Return hits marked by whether they are of the category that is meant."""
        shop, meant, hits = self.catalogue, self.catalogue.tree.meant(query), []
        for hit in super()._described(query, best, row, True):
            places = shop.places_of(self.rows[hit.name])
            right = bool(np.isin(shop.tree.lineage[places], meant).any()) if meant and len(places) else None
            hits.append(replace(hit, right=right))
        return hits

    def _table(self, query: str, hits: Sequence[Hit], paths: bool, after: str) -> Table:
        shop, words, lines = self.catalogue, self._words(query), []
        for rank, hit in enumerate(hits, 1):
            places = "; ".join(map(shop.tree.text, shop.places_of(self.rows[hit.name]).tolist()))
            line = [f"{rank}", f"{hit.score:.3f}", hit.name, _MARKS[hit.right], hit.text, places]
            lines.append([*line, hit.path] if paths else line)
        title = f"products for {query!r}" + (f", encoded as {words!r}" if words != query else "")
        return Table.of(
            title, after, ("rank", "score", "id", "", "title", "category", *["path"] * paths), lines
        )
