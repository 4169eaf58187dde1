"""CategoryRun: the folder of one trained model with all that using it takes.

::

    RUN/
      category_run.json   model, options, data, tree, encoders, versions; written last
      splits.parquet      id and split of every product
      model/              the heads
      encoders/           what makes embeddings of images and texts
      metrics.jsonl       one line per epoch
      training.json       what the training was begun with, by which the same call is known
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.catalogue.catalogue import category_texts
from diptych.commerce.category_to_image.features import CategoryFeatures, FeatureMaker, ProductFeatures
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.artifact import Artifact
from diptych.core.errors import UsageError
from diptych.core.files import atomic_path
from diptych.core.reading import file_errors

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.options import TrainOptions
    from diptych.commerce.category_to_image.trained import TrainedModel


@dataclass(frozen=True, eq=False)
class CategoryRun(Artifact, kind="category_run", version=3, recreate="diptych categories train DATA"):
    """A trained model, its encoders and its tree; model and encoders are read when they are first needed."""

    about: dict[str, Any]  # model, options, data (a ProductData), splits (sizes), encoders, …
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
        import pyarrow
        import pyarrow.parquet as parquet

        from diptych.training.run import environment

        folder, tree = Path(folder), catalogue.tree
        maker.save(folder / "encoders")
        splits = {"id": list(map(str, catalogue.ids)), "split": list(catalogue.splits)}
        with atomic_path(folder / "splits.parquet") as temporary:
            parquet.write_table(pyarrow.table(splits), temporary, compression="zstd")
        about = {
            "model": model.name,
            "fingerprint": model.fingerprint,
            "options": model.options.model_dump(mode="json"),
            "data": dict(data),
            "catalogue": catalogue.fingerprint,
            "splits": catalogue.split_sizes,
            "notes": list(catalogue.notes),
            "encoders": maker.describe(),
            "tree": tree.fingerprint,
            "environment": environment(),
        }
        codes = [[list(path), code] for path, code in tree.codes.items()]
        cls(about, [list(path) for path in tree.paths], codes).save(folder / cls.marker())
        return cls.open(folder)

    @classmethod
    def open(cls, path: Path | str, of: str = "") -> Self:
        if not cls.is_at(path):
            if (Path(path) / "training.json").is_file():
                fix = "give the diptych categories train that began it again"
                raise UsageError(f"the training in {path} has not ended", fix)
            fix = f"make one: diptych categories train DATA --out {path}"
            raise UsageError(f"{path} holds no trained category model (no {cls.marker()})", fix)
        return super().open(path, of)

    @cached_property
    def model(self) -> TrainedModel:
        from diptych.commerce.category_to_image.trained import TrainedModel

        return TrainedModel.open(self.folder / "model")

    @property
    def options(self) -> TrainOptions:
        return self.model.options

    @cached_property
    def maker(self) -> FeatureMaker:
        return FeatureMaker.open(self.folder / "encoders")

    @cached_property
    def tree(self) -> CategoryTree:
        return CategoryTree(self.paths, {tuple(path): code for path, code in self.codes})

    @cached_property
    def splits(self) -> dict[str, str]:
        import pyarrow.parquet as parquet

        with file_errors(self.folder / "splits.parquet", fix="train it again: diptych categories train"):
            table = parquet.read_table(self.folder / "splits.parquet")
            return dict(zip(table["id"].to_pylist(), table["split"].to_pylist(), strict=True))

    def features(self, catalogue: Catalogue) -> ProductFeatures:
        """Return embeddings of products by this run's encoders; products may lack images."""
        return self.maker.products(catalogue, missing="none")

    def category_features(self, categories: Sequence[str] | Sequence[int] | np.ndarray) -> CategoryFeatures:
        """Return embeddings of categories, given as nodes of the tree or as texts, by this run's encoders."""
        given = list(categories)
        is_texts = all(isinstance(one, str) for one in given)
        return self.maker.categories(
            given if is_texts else category_texts(self.tree, given, self.options.query)
        )


def encoder_name(about: Mapping[str, Any], *keys: str) -> str:
    words = [str(about[key]) for key in ("kind", "source", "model", *keys) if about.get(key)]
    return " ".join(dict.fromkeys(words))
