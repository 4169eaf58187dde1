"""Evaluate a ranker, or all models in all settings with several seeds (thesis section 7.4)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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
from diptych.commerce.category_to_image.features.pictures.contract import Missing
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
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
from diptych.core.job import Job
from diptych.core.version import __version__
from diptych.metrics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.features.maker import FeatureMaker

_SETTINGS = ("all", "most-general", "most-specific")  # as thesis Table 7.1 prints them


def all_models() -> tuple[str, ...]:
    """Return the ten models of the thesis, untrained ones first; ``mixed`` is evaluated where it is named."""
    return (*RANKERS, *TRAINED)


def trained_options(model: str, setting: str, published: bool = False) -> TrainOptions:
    """Return how a model of that name is trained on products' categories of a setting, before anything is set."""
    modalities = modalities_of(model)
    if modalities is None:
        raise UnknownNameError("trained model", model, TRAINED)
    SETTINGS.get(setting)
    if published:
        return TrainOptions.published(modalities, setting)
    return TrainOptions(modalities=modalities, setting=setting)


def chosen_settings(asked: Sequence[str] | None) -> list[str]:
    """Return settings in the order of thesis Table 7.1; all of them by default."""
    return _chosen("setting", _SETTINGS, asked)


def _chosen(
    what: str, known: Sequence[str], asked: Sequence[str] | None, more: Sequence[str] = ()
) -> list[str]:
    """Return the names asked for in the order of ``known``, then ``more``; all that are known by default."""
    for name in asked or ():
        if name not in (*known, *more):
            raise UnknownNameError(what, name, (*known, *more))
    if asked is not None and not asked:
        raise UsageError(f"no {what} was asked for", f"for example {', '.join(known)}")
    return [name for name in (*known, *more) if name in (known if asked is None else asked)]


def _possible(
    what: str, wanted: Iterable[str], check: Callable[[str], object], named: bool
) -> tuple[list[str], dict[str, str]]:
    """Return the names that the data allow, and why others are left out; those asked for by name must be allowed."""
    usable, left_out = [], {}
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
    return usable, left_out


def usable_models(
    wanted: Sequence[str],
    products: ProductFeatures,
    categories: CategoryFeatures,
    learned: ProductFeatures | None,
    *,
    named: bool,
) -> tuple[list[str], dict[str, str]]:
    """Return the models that these features allow, and why others are left out."""

    def check(model: str) -> None:
        if model in RANKERS:
            RANKERS[model](products).category_rows(categories)
            return
        for one in modalities_of(model) or ():
            for part, what in ((products, "product"), (learned, "training product")):
                if part is not None and not np.any(part.present(one)):
                    raise UsageError(f"{model} needs {one}, which no {what} has", f"leave out {model}")

    return _possible("model", wanted, check, named)


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
    train: tuple[Catalogue, ProductFeatures] | None = None
    validation: tuple[Catalogue, ProductFeatures] | None = None
    given: Ranker | None = None  # a model that was trained before
    seen: Mapping[tuple[str, int | None], np.ndarray] = field(
        default_factory=dict
    )  # (nodes,) by setting and seed

    def run(self, unit: Unit) -> Cell:
        """Train and measure."""
        began, spent = time.perf_counter(), time.process_time()
        with _one_thread():
            ranker = self.given or self._ranker(unit)
            trained = time.perf_counter() - began
            cell = self._measured(unit, ranker)
        seconds = {"seconds": time.perf_counter() - began, "seconds_of_training": trained}
        seconds["processor_seconds"] = time.process_time() - spent
        cell.about.update({name: round(value, 3) for name, value in seconds.items()})
        return cell

    def _ranker(self, unit: Unit) -> Ranker:
        from diptych.commerce.category_to_image.training import train

        if unit.seed is None:
            return RANKERS[unit.model](self.tested)
        assert self.train is not None
        learn = learn_mixed if unit.model == MIXED else train
        options = options_for(self.protocol, unit)
        model: Ranker = learn(*self.train, self.categories, options, validation=self.validation)
        check_stop("stopped: every model that was measured is kept")
        return model

    def _measured(self, unit: Unit, ranker: Ranker) -> Cell:
        judged, about = self.judged[unit.setting], dict(self.about)
        if unit.seed is not None:
            about["seed"] = unit.seed
        queries = features_of_nodes(self.categories, judged.nodes)
        scored = score_rows(ranker, self.tested, queries, judged)
        result = measure_ranker(ranker, self.tested, queries, judged, about=about, scored=scored)
        (first, score), (guess, _) = (first_of(scored, 1, side) for side in ("t2i", "i2t"))  # type: ignore[arg-type]
        first, guess, some = first[:, 0], guess[:, 0], np.arange(len(judged.nodes))
        seen = self.seen.get((unit.setting, unit.seed))
        return Cell.of(
            result,
            nodes=judged.nodes,
            first=np.where(first < 0, -1, judged.products[first]),
            score=score[:, 0],
            found=np.where(first < 0, -1, judged.labels[first]),
            right=(first >= 0) & judged.truth.t2i.holds(some, np.maximum(first, 0)),
            guess=np.where(guess < 0, -1, judged.nodes[guess]),
            seen=None if seen is None else seen[judged.nodes],
            about={"ranker": ranker.describe(), "fingerprint": ranker.fingerprint},
        )


