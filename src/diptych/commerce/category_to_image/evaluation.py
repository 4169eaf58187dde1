"""Evaluate category-to-image models: all models in all settings with several seeds (thesis section 7.4)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from diptych.commerce.catalogue import (
    SETTINGS,
    Catalogue,
    CategoryText,
    Judged,
    Relevance,
    category_texts,
    judge,
)
from diptych.commerce.catalogue.making import seen_nodes
from diptych.commerce.category_to_image.features import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.images import Missing
from diptych.commerce.category_to_image.measuring import first_of, measure_ranker, score_rows
from diptych.commerce.category_to_image.mixed import MIXED, learn_mixed
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.rankers import RANKERS, Ranker, features_of_nodes
from diptych.commerce.category_to_image.results import (
    TRAINED,
    Cell,
    EvaluationProtocol,
    ModelsEvaluation,
    modalities_of,
    write_results,
)
from diptych.core.context import check_stop
from diptych.core.errors import DataError, MismatchError, UnknownNameError, UsageError
from diptych.core.files import check_replaceable
from diptych.core.job import Job
from diptych.core.version import __version__
from diptych.metrics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.features import FeatureMaker

_SETTINGS = ("all", "most-general", "most-specific")  # as thesis Table 7.1 prints them
_MODELS = (*RANKERS, *TRAINED)  # the ten of the thesis; ``mixed`` is evaluated where it is named
_OWN = {"modalities", "setting", "seed", "query"}  # options of a training that are each unit's own


def trained_options(model: str, setting: str, published: bool = False) -> TrainOptions:
    """Return how a model of that name is trained on products' categories of a setting, before anything is set."""
    modalities = modalities_of(model)
    if modalities is None:
        raise UnknownNameError("trained model", model, TRAINED)
    if setting not in SETTINGS:
        raise UnknownNameError("setting", setting, SETTINGS)
    made = TrainOptions.published if published else TrainOptions
    return made(modalities=modalities, setting=setting)


def chosen_settings(asked: Sequence[str] | None) -> list[str]:
    """Return settings in the order of thesis Table 7.1; all of them by default."""
    return _chosen("setting", _SETTINGS, asked)


def _chosen(what: str, known: Sequence[str], asked: Sequence[str] | None, *more: str) -> list[str]:
    """Return the names asked for in the order of ``known``, then ``more``; all that are known by default."""
    if asked is not None and not asked:
        raise UsageError(f"no {what} was asked for", f"for example {', '.join(known)}")
    for name in asked or ():
        if name not in (*known, *more):
            raise UnknownNameError(what, name, (*known, *more))
    return [name for name in (*known, *more) if name in (asked or known)]


def _possible(
    what: str, wanted: Iterable[str], check: Callable[[str], object], named: bool, left_out: dict[str, str]
) -> list[str]:
    """Return the names that the data allow; why others are left out is added, of those asked for by name raised."""
    usable = []
    for name in wanted:
        try:
            check(name)
        except (UsageError, MismatchError, DataError) as error:
            if named:
                raise
            left_out[name] = str(error.message)
        else:
            usable.append(name)
    if not usable:
        raise UsageError(f"no {what} can be measured on these products", "; ".join(left_out.values()))
    return usable


def check_model(
    model: str, products: ProductFeatures, categories: CategoryFeatures, learned: ProductFeatures | None
) -> None:
    """Refuse a model that these features do not allow."""
    if model in RANKERS:
        RANKERS[model](products).category_rows(categories)
        return
    if learned is None:
        fix = "make a split called train with --split-by product"
        raise UsageError(f"{model} needs products to train on", fix)
    for one in modalities_of(model) or ():
        for part, what in ((products, "product"), (learned, "training product")):
            if not np.any(part.present(one)):
                raise UsageError(f"{model} needs {one}, which no {what} has", f"leave out {model}")


class Unit(NamedTuple):
    """A model in a setting; ``seed`` is None for one that is not trained here."""

    setting: str
    model: str
    seed: int | None

    @property
    def key(self) -> str:
        """Name of its file."""
        return f"{self.setting}-{self.model}" + ("" if self.seed is None else f"-seed-{self.seed}")


