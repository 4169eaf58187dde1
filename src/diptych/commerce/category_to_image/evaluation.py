"""Evaluate category-to-image models: all models in all settings with several seeds (thesis section 7.4)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from diptych.commerce.catalogue import SETTINGS, Catalogue, CategoryText, Judged, Relevance, judge
from diptych.commerce.catalogue.catalogue import category_texts
from diptych.commerce.catalogue.making import seen_nodes
from diptych.commerce.category_to_image.features import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.images import Missing
from diptych.commerce.category_to_image.measuring import PRODUCT_MEASURES, measure_ranker, score_rows
from diptych.commerce.category_to_image.mixed import MIXED, learn_mixed
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.rankers import RANKERS, Ranker
from diptych.commerce.category_to_image.results import (
    RESULTS,
    TRAINED,
    Cell,
    EvaluationProtocol,
    ModelsEvaluation,
    modalities_of,
    setting_numbers,
)
from diptych.commerce.category_to_image.runs import encoder_name
from diptych.core.context import check_stop, track
from diptych.core.errors import DataError, MismatchError, UnknownNameError, UsageError
from diptych.core.files import check_replaceable, write_json
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
    for what, name, known in (("trained model", model, TRAINED), ("setting", setting, SETTINGS)):
        if name not in known:
            raise UnknownNameError(what, name, known)
    made = TrainOptions.published if published else TrainOptions
    return made(modalities=modalities_of(model) or (), setting=setting)


def _usable(
    what: str,
    names: Sequence[str] | None,
    usual: Sequence[str],
    known: Sequence[str],
    check: Callable[[str], object],
    left_out: dict[str, str],
) -> list[str]:
    """Return the names, else the usual ones, that the data allow; why usual ones are left out is added."""
    if names is not None and not names:
        raise UsageError(f"no {what} is given", f"for example {', '.join(known)}")
    for name in names or ():
        if name not in known:
            raise UnknownNameError(what, name, known)
    usable = []
    for name in known:
        try:
            if name in (names or usual):
                check(name)
                usable.append(name)
        except (UsageError, MismatchError, DataError) as error:
            if names is not None:
                raise
            left_out[name] = str(error.message)
    if not usable:
        raise UsageError(f"no {what} can be measured on these products", "; ".join(left_out.values()))
    return usable


def why_not(model: str, maker: FeatureMaker, *parts: Catalogue) -> str:
    """Return why a model cannot be had of these products and encoders; empty where it can."""
    if model == "clip" and (maker.image is None or maker.image.texts is None):
        return "needs an image encoder that reads texts too, a dual encoder"
    needs = modalities_of(model) or (("image",) if model == "clip" else ("title",))
    for part in parts:
        has = {
            "image": maker.image is not None and bool(part.pictured.any()),
            "title": any(title.strip() for title in part.titles),
            "attributes": any(text.strip() for given in part.attributes for text in given),
        }
        if lacks := [one for one in needs if not has[one]]:
            return f"needs {' and '.join(lacks)}, which no product has"
    return ""


class Unit(NamedTuple):
    """A model in a setting; ``seed`` is None for one that is not trained here."""

    setting: str
    model: str
    seed: int | None

    @property
    def key(self) -> str:
        return f"{self.setting}-{self.model}" + ("" if self.seed is None else f"-seed-{self.seed}")


@dataclass(frozen=True, eq=False)
class Work:
    """All that units need; each process gets a copy."""

    protocol: EvaluationProtocol
    tested: ProductFeatures
    categories: CategoryFeatures  # of all nodes of the tree
    judged: Mapping[str, Judged]  # per setting
    about: Mapping[str, Any]  # of every result's protocol
    sets: Mapping[str, tuple[Catalogue, ProductFeatures]]  # ``train``, ``validation``, where there are
    seen: Mapping[tuple[str, int | None], np.ndarray]  # (nodes,) by setting and seed
    given: Ranker | None  # a model that was trained before

    def run(self, unit: Unit) -> Cell:
        began, spent = time.perf_counter(), time.process_time()
        ranker = self.given or self._ranker(unit)
        trained = time.perf_counter() - began
        judged = self.judged[unit.setting]
        queries, features = judged.nodes, self.categories.part(judged.nodes)
        about = {**self.about, **({} if unit.seed is None else {"seed": unit.seed})}
        scored = score_rows(ranker, self.tested, features, judged)
        result = measure_ranker(ranker, self.tested, features, judged, about=about, scored=scored)
        (first, scores), (guess, _) = scored.first(1), scored.first(1, "i2t")
        seen, place, category = self.seen.get((unit.setting, unit.seed)), first[:, 0], guess[:, 0]
        # Of products fewer measures are printed; a category is resampled by itself.
        products = {name: result.per_query["i2t"][name] for name in PRODUCT_MEASURES}
        per_query = {"t2i": dict(result.per_query["t2i"]), "i2t": products}
        seconds = {"seconds": time.perf_counter() - began, "seconds_of_training": trained}
        seconds["processor_seconds"] = time.process_time() - spent
        return Cell(
            result=replace(result, per_query=per_query, ranks={}, text_image=np.full(len(queries), -1)),
            nodes=queries,
            first=np.where(place < 0, -1, judged.products[place]),
            score=scores[:, 0],
            found=np.where(place < 0, -1, judged.labels[place]),
            right=(place >= 0) & judged.truth.t2i.holds(np.arange(len(queries)), np.maximum(place, 0)),
            guess=np.where(category < 0, -1, queries[category]),
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


def _on_one_thread(work: Work) -> Work:
    import torch

    torch.set_num_threads(1)
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
    seen: np.ndarray | None = None,
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
        given: a model that was trained before and its description; no other is measured.
        seen: (nodes,) booleans: categories that the given model was trained on, where that is known.
        judged_seed: of the categories drawn for test products in the setting ``all``.
    """
    import torch

    from diptych.commerce.category_to_image.training import missing_pictures, trained_products

    out = Path(out)
    check_replaceable(out, EvaluationProtocol.marker())
    if published and options is not None:
        raise UsageError("published training has its own options", "leave out options, or published")
    if not seeds:
        raise UsageError("no seed is given", "for example 0, 1, 2")
    parts = {"train": train, "validation": None if published else validation, "test": test}
    for name, other in parts.items():
        if train is not None and other is not None and other.tree.fingerprint != train.tree.fingerprint:
            trees = f"it has {len(other.tree):,} categories, the training products {len(train.tree):,}"
            message = f"the {name} products are of another category tree: {trees}"
            raise MismatchError(message, "split one catalogue")
    base, how = options or TrainOptions(), bootstrap or Bootstrap()
    texts = category_texts(test.tree, range(len(test.tree)), query)
    left_out: dict[str, str] = {}

    def check_setting(setting: str) -> None:
        for part, seed in product([] if train is None or not learns else [train], seeds):
            trained_products(part, texts, base.model_copy(update={"setting": setting, "seed": seed}))

    def check_model(model: str) -> None:
        if model not in RANKERS and train is None:
            fix = "make a split called train with --split-by product"
            raise UsageError(f"{model} needs products to train on", fix)
        used = [test] if model in RANKERS or train is None else [test, train]
        if why := why_not(model, maker, *used):
            raise UsageError(f"{model} {why}", f"leave out {model}")

    names = (
        [given[0].name]
        if given
        else _usable("model", models, _MODELS, (*_MODELS, MIXED), check_model, left_out)
    )
    learns = given is None and train is not None and not set(names) <= set(RANKERS)
    chosen = _usable("setting", settings, _SETTINGS, _SETTINGS, check_setting, left_out)
    learned = {name: part for name, part in parts.items() if part is not None and learns and part is not test}
    sets = {name: (part, maker.products(part, missing=missing)) for name, part in learned.items()}
    tested, categories = maker.products(test, missing=missing), maker.categories(texts)
    fingerprints = {name: "" if part is None else part.fingerprint for name, part in parts.items()}
    pictured = [tested.pictured, *(part.pictured for part in parts.values() if part not in (None, test))]
    protocol = EvaluationProtocol(
        **fingerprints,
        encoders=maker.fingerprint,
        relevance=relevance,
        query=query,
        published=published,
        options={} if published or given else base.model_dump(mode="json", exclude=_OWN),
        judged_seed=judged_seed,
        given="" if given is None else f"{given[1]}, fingerprint {given[0].fingerprint}",
        pictures="" if tested.image is None else missing_pictures(pictured),
    )
    known: dict[tuple[str, int | None], np.ndarray] = {}
    if seen is not None:
        known = {(setting, None): seen for setting in chosen}
    epochs = base.epochs if base.resample and not published else 0
    for part, setting, seed in product([] if train is None else [train], chosen, (None, *seeds)):
        known[setting, seed] = seen_nodes(part, setting, seeds[0] if seed is None else seed, epochs=epochs)
    metadata = {"dataset": test.name, "test": test.fingerprint, "query text": query}
    metadata |= {"encoders": maker.fingerprint} | ({"compat": "published training"} if published else {})
    judged = {name: judge(test, name, relevance, judged_seed) for name in chosen}
    units = [
        Unit(setting, model, seed)
        for setting, model in product(chosen, names)
        for seed in ((None,) if given or model in RANKERS else dict.fromkeys(seeds))
    ]
    work = Work(protocol, tested, categories, judged, metadata, sets, known, given and given[0])
    job, keyed = Job(out, protocol, Cell, noun="models"), {unit.key: unit for unit in units}
    threads = torch.get_num_threads()
    try:
        job.run(keyed, Work.run, processes=jobs, setup=_on_one_thread, setup_args=(work,))
    finally:
        torch.set_num_threads(threads)
    cells: dict[str, dict[str, list[Cell]]] = {}
    for key, unit in keyed.items():
        cells.setdefault(unit.setting, {}).setdefault(unit.model, []).append(Cell.open(job.path(key)))
    notes = dict.fromkeys(note for part in (train, test) if part is not None for note in part.notes)
    uses = {"train": "{:,} products to train on", "validation": "{:,} to choose the epoch by"}
    sizes = [uses[name].format(len(part)) for name, part in learned.items()]
    data = [f"dataset {test.name}", *sizes, f"{len(test):,} to find (fingerprint {test.fingerprint})"]
    made = maker.describe()
    encoders = [
        f"{side} encoder {encoder_name(one, 'width')} ({one['fingerprint']})"
        for side in ("image", "text")
        if (one := made[side])
    ]
    shown = {
        "diptych": __version__,
        "data": "; ".join([*data, test.tree.describe()]),
        "encoders": ", ".join([*encoders, f"features {made['fingerprint']}"]),
        "left_out": left_out,
        "notes": [*notes, *(f"{name}: {why}" for name, why in left_out.items())],
        **(about or {}),
        "seeds": [] if given else [*dict.fromkeys(seeds)],
        "units": {key: list(unit) for key, unit in keyed.items()},
    }
    numbers = {
        "key": protocol.key,
        "line": "; ".join([shown["data"], shown["encoders"], protocol.line(shown["seeds"])]),
        "intervals": asdict(how),
        "about": shown,
        "settings": {
            name: setting_numbers(of, judged[name], test, how)
            for name, of in track(cells.items(), "numbers", len(cells), "settings")
        },
    }
    write_json(out / RESULTS, numbers)
    return ModelsEvaluation.open(out)