def options_for(protocol: EvaluationProtocol, unit: Unit) -> TrainOptions:
    """Return the options of one unit's training; ``mixed`` is trained on all modalities."""
    modalities = modalities_of(unit.model if unit.model != MIXED else TRAINED[-1])
    assert modalities is not None
    base = protocol.options
    if protocol.published:
        base = TrainOptions.published(modalities, unit.setting).model_dump()
    own = {"modalities": modalities, "setting": unit.setting, "seed": unit.seed, "query": protocol.query}
    return TrainOptions(**{**base, **own})


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


def _evaluate(
    work: Work,
    test: Catalogue,
    out: Path | str,
    models: Sequence[str],
    seeds: Sequence[int],
    jobs: int,
    bootstrap: Bootstrap | None,
    about: Mapping[str, Any],
) -> ModelsEvaluation:
    """Run the units that are missing, and write the results."""
    if jobs < 1:
        raise UsageError(f"{jobs} jobs: at least one process is needed")
    units = [
        Unit(setting, model, seed)
        for setting in work.judged
        for model in models
        for seed in ((None,) if work.given or model in RANKERS else seeds)
    ]
    job = Job(Path(out), work.protocol, Cell, noun="models")
    job.run({unit.key: unit for unit in units}, Work.run, processes=jobs, setup=_same, setup_args=(work,))
    cells: dict[str, dict[str, list[Cell]]] = {}
    for unit in units:
        cells.setdefault(unit.setting, {}).setdefault(unit.model, []).append(Cell.open(job.path(unit.key)))
    keys = {unit.key: list(unit) for unit in units}
    about = {"diptych": __version__, **about, "seeds": list(seeds), "units": keys}
    write_results(Path(out), work.protocol, cells, work.judged, test, about, bootstrap or Bootstrap())
    return ModelsEvaluation.open(out)


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
    judged_seed: int = 0,
    missing: Missing = "error",
    jobs: int = 1,
    bootstrap: Bootstrap | None = None,
    about: Mapping[str, Any] | None = None,
) -> ModelsEvaluation:
    """Train and measure models in every setting; after any interruption the same call resumes.

    The test products are judged once, with ``judged_seed``; ``seeds`` are of training alone. A finished folder may
    grow by models, settings and seeds. Models that need no training need no ``train``. Numbers do not depend on
    ``jobs``.
    """
    from diptych.commerce.category_to_image.training.trained import Pairs, missing_pictures

    if published and options is not None:
        raise UsageError("published training has its own options", "leave out options, or published")
    for name, other in (("validation", validation), ("test", test)):
        if train is not None and other is not None and other.tree.fingerprint != train.tree.fingerprint:
            sizes = f"{len(other.tree):,} categories) than the training products ({len(train.tree):,})"
            problem = f"the {name} products are of another category tree ({sizes}"
            raise MismatchError(problem, "split one catalogue")
    wanted, chosen = _chosen("model", all_models(), models, (MIXED,)), chosen_settings(settings)
    if not seeds:
        raise UsageError("no seed was asked for", "for example 0, 1, 2")
    left_out: dict[str, str] = {}
    if train is None:
        need = "needs products to train on: a split called train"
        if models is not None and (untrainable := [name for name in wanted if name not in RANKERS]):
            raise UsageError(f"{untrainable[0]} {need}", "make one with --split-by product")
        left_out = {name: need for name in wanted if name not in RANKERS}
        wanted, validation = [name for name in wanted if name in RANKERS], None
    base, texts = options or TrainOptions(), category_texts(test.tree, range(len(test.tree)), query)
    learns = any(name not in RANKERS for name in wanted)

    def trainable(setting: str) -> None:
        for seed in seeds:
            Pairs(train, texts, base.model_copy(update={"setting": setting, "seed": seed}))  # type: ignore[arg-type]

    if learns:
        chosen, why_not = _possible("setting", chosen, trainable, settings is not None)
        left_out |= why_not
    parts = {"train": train, "validation": None if published else validation}
    sets = {
        name: (part, maker.products(part, missing=missing))
        for name, part in parts.items()
        if part is not None and learns
    }
    tested, categories = maker.products(test, missing=missing), maker.categories(texts)
    usable, why_not = usable_models(
        wanted, tested, categories, sets["train"][1] if learns else None, named=models is not None
    )
    left_out |= why_not
    pictured = [tested.pictured, *(part.pictured for part in parts.values() if part is not None)]
    protocol = EvaluationProtocol(
        **{name: "" if part is None else part.fingerprint for name, part in parts.items()},
        test=test.fingerprint,
        encoders=maker.fingerprint,
        relevance=relevance,
        query=query,
        published=published,
        options={}
        if published
        else base.model_dump(mode="json", exclude={"modalities", "setting", "seed", "query"}),
        judged_seed=judged_seed,
        pictures="" if tested.image is None else missing_pictures(pictured),
    )
    epochs = base.epochs if base.resample and not published else 0
    seen = {
        (setting, seed): seen_nodes(train, setting, seeds[0] if seed is None else seed, epochs=epochs)
        for setting in chosen
        for seed in (None, *seeds)
        if train is not None
    }
    metadata = {"query text": query, "encoders": maker.fingerprint}
    work = Work(
        protocol,
        tested,
        categories,
        {name: judge(test, name, relevance, judged_seed) for name in chosen},
        _of_every_result(test, metadata | ({"compat": "published training"} if published else {})),
        **sets,
        seen=seen,
    )
    notes = [*dict.fromkeys(note for part in (train, test) if part is not None for note in part.notes)]
    shown = {
        "data": data_line(test, {name: part for name, (part, _) in sets.items()}),
        "encoders": encoders_line(maker.describe()),
        "features": maker.describe(),
        "left_out": left_out,
        "notes": [*notes, *(f"{name}: {why}" for name, why in left_out.items())],
        **(about or {}),
    }
    return _evaluate(work, test, out, usable, list(dict.fromkeys(seeds)), jobs, bootstrap, shown)


