"""CategoryRun: the folder of one trained model with all that using it takes.

::

    RUN/
      category_run.json   state, options, data, splits, encoders, versions; written last
      model/              the heads
      encoders/           what makes rows of pictures and texts
      tree.json           the categories
      splits.parquet      id and split of every product
      metrics.jsonl       one line per epoch
      training.json       what was asked for, by which the same call is known
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.catalogue.catalogue import category_texts
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.artifact import Artifact
from diptych.core.errors import UsageError
from diptych.core.files import atomic_path, write_json
from diptych.core.reading import file_errors, read_json, read_log
from diptych.core.version import __version__

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.features import FeatureMaker
    from diptych.commerce.category_to_image.options import TrainOptions
    from diptych.commerce.category_to_image.training import TrainedModel

_AGAIN = "train it again: diptych categories train"


@dataclass(frozen=True, eq=False)
class CategoryRun(Artifact, kind="category_run", recreate="diptych categories train DATA"):
    """A trained model, its encoders and its tree; write one with :meth:`finish`, read one with :meth:`open`.

    Attributes:
        about: what ``category_run.json`` says: ``model``, ``options``, ``data`` (how the products were read),
            ``splits`` (sizes), ``catalogue`` (fingerprint), ``notes``, ``encoders``, ``libraries``.
        folder: where it is; model and encoders are read when they are first needed.
    """

    about: dict[str, Any]
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
        """Put what using a model takes beside it, in the folder that it was trained in."""
        folder = Path(folder)
        if not (folder / "model").is_dir():
            raise UsageError(f"no model was trained in {folder}", "train with out= that folder first")
        maker.save(folder / "encoders")
        tree = catalogue.tree
        codes = [[list(path), code] for path, code in tree.codes.items()]
        write_json(folder / "tree.json", {"paths": [list(path) for path in tree.paths], "codes": codes})
        _write_splits(folder / "splits.parquet", catalogue)
        about = {
            "diptych": __version__,
            "model": model.name,
            "fingerprint": model.fingerprint,
            "options": model.options.model_dump(mode="json"),
            "data": dict(data),
            "catalogue": catalogue.fingerprint,
            "splits": catalogue.split_sizes,
            "notes": list(catalogue.notes),
            "encoders": maker.describe(),
            "tree": tree.fingerprint,
            "python": platform.python_version(),
            "libraries": _versions(),
        }
        cls(about).save(folder / cls.marker())
        return cls.open(folder)

    @classmethod
    def open(cls, path: Path | str, of: str = "") -> Self:
        """Read a run."""
        if not cls.is_at(path):
            if (Path(path) / "training.json").is_file():
                raise UsageError(
                    f"the training in {path} has not ended",
                    "give the diptych categories train that began it again",
                )
            raise UsageError(
                f"{path} holds no trained category model (no {cls.marker()})",
                f"make one: diptych categories train DATA --out {path}",
            )
        return super().open(path, of)

    @cached_property
    def model(self) -> TrainedModel:
        """The trained heads."""
        from diptych.commerce.category_to_image.training import TrainedModel

        return TrainedModel.open(self.folder / "model")

    @property
    def options(self) -> TrainOptions:
        """How it was trained."""
        return self.model.options

    @cached_property
    def maker(self) -> FeatureMaker:
        """The frozen encoders."""
        from diptych.commerce.category_to_image.features import FeatureMaker

        return FeatureMaker.open(self.folder / "encoders")

    @cached_property
    def tree(self) -> CategoryTree:
        """The categories of the products that it was trained on."""
        said = read_json(self.folder / "tree.json")
        with file_errors(self.folder / "tree.json", fix=_AGAIN):
            return CategoryTree(said["paths"], {tuple(path): code for path, code in said["codes"]})

    @cached_property
    def splits(self) -> dict[str, str]:
        """The split of every product, by id."""
        import pyarrow.parquet as parquet

        with file_errors(self.folder / "splits.parquet", fix=_AGAIN):
            table = parquet.read_table(self.folder / "splits.parquet")
            return dict(zip(table["id"].to_pylist(), table["split"].to_pylist(), strict=True))

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """One entry per epoch: loss, temperature, validation measures."""
        return [line for _, line in read_log(self.folder / "metrics.jsonl")]

    def features(self, catalogue: Catalogue) -> ProductFeatures:
        """Rows of products by this run's encoders; products may lack pictures."""
        return self.maker.products(catalogue, missing="none")

    def category_features(self, categories: Sequence[str] | Sequence[int] | np.ndarray) -> CategoryFeatures:
        """Rows of categories by this run's encoders."""
        given = list(categories)
        if given and not isinstance(given[0], str):
            given = category_texts(self.tree, (int(node) for node in given), self.options.query)
        return self.maker.categories([str(text) for text in given])

    def describe(self) -> str:
        """One line."""
        options = self.about["options"]
        return (
            f"{self.about['model']} of {options['setting']} categories by {options['query']}, "
            f"{self.about['fingerprint']}, in {self.folder}"
        )


def encoder_name(about: Mapping[str, Any] | None) -> str:
    """Return kind, names and fingerprint of an encoder."""
    if about is None:
        return "none"
    words = [str(about[key]) for key in ("kind", "source", "model", "name", "fingerprint") if about.get(key)]
    return " ".join(dict.fromkeys(words))


def _write_splits(file: Path, catalogue: Catalogue) -> None:
    import pyarrow
    import pyarrow.parquet as parquet

    splits = pyarrow.array(list(catalogue.splits), pyarrow.string()).dictionary_encode()
    table = pyarrow.table({"id": pyarrow.array(list(catalogue.ids), pyarrow.string()), "split": splits})
    with atomic_path(file) as temporary:
        parquet.write_table(table, temporary, compression="zstd")


def _versions() -> dict[str, str]:
    from importlib import metadata

    return {
        name: metadata.version(name) for name in ("torch", "numpy", "pillow", "scikit-learn", "safetensors")
    }
