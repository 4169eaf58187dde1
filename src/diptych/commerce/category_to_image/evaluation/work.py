"""The work of one cell: train where there is something to train, measure, keep."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from diptych.commerce.catalogue import Catalogue, Judged
from diptych.commerce.category_to_image.evaluation.cell import FIRST, Cell, CellName
from diptych.commerce.category_to_image.evaluation.measure import measure_ranker
from diptych.commerce.category_to_image.evaluation.models import modalities_of
from diptych.commerce.category_to_image.evaluation.names import PRODUCT_MEASURES
from diptych.commerce.category_to_image.evaluation.protocol import GridProtocol
from diptych.commerce.category_to_image.evaluation.scored import first_of, score_rows
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.ranker import Ranker
from diptych.core.errors import Interrupted, UnknownNameError

Stop = Callable[[], bool]


def options_for(protocol: GridProtocol, name: CellName) -> TrainOptions:
    """The options of one cell's training."""
    modalities = modalities_of(name.model)
    if modalities is None:
        raise UnknownNameError("trained model", name.model, protocol.models)
    base = (
        TrainOptions.published(modalities, name.setting).model_dump()
        if protocol.published
        else protocol.options
    )
    own = {"modalities": modalities, "setting": name.setting, "seed": name.seed, "query": protocol.query}
    return TrainOptions(**{**base, **own})


def ready_ranker(model: str, products: ProductFeatures) -> Ranker:
    """An untrained model for these products."""
    from diptych.commerce.category_to_image.rankers import RANKERS

    return RANKERS.get(model).make(products)


def features_of_nodes(categories: CategoryFeatures, nodes: np.ndarray) -> CategoryFeatures:
    """The rows of some nodes, of those of all nodes."""
    return CategoryFeatures(
        [categories.texts[node] for node in nodes.tolist()],
        categories.text[nodes],
        None if categories.dual is None else categories.dual[nodes],
        categories.about,
    )


@dataclass(frozen=True, eq=False)
class Work:
    """What cells need; processes get a copy of it.

    Attributes:
        folder: of the evaluation.
        protocol: of the grid.
        train, validation: catalogues; None where nothing is trained, or nothing validated.
        train_features, validation_features: theirs.
        test_features: of the catalogue that was judged.
        categories: features of all nodes of the tree.
        judged: per setting.
        seen: per setting and seed of training, (nodes,) booleans: categories that training saw.
        about: what every number depends on.
        given: models that were trained before, by name; then nothing else is measured.
    """

    folder: Path
    protocol: GridProtocol
    train: Catalogue | None
    validation: Catalogue | None
    train_features: ProductFeatures | None
    validation_features: ProductFeatures | None
    test_features: ProductFeatures
    categories: CategoryFeatures
    judged: Mapping[str, Judged]
    seen: Mapping[tuple[str, int], np.ndarray]
    about: Mapping[str, Any]
    given: Mapping[str, Ranker] = field(default_factory=dict)

    def names(self) -> Iterator[CellName]:
        """The grid, setting by setting."""
        for setting in self.protocol.settings:
            for model in self.protocol.models:
                seeds = self.protocol.seeds if self.is_trained(model) else (-1,)
                yield from (CellName(setting, model, seed) for seed in seeds)

    def is_trained(self, model: str) -> bool:
        """Whether cells of this model are trained here, once per seed."""
        return not self.protocol.given and modalities_of(model) is not None

    def run(self, name: CellName, should_stop: Stop = lambda: False) -> Cell:
        """Make a cell and keep it."""
        began, spent = time.perf_counter(), time.process_time()
        with one_thread():
            if name.model in self.given:
                ranker = self.given[name.model]
            elif self.is_trained(name.model):
                ranker = self._trained(name, should_stop)
            else:
                ranker = ready_ranker(name.model, self.test_features)
            trained = time.perf_counter() - began
            cell = self.measured(name, ranker)
        cell.about.update(
            seconds=round(time.perf_counter() - began, 3),
            seconds_of_training=round(trained, 3),
            processor_seconds=round(time.process_time() - spent, 3),
        )
        cell.save(name.file(self.folder), PRODUCT_MEASURES)
        return cell

    def measured(self, name: CellName, ranker: Ranker) -> Cell:
        """The cell of a ready model; nothing is written."""
        judged = self.judged[name.setting]
        asking = features_of_nodes(self.categories, judged.nodes)
        scored = score_rows(ranker, self.test_features, asking, judged)
        said = {**self.about, **({} if name.seed < 0 else {"seed": name.seed})}
        result = measure_ranker(ranker, self.test_features, asking, judged, about=said, scored=scored)
        first, scores = first_of(scored, FIRST)
        guess, _ = first_of(scored, 1, side="i2t")
        seed = name.seed if name.seed >= 0 else (self.protocol.seeds or (0,))[0]
        known = self.seen.get((name.setting, seed))
        return Cell(
            result=result,
            first=first,
            scores=scores,
            guess=guess[:, 0],
            seen=np.zeros(len(judged.nodes), bool) if known is None else known[judged.nodes],
            about={
                "ranker": ranker.describe(),
                "fingerprint": ranker.fingerprint,
                "seen_known": known is not None,
            },
        )

    def _trained(self, name: CellName, should_stop: Stop) -> Ranker:
        from diptych.commerce.category_to_image.training import train

        assert self.train is not None
        assert self.train_features is not None
        validation = None
        if self.validation is not None and self.validation_features is not None:
            validation = (self.validation, self.validation_features)
        model = train(
            self.train,
            self.train_features,
            self.categories,
            options_for(self.protocol, name),
            validation=validation,
            should_stop=should_stop,
        )
        if should_stop():
            raise Interrupted("stopped: every model that was measured is kept", "the same command goes on")
        return model


@contextmanager
def one_thread() -> Iterator[None]:
    """Let PyTorch compute with one thread: its sums, and so the bits, depend on how many there are."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