@dataclass(frozen=True, eq=False)
class Work:
    """What units need; each process gets a copy."""

    protocol: EvaluationProtocol
    tested: ProductFeatures
    categories: CategoryFeatures  # of all nodes of the tree
    judged: Mapping[str, Judged]  # per setting
    about: Mapping[str, Any]  # of every result's protocol
    sets: Mapping[str, tuple[Catalogue, ProductFeatures]]  # ``train``, ``validation``, where there are
    seen: Mapping[tuple[str, int | None], np.ndarray]  # (nodes,) by setting and seed
    given: Ranker | None  # a model that was trained before

    def run(self, unit: Unit) -> Cell:
        """Train and measure."""
        began, spent = time.perf_counter(), time.process_time()
        judged, queries = self.judged[unit.setting], self.judged[unit.setting].nodes
        features = features_of_nodes(self.categories, queries)
        about = {**self.about, **({} if unit.seed is None else {"seed": unit.seed})}
        with _one_thread():
            ranker = self.given or self._ranker(unit)
            trained = time.perf_counter() - began
            scored = score_rows(ranker, self.tested, features, judged)
            result = measure_ranker(ranker, self.tested, features, judged, about=about, scored=scored)
            first, scores = first_of(scored, 1)
            guess, _ = first_of(scored, 1, "i2t")
        seconds = {"seconds": time.perf_counter() - began, "seconds_of_training": trained}
        seconds["processor_seconds"] = time.process_time() - spent
        seen, place = self.seen.get((unit.setting, unit.seed)), first[:, 0]
        return Cell.of(
            result,
            nodes=queries,
            first=np.where(place < 0, -1, judged.products[place]),
            score=scores[:, 0],
            found=np.where(place < 0, -1, judged.labels[place]),
            right=(place >= 0) & judged.truth.t2i.holds(np.arange(len(queries)), np.maximum(place, 0)),
            guess=np.where(guess[:, 0] < 0, -1, queries[guess[:, 0]]),
            seen=None if seen is None else seen[queries],
            about={
                "ranker": ranker.describe(),
                "fingerprint": ranker.fingerprint,
                "trained": unit.seed is not None,
                **{name: round(value, 3) for name, value in seconds.items()},
            },
        )

    def _ranker(self, unit: Unit) -> Ranker:
        from diptych.commerce.category_to_image.training import train

        if unit.seed is None:
            return RANKERS[unit.model](self.tested)
        learn = learn_mixed if unit.model == MIXED else train
        options, validation = options_for(self.protocol, unit), self.sets.get("validation")
        model: Ranker = learn(*self.sets["train"], self.categories, options, validation=validation)
        check_stop("stopped: every model that was measured is kept")
        return model


def options_for(protocol: EvaluationProtocol, unit: Unit) -> TrainOptions:
    """Return the options of one unit's training; ``mixed`` is trained on all modalities."""
    modalities = modalities_of(TRAINED[-1] if unit.model == MIXED else unit.model)
    published = TrainOptions.published(modalities or (), unit.setting).model_dump()
    own = {"modalities": modalities, "setting": unit.setting, "seed": unit.seed, "query": protocol.query}
    return TrainOptions(**{**(published if protocol.published else protocol.options), **own})


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let PyTorch compute with one thread: the bits of its sums depend on how many there are."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _same(work: Work) -> Work:
    return work