def evaluate_given(
    ranker: Ranker,
    test: Catalogue,
    products: ProductFeatures,
    categories: CategoryFeatures,
    out: Path | str,
    *,
    given: str,
    settings: Sequence[str] | None = None,
    relevance: Relevance = "label",
    query: CategoryText = "name",
    judged_seed: int = 0,
    seen: Mapping[str, np.ndarray] | None = None,
    bootstrap: Bootstrap | None = None,
    about: Mapping[str, Any] | None = None,
) -> ModelsEvaluation:
    """Measure one ready model in every setting; the folder is as of :func:`evaluate_models`.

    Args:
        seen: per setting, (nodes,) booleans: categories that the model was trained on, where that is known.
    """
    sizes = {"products": (len(products), len(test)), "categories": (len(categories), len(test.tree))}
    for what, (have, want) in sizes.items():
        if have != want:
            raise DataError(f"features of {have:,} {what} for {want:,}", "make them of this catalogue")
    encoders = str(products.about.get("fingerprint", ""))
    protocol = EvaluationProtocol(
        "",
        "",
        test.fingerprint,
        encoders,
        relevance,
        query,
        False,
        {},
        judged_seed,
        given=f"{given}, fingerprint {ranker.fingerprint}",
    )
    judged = {name: judge(test, name, relevance, judged_seed) for name in chosen_settings(settings)}
    metadata = _of_every_result(test, {"query text": query, "encoders": encoders})
    known = {(setting, None): mask for setting, mask in (seen or {}).items()}
    work = Work(protocol, products, categories, judged, metadata, given=ranker, seen=known)
    shown = {
        "data": data_line(test, {}),
        "encoders": encoders_line(products.about),
        "features": {name: products.about.get(name) for name in ("image", "text", "fingerprint")},
        "left_out": {},
        "notes": list(test.notes),
        **(about or {}),
    }
    return _evaluate(work, test, out, [ranker.name], [], 1, bootstrap, shown)


def _of_every_result(test: Catalogue, more: Mapping[str, Any]) -> dict[str, Any]:
    return {"dataset": test.name, "test": test.fingerprint, **more}


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
