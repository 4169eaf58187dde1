"""The shared part of product readers: one product is a title, attributes, category paths, and an image or none."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from diptych.core.errors import DataError
from diptych.data.collection import WHOLE, Collection
from diptych.data.images import PICTURE_ENDINGS
from diptych.data.products import MAX_LEVELS, paths_of, picture_name, plain_text
from diptych.data.readers.contract import MAX_CHARACTERS, Gathering, Item, choice

Missing = Literal["none", "error", "skip"]
Duplicates = Literal["merge", "first", "error"]

_MAX_ID = 200
_SHORT = 24


def short_text(value: Any) -> str:
    """Return one line of plain text, of the first :data:`MAX_CHARACTERS` characters at most."""
    return "" if value is None else plain_text(str(value)[:MAX_CHARACTERS])


def files_in(folder: Path) -> Callable[[str], str]:
    """Return the look-up of a product's image in a folder: its file's name, empty for none.

    A file is a product's when its name without the ending is :func:`picture_name` of the id, or else the id itself
    (if that holds no ``~``: it could be the name of another one's image); of several endings the first in
    alphabetical order counts.
    """
    files: dict[str, str] = {}
    for name in sorted(os.listdir(folder) if folder.is_dir() else ()):
        stem, _, ending = name.rpartition(".")
        if stem and ending.lower() in PICTURE_ENDINGS:
            files.setdefault(stem, name)
    return lambda product: (
        files.get(picture_name(product)) or ("~" not in product and files.get(product)) or ""
    )


class ProductGathering(Gathering):
    """A collection of products in the making.

    Args:
        missing: what becomes of a product without an image: kept without one, an error, left out.
        duplicates: what becomes of a product that comes again: its category paths join the first's, it is left out,
            an error.
    """

    def __init__(
        self,
        missing: Missing,
        duplicates: Duplicates,
        validation: float,
        test: float,
        skip_bad_captions: bool = False,
    ) -> None:
        super().__init__(skip_bad_captions, validation, test)
        choice("missing", missing, ("none", "error", "skip"))
        choice("duplicates", duplicates, ("merge", "first", "error"))
        self._missing, self._duplicates = missing, duplicates
        self._known: dict[Any, Any] = {}

    def product(
        self,
        name: str,
        record: Mapping[str, Any],
        where: str,
        group: str = "",
        caption: str | None = None,
        split: str = WHOLE,
        caption_records: Sequence[Mapping[str, Any]] = (),
    ) -> Item | None:
        """Add a product; its caption is its title where none is given. None for one that came before."""
        if not name or len(name) > _MAX_ID or plain_text(name) != name:
            fix = f"an id is one line of at most {_MAX_ID} characters"
            raise DataError(f"{where}: {name[:40]!r} is no id of a product", fix)
        paths = paths_of(record)
        if (deepest := max(map(len, paths), default=0)) > MAX_LEVELS:
            message = f"{where}: the category of {name} has {deepest:,} levels, more than {MAX_LEVELS}"
            raise DataError(message, "check what stands between the names")
        known = self.items.get(name)
        if known is None:
            kept = self._kept(record, paths)
            title = kept.get("title", "")
            texts = [caption] if caption is not None else [title] if any(map(str.isalnum, title)) else []
            return self.add(name, texts, split, kept, where, None, caption_records, group)
        if self._duplicates == "error":
            message = f"{where}: product {name} was in {known.where} already"
            raise DataError(message, "--reader-option duplicates=first")
        if self._duplicates == "first":
            self.counts["lines that list a product again left out"] += 1
        else:
            both = tuple(dict.fromkeys((*paths_of(known.record), *paths)))
            known.record = self._kept(known.record or {}, both)
            self.counts["lines that list a product again: their category paths joined its first line's"] += 1
        return None

    def _kept(self, record: Mapping[str, Any], paths: tuple[tuple[str, ...], ...]) -> dict[str, Any]:
        """Return the record with these paths, one as ``category_path`` and several as ``category_paths``.

        Empty values are left out. Many products have the same: paths, names and short values are held once.
        """
        kept = {key: value for key, value in record.items() if value and not key.startswith("category_path")}
        if "attributes" in kept:
            kept["attributes"] = {
                self._once(key): self._once(values[0])
                if len(values) == 1
                else tuple(self._once(value) for value in values)
                for key, given in kept["attributes"].items()
                if (values := (given,) if isinstance(given, str) else tuple(given))
            }
        if len(paths) == 1:
            kept["category_path"] = self._known.setdefault(paths[0], paths[0])
        elif paths:
            kept["category_paths"] = self._known.setdefault(paths, paths)
        return kept

    def _once(self, text: str) -> str:
        return str(self._known.setdefault(text, text)) if len(text) <= _SHORT else text

    def products(
        self, name: str, folder: Path, notes: Sequence[str] = (), file_of: Callable[[str], str] | None = None
    ) -> Collection:
        """Return the collection; ``file_of`` names a product's image in the folder, or is empty; see files_in."""
        n_products, file_of = len(self.items), file_of or files_in(folder)
        for product, item in self.items.items():
            item.image = file_of(product)
        lost = {product: item for product, item in self.items.items() if not item.image}
        if lost and self._missing == "error":
            first, item = next(iter(lost.items()))
            no_image = f"have no image in {folder}, the first: {first} ({item.where})"
            fix = "fetch them, keep them without one with --reader-option missing=none, or give missing=skip"
            raise DataError(f"{len(lost):,} of {n_products:,} products {no_image}", fix)
        if self._missing == "skip":
            self.items = {product: item for product, item in self.items.items() if item.image}
        if not self.items:
            with_image = f" with an image in {folder}" if n_products else ""
            fix = "fetch the file again, or keep products without an image with --reader-option missing=none"
            raise DataError(f"{name} has no products{with_image}", fix)
        kept = "left out" if self._missing == "skip" else "kept without one"
        self.counts[f"products without an image in {folder.name}/ {kept}"] = len(lost)
        untitled = sum(not item.n_texts for item in self.items.values())
        self.counts["products without a title have no caption"] = untitled
        return self.collection(name, folder, "object", notes)
