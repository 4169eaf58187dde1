"""CategoryRun: the folder of a trained model with all that using it takes; and the products that it is used on.

::

    RUN/
      category_run.json   options, data, tree, encoders, versions; written last
      model.safetensors   the heads
      encoders/           the text encoder; the image encoder is opened by its name
      splits.parquet      id and split of every product
      metrics.jsonl       one line per epoch
      training.json       what the training was begun with, by which the same call is known
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue, category_texts
from diptych.commerce.catalogue.making import catalogue_of
from diptych.commerce.catalogue.source import ProductData, SortedData
from diptych.commerce.category_to_image.features import FeatureMaker, TrainOptions, encoders_of
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.artifact import Artifact
from diptych.core.context import track
from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.files import atomic_path, create_array
from diptych.core.options import parameter
from diptych.core.reading import file_errors
from diptych.data.products import paths_of
from diptych.data.source import OutOption
from diptych.encoders.embeddings import Embeddings
from diptych.metrics.runs import blocks

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.training import TrainedModel

_WEIGHTS, _TEXT, _SPLITS = "model.safetensors", "encoders", "splits.parquet"
_AGAIN = "train it again: diptych categories train"
_BLOCK = 16_384  # products that are embedded together


@dataclass(frozen=True, eq=False)
class CategoryRun(Artifact, kind="category_run", version=4, recreate="diptych categories train DATA"):
    """A trained model, its encoders and its tree; model and encoders are read when they are first needed."""

    about: dict[str, Any]  # model, fingerprint, options, training, data (a ProductData), encoders, …
    paths: list[list[str]]  # of the tree, in node order
    codes: list[list[Any]]  # path and code of the nodes that have one
    folder: Path = field(init=False, default=Path())

    @classmethod
    def finish(
        cls,
        folder: Path | str,
        model: TrainedModel,
        maker: FeatureMaker,
        catalogue: Catalogue,
        data: Mapping[str, Any],
    ) -> CategoryRun:
        """Write what a training in ``folder`` ended with, the header last."""
        import pyarrow
        import pyarrow.parquet as parquet

        from diptych.encoders.inputs import save_tensors
        from diptych.training.run import TrainingFolder, environment

        folder, tree = Path(folder), catalogue.tree
        about = {
            "model": model.name,
            "fingerprint": model.fingerprint,
            "options": model.options.model_dump(mode="json"),
            "training": dict(model.about),
            "data": dict(data),
            "catalogue": catalogue.fingerprint,
            "splits": catalogue.split_sizes,
            "notes": list(catalogue.notes),
            "encoders": maker.describe(),
            "tree": tree.fingerprint,
            "environment": environment(),
        }
        with atomic_path(folder / _WEIGHTS) as temporary:
            save_tensors(model.model.state_dict(), temporary)
        maker.text.save(folder / _TEXT)
        splits = {"id": list(map(str, catalogue.ids)), "split": list(catalogue.splits)}
        with atomic_path(folder / _SPLITS) as temporary:
            parquet.write_table(pyarrow.table(splits), temporary, compression="zstd")
        codes = [[list(path), code] for path, code in tree.codes.items()]
        cls(about, [list(path) for path in tree.paths], codes).save(folder / cls.marker())
        TrainingFolder(folder).finish()
        return cls.open(folder)

    @property
    def options(self) -> TrainOptions:
        return TrainOptions.read(self.about["options"], str(self.folder), StorageError)

    @cached_property
    def model(self) -> TrainedModel:
        from diptych.commerce.category_to_image.training import TrainedModel
        from diptych.encoders.inputs import load_tensors

        options, encoders, file = self.options, self.about["encoders"], self.folder / _WEIGHTS
        widths = ((encoders[side] or {"width": 0})["width"] for side in ("image", "text"))
        model = TrainedModel.untrained(options, *widths, encoders_of(encoders, *options.sides))
        with file_errors(file, fix=_AGAIN):
            model.model.load_state_dict(load_tensors(file, _AGAIN))
        if model.fingerprint != self.about["fingerprint"]:
            problem = f"{file} has the fingerprint {model.fingerprint}, the run {self.about['fingerprint']}"
            raise MismatchError(problem, _AGAIN)
        return replace(model, about=self.about["training"])

    @cached_property
    def maker(self) -> FeatureMaker:
        return FeatureMaker.reopen(self.about["encoders"], self.folder / _TEXT)

    @cached_property
    def tree(self) -> CategoryTree:
        return CategoryTree(self.paths, {tuple(path): code for path, code in self.codes})

    @cached_property
    def splits(self) -> dict[str, str]:
        """The split of every product that it was trained with, by id."""
        import pyarrow.parquet as parquet

        with file_errors(self.folder / _SPLITS, fix=_AGAIN):
            table = parquet.read_table(self.folder / _SPLITS)
            return dict(zip(table["id"].to_pylist(), table["split"].to_pylist(), strict=True))

    def products(self) -> Catalogue:
        """Read the products that it was trained with; later ones are of the split ``new``."""
        again = ProductData.read(self.about["data"], str(self.folder), StorageError, _AGAIN).catalogue()
        return replace(again, splits=[self.splits.get(name, "new") for name in again.ids])

    def texts(self, tree: CategoryTree) -> list[str]:
        """Return the query of every node of a tree, in the form that the model was trained with."""
        return category_texts(tree, range(len(tree)), self.options.query)

    def category_rows(self, texts: Sequence[str]) -> np.ndarray:
        """(q, d) float32 embeddings of category texts."""
        return self.model.category_rows(self.maker.categories(texts))

    @contextmanager
    def embeddings(self, catalogue: Catalogue, **about: Any) -> Iterator[Embeddings]:
        """Yield (n, d) float32 embeddings of products, made block by block and memory-mapped while the block runs."""
        features, n, model = self.maker.products(catalogue), len(catalogue), self.model
        width = model.options.width + (features.title.shape[1] if model.options.share_of_zero_shot else 0)
        with TemporaryDirectory() as folder:
            rows = create_array(Path(folder) / "rows.npy", "float32", (n, width))
            for here in track([*blocks(n, _BLOCK)], "products", unit="blocks"):
                rows[here] = model.product_rows(features.part(np.arange(n)[here]))
            made, data = {"ranker": model.describe(), **about}, catalogue.fingerprint
            yield Embeddings(features.ids, rows, model.fingerprint, data, "product", made)


class OtherData(SortedData):
    """Options of the products that a run is used on; without ``data`` those that it was trained on."""

    def of(self, run: CategoryRun, split: str | None = None, own_tree: bool = True) -> Catalogue:
        """Read the products of a split, attributes as the run does.

        They are sorted into the tree of their taxonomy, with ``own_tree`` into their own where any product has a
        category, else into the run's.
        """
        if self.data is None:
            if self != OtherData(unknown=self.unknown):
                fix = "name the products after the run, or leave them out"
                raise UsageError("options of data, but no data", fix)
            found = run.products()
        else:
            collection, tree, unknown = self.collection(), self.tree(), self.unknown
            if not tree and not (own_tree and any(map(paths_of, collection.records or ()))):
                tree, unknown = run.tree, "none"
            form = run.about["data"].get("attribute_form", "named")
            found = catalogue_of(collection, attribute_form=form, tree=tree, unknown=unknown)
        return found if split in (None, "all") else found.split(split)

    def use(self, run: CategoryRun, split: str | None, part: Catalogue) -> dict[str, Any]:
        """Return the metadata of what a run was used on, with how many of its products it was trained on."""
        learned = np.array([run.splits.get(name) == "train" for name in part.ids], dtype=bool)
        return {
            "run": str(run.folder.resolve()),
            "model": run.about["model"],
            "fingerprint": run.about["fingerprint"],
            "split": split,
            "data": run.about["data"] if self.data is None else self.model_dump(mode="json"),
            "trained_on": int((learned & ((part.place >= 0) | (self.data is not None))).sum()),
        }


class PartOptions(OutOption):
    """Options of a part of the products, and of the place of results."""

    split: str | None = parameter(None, "Only the products of this split, e.g. test.")