def evaluate_models(
    train: Catalogue | None,
    validation: Catalogue | None,
    test: Catalogue,
    maker: FeatureMaker,
    out: Path | str,
    *,
    models: Sequence[str] | None = None,
    settings: Sequence[str] | None = None,
    relevance: Relevance = "label",
    query: CategoryText = "name",
    seeds: Sequence[int] = (0, 1, 2),
    published: bool = False,
    options: TrainOptions | None = None,
    given: tuple[Ranker, str] | None = None,
    seen: Mapping[str, np.ndarray] | None = None,
    judged_seed: int = 0,
    missing: Missing = "error",
    jobs: int = 1,
    bootstrap: Bootstrap | None = None,
    about: Mapping[str, Any] | None = None,
) -> ModelsEvaluation:
    """Train and measure models in every setting; after any interruption the same call resumes.

    The test products are judged once; numbers do not depend on ``jobs``. A finished folder may grow by models,
    settings and seeds.

    Args:
        train: None where nothing is trained.
        seeds: of training.
        given: a model that was trained before and its description; it alone is measured.
        seen: per setting, (nodes,) booleans: categories that the given model was trained on, where that is known.
        judged_seed: of the categories drawn for test products in the setting ``all``.
        about: further metadata of the results.
    """
    from diptych.commerce.category_to_image.training import Pairs, missing_pictures

    check_replaceable(Path(out), EvaluationProtocol.marker())
    if published and options is not None:
        raise UsageError("published training has its own options", "leave out options, or published")
    if jobs < 1:
        raise UsageError(f"{jobs} jobs: at least one process is needed")
    if not seeds:
        raise UsageError("no seed was asked for", "for example 0, 1, 2")
    parts = {"train": train, "validation": None if published else validation}
    for name, other in (("validation", validation), ("test", test)):
        if train is not None and other is not None and other.tree.fingerprint != train.tree.fingerprint:
            sizes = f"{len(other.tree):,} categories, the training products {len(train.tree):,}"
            problem = f"the {name} products are of another category tree: it has {sizes}"
            raise MismatchError(problem, "split one catalogue")
    chosen, base = chosen_settings(settings), options or TrainOptions()
    wanted = _chosen("model", _MODELS, models, MIXED) if given is None else [given[0].name]
    texts = category_texts(test.tree, range(len(test.tree)), query)
    learns = given is None and train is not None and any(name not in RANKERS for name in wanted)
    left_out: dict[str, str] = {}

    def trainable(setting: str) -> None:
        assert train is not None
        for seed in seeds:
            Pairs(train, texts, base.model_copy(update={"setting": setting, "seed": seed}))

    if learns:
        chosen = _possible("setting", chosen, trainable, settings is not None, left_out)
    sets = {
        name: (part, maker.products(part, missing=missing))
        for name, part in parts.items()
        if part is not None and learns
    }
    tested, categories = maker.products(test, missing=missing), maker.categories(texts)
    if given is None:
        learned = sets["train"][1] if learns else None
        check = partial(check_model, products=tested, categories=categories, learned=learned)
        wanted = _possible("model", wanted, check, models is not None, left_out)
    pictured = [tested.pictured, *(part.pictured for part in parts.values() if part is not None)]
    set_ = {} if published or given else base.model_dump(mode="json", exclude=_OWN)
    protocol = EvaluationProtocol(
        **{name: "" if part is None else part.fingerprint for name, part in parts.items()},
        test=test.fingerprint,
        encoders=maker.fingerprint,
        relevance=relevance,
        query=query,
        published=published,
        options=set_,
        judged_seed=judged_seed,
        given="" if given is None else f"{given[1]}, fingerprint {given[0].fingerprint}",
        pictures="" if tested.image is None else missing_pictures(pictured),
    )
    epochs = base.epochs if base.resample and not published else 0
    known: dict[tuple[str, int | None], np.ndarray] = {
        (setting, None): mask for setting, mask in (seen or {}).items()
    }
    for setting, seed in product(chosen, (None, *seeds)):
        if train is not None:
            drawn = seeds[0] if seed is None else seed
            known[setting, seed] = seen_nodes(train, setting, drawn, epochs=epochs)
    metadata = {"dataset": test.name, "test": test.fingerprint, "query text": query}
    metadata |= {"encoders": maker.fingerprint} | ({"compat": "published training"} if published else {})
    judged = {name: judge(test, name, relevance, judged_seed) for name in chosen}
    ranker = given and given[0]
    work = Work(protocol, tested, categories, judged, metadata, sets, known, ranker)
    once = {model for model in wanted if given or model in RANKERS}
    units = [
        Unit(setting, model, seed)
        for setting, model in product(chosen, wanted)
        for seed in ((None,) if model in once else dict.fromkeys(seeds))
    ]
    job = Job(Path(out), protocol, Cell, noun="models")
    keyed = {unit.key: unit for unit in units}
    job.run(keyed, Work.run, processes=jobs, setup=_same, setup_args=(work,))
    cells: dict[str, dict[str, list[Cell]]] = {}
    for key, unit in keyed.items():
        cells.setdefault(unit.setting, {}).setdefault(unit.model, []).append(Cell.open(job.path(key)))
    notes = dict.fromkeys(note for part in (train, test) if part is not None for note in part.notes)
    shown = {
        "diptych": __version__,
        "data": data_line(test, {name: part for name, (part, _) in sets.items()}),
        "encoders": encoders_line(maker.describe()),
        "features": maker.describe(),
        "left_out": left_out,
        "notes": [*notes, *(f"{name}: {why}" for name, why in left_out.items())],
        **(about or {}),
        "seeds": [] if given else [*dict.fromkeys(seeds)],
        "units": {key: list(unit) for key, unit in keyed.items()},
    }
    write_results(Path(out), protocol, cells, judged, test, shown, bootstrap or Bootstrap())
    return ModelsEvaluation.open(out)


def data_line(test: Catalogue, learned: Mapping[str, Catalogue]) -> str:
    """Return dataset, sizes and fingerprint, for protocols."""
    uses = {"train": "{:,} products to train on", "validation": "{:,} to choose the epoch by"}
    sizes = [uses[name].format(len(part)) for name, part in learned.items()]
    found = f"{len(test):,} to find (fingerprint {test.fingerprint})"
    return "; ".join([f"dataset {test.name}", *sizes, found, test.tree.describe()])


def encoders_line(described: Mapping[str, Any]) -> str:
    """Return what made the features, for protocols."""
    parts = []
    for side in ("image", "text"):
        if one := described.get(side):
            words = [str(one[key]) for key in ("kind", "source", "model", "width") if one.get(key)]
            mark = f" ({one['fingerprint']})" if one.get("fingerprint") else ""
            parts.append(f"{side} encoder {' '.join(dict.fromkeys(words))}{mark}")
    if described.get("fingerprint"):
        parts.append(f"features {described['fingerprint']}")
    return ", ".join(parts) or "encoders unknown"
