"""Evaluate category-to-image models: all models in all settings with several seeds (thesis section 7.4).

A folder has ``category_evaluation.json``, its protocol, ``units/SETTING-MODEL-….npz``, values per query of every model
and seed, and ``results.json``, all that is printed, written last.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from diptych.commerce.catalogue import Catalogue, CategoryText, Relevance, category_texts, judge, seen_nodes
from diptych.commerce.category_to_image.features import (
    MODALITIES,
    TRAINED,
    CategoryFeatures,
    FeatureMaker,
    ProductFeatures,
    TrainOptions,
    encoders_line,
)
from diptych.commerce.category_to_image.rankers import (
    MIXED,
    PRODUCT_MEASURES,
    RANKERS,
    Ranker,
    Scored,
    learn_mixed,
    measure_ranker,
)
from diptych.commerce.category_to_image.results import (
    ModelResult,
    baseline_of,
    evaluation_sections,
    setting_numbers,
)
from diptych.core.artifact import Artifact
from diptych.core.chart import Chart
from diptych.core.context import check_stop
from diptych.core.errors import DataError, StorageError, UnknownNameError, UsageError
from diptych.core.files import check_replaceable, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.job import Job
from diptych.core.reading import read_json
from diptych.core.table import Table, Tabular
from diptych.core.version import __version__
from diptych.evaluation.comparison import Spread
from diptych.metrics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.training import TrainedModel

RESULTS = "results.json"
_SETTINGS = ("all", "most-general", "most-specific")  # as thesis Table 7.1 prints them
_MODELS = (*RANKERS, *TRAINED)  # the ten of the thesis; ``mixed`` is evaluated where it is named
_OWN = {"modalities", "setting", "seed", "query"}  # options of a training that are each unit's own


def why_not(model: str, maker: FeatureMaker, *parts: Catalogue) -> str:
    """Return why a model cannot be had of these products and encoders; empty where it can."""
    if model == "clip" and maker.image_texts is None:
        return "needs an image encoder that reads texts too, a dual encoder"
    needs = TRAINED.get(model, ("image" if model == "clip" else "title",))
    for part in parts:
        has = {
            "image": maker.image is not None and bool(part.pictured.any()),
            "title": any(map(str.strip, part.titles)),
            "attributes": any(text.strip() for given in part.attributes for text in given),
        }
        if lacks := [one for one in needs if not has[one]]:
            return f"needs {' and '.join(lacks)}, which no product has"
    return ""


@dataclass(frozen=True)
class EvaluationProtocol(
    Artifact, kind="category_evaluation", version=4, recreate="diptych categories evaluate DATA"
):
    """Everything that numbers depend on besides models, settings and seeds, by which an evaluation may grow."""

    train: str  # fingerprints of the catalogues; empty where there is none
    validation: str
    test: str
    encoders: str  # fingerprint of what made the features
    pictures: str  # of which products have an image
    relevance: Relevance
    query: CategoryText  # a category's text
    published: bool  # trained as in the thesis
    options: dict[str, Any]  # of training; modalities, setting and seed are each unit's own
    judged_seed: int  # of the draws that judge the test products
    given: str = ""  # the model that was trained before; nothing is fitted then

    def line(self, seeds: Sequence[int]) -> str:
        way = "as the chapter says (compat published)" if self.published else "by our defaults"
        trained = f"trained {way}, seeds {', '.join(map(str, seeds))}"
        return (
            f"relevance by {self.relevance}, drawn with seed {self.judged_seed}; query text: {self.query}; "
            f"{f'{self.given}, nothing fitted' if self.given else trained}; "
            "mAP@k over min(k, relevant), mAP-hits@k over hits (compat); ties expected"
        )


class Unit(NamedTuple):
    """A model in a setting; ``seed`` is None for one that is not trained here."""

    setting: str
    model: str
    seed: int | None
    options: TrainOptions

    @property
    def key(self) -> str:
        return f"{self.setting}-{self.model}" + ("" if self.seed is None else f"-seed-{self.seed}")


@dataclass(frozen=True, eq=False)
class Worker:
    """All that models need; each process gets a copy."""

    protocol: EvaluationProtocol
    train: Catalogue | None
    products: Mapping[str, ProductFeatures]  # of test; of train and validation where models learn
    categories: CategoryFeatures  # of all nodes of the tree
    given: Ranker | None  # a model that was trained before

    def run(self, unit: Unit) -> ModelResult:
        from diptych.commerce.category_to_image.training import train

        spent, protocol, test = time.process_time(), self.protocol, self.products["test"]
        if self.given or unit.seed is None:
            ranker = self.given or RANKERS[unit.model](test)
        else:
            learn: Any = learn_mixed if unit.model == MIXED else train
            validation = self.products.get("validation")
            ranker = learn(self.products["train"], self.categories, unit.options, validation=validation)
            check_stop("stopped: every model that was measured is kept")
        judged = judge(test.catalogue, unit.setting, protocol.relevance, protocol.judged_seed)
        about = {"dataset": test.catalogue.name, "test": protocol.test, "query text": protocol.query}
        scored = Scored.of(ranker, test, self.categories, judged)
        result = measure_ranker(ranker, test, self.categories, judged, about=about, scored=scored)
        (first, scores), (guess, _) = scored.first(1), scored.first(1, "i2t")
        place, category = first[:, 0], guess[:, 0]
        options, seen = unit.options, None
        if self.train is not None:
            drawn = seen_nodes(self.train, options.setting, options.seed, epochs=options.drawn_epochs)
            seen = drawn[judged.nodes]
        # Of products fewer measures are printed; a category is resampled by itself.
        per_query = {"t2i": dict(result.per_query["t2i"])}
        per_query["i2t"] = {name: result.per_query["i2t"][name] for name in PRODUCT_MEASURES}
        return ModelResult(
            result=replace(result, per_query=per_query, ranks={}, text_image=np.full(len(place), -1)),
            nodes=judged.nodes,
            first=np.where(place < 0, -1, judged.products[place]),
            score=scores[:, 0],
            found=np.where(place < 0, -1, judged.labels[place]),
            right=(place >= 0) & judged.truth.t2i.holds(np.arange(len(place)), np.maximum(place, 0)),
            guess=np.where(category < 0, -1, judged.nodes[category]),
            seen=seen,
            about={
                "ranker": ranker.describe(),
                "fingerprint": ranker.fingerprint,
                "processor_seconds": round(time.process_time() - spent, 3),
            },
        )


def _on_one_thread(work: Worker) -> Worker:
    import torch

    torch.set_num_threads(1)
    return work


def _usable(
    what: str, names: Sequence[str] | None, usual: Sequence[str], faults: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return the names, or the usual ones that the data allow, and why others are left out; ``faults``: of all."""
    chosen = usual if names is None else names
    for name in chosen:
        if name not in faults:
            raise UnknownNameError(what, name, faults)
    left_out = {name: why for name, why in faults.items() if why and name in chosen}
    usable = [name for name in faults if name in chosen and name not in left_out]
    if not usable or (left_out and names is not None):
        problem = "; ".join(f"{name} {why}" for name, why in left_out.items()) or f"no {what} is given"
        raise UsageError(problem, f"give others of {', '.join(faults)}")
    return usable, left_out


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
    given: tuple[TrainedModel, str] | None = None,
    judged_seed: int = 0,
    jobs: int = 1,
    bootstrap: Bootstrap | None = None,
    about: Mapping[str, Any] | None = None,
) -> ModelsEvaluation:
    """Train and measure models in every setting; after any interruption the same call resumes.

    The test products are judged once; numbers do not depend on ``jobs``. A finished folder may grow by models,
    settings and seeds.

    Args:
        train: None where nothing is trained.
        given: a model that was trained before, on ``train`` where that is known, and its description.
        judged_seed: of the categories drawn for test products in the setting ``all``.
    """
    import torch

    from diptych.commerce.category_to_image.training import pictured, trained_products

    out, how, base = Path(out), bootstrap or Bootstrap(), options or TrainOptions()
    check_replaceable(out, EvaluationProtocol.marker())
    parts = {"train": train, "validation": None if published else validation, "test": test}
    known = {name: part for name, part in parts.items() if part is not None}
    texts = category_texts(test.tree, range(len(test.tree)), query)

    def unit_of(setting: str, model: str, seed: int | None) -> Unit:
        if given is not None:
            return Unit(setting, model, None, given[0].options)
        modalities = TRAINED.get(model, MODALITIES)
        begun = TrainOptions.published(modalities, setting) if published else base
        own: dict[str, Any] = {"modalities": modalities, "setting": setting, "query": query}
        own["seed"] = seeds[0] if seed is None else seed
        return Unit(setting, model, seed, begun.model_copy(update=own))

    def setting_fault(setting: str) -> str:
        try:
            if learns and train is not None:
                trained_products(train, texts, unit_of(setting, names[-1], None).options)
            return ""
        except DataError as error:
            return error.message

    names, without = [given[0].name] if given else [], dict[str, str]()
    if not given:
        learned = {name: [] if name in RANKERS or train is None else [train] for name in (*_MODELS, MIXED)}
        faults = {name: why_not(name, maker, test, *parts) for name, parts in learned.items()}
        if train is None:
            faults |= dict.fromkeys(
                learned.keys() - RANKERS, "needs products to train on, a split called train"
            )
        names, without = _usable("model", models, _MODELS, faults)
    learns = given is None and not set(names) <= set(RANKERS)
    faults = {name: setting_fault(name) for name in _SETTINGS}
    chosen, left_out = _usable("setting", settings, _SETTINGS, faults)
    made = {name: maker.products(part) for name, part in known.items() if learns or name == "test"}
    masks = [made.get(name, part).pictured for name, part in known.items()]
    protocol = EvaluationProtocol(
        **{name: part.fingerprint if part else "" for name, part in parts.items()},
        encoders=maker.fingerprint,
        pictures=pictured(*masks) if maker.image else "",
        relevance=relevance,
        query=query,
        published=published,
        options={} if published or given else base.model_dump(mode="json", exclude=_OWN),
        judged_seed=judged_seed,
        given="" if given is None else f"{given[1]}, fingerprint {given[0].fingerprint}",
    )
    work = Worker(protocol, train, made, maker.categories(texts), given and given[0])
    seeds_of = {name: (None,) if given or name in RANKERS else seeds for name in names}
    grid = [unit_of(*of, seed) for of in product(chosen, names) for seed in seeds_of[of[1]]]
    units = {unit.key: unit for unit in grid}
    job, threads = Job(out, protocol, ModelResult, noun="models"), torch.get_num_threads()
    try:
        job.run(units, Worker.run, processes=jobs, setup=_on_one_thread, setup_args=(work,))
    finally:
        torch.set_num_threads(threads)
    cells: dict[str, dict[str, list[ModelResult]]] = {}
    for key, unit in units.items():
        cells.setdefault(unit.setting, {}).setdefault(unit.model, []).append(ModelResult.open(job.path(key)))
    counts = ", ".join(f"{name} {len(known[name]):,}" for name in made)
    unreadable = sum(one.about["unreadable_pictures"] for one in made.values())
    counts += f"; {unreadable:,} images that cannot be read" if unreadable else ""
    shown = {
        "diptych": __version__,
        "data": f"dataset {test.name} ({test.fingerprint}); {counts}; {test.tree.describe()}",
        "encoders": f"{encoders_line(maker.describe())}, features {maker.fingerprint}",
        "left_out": without | left_out,
        "notes": list(dict.fromkeys(note for part in known.values() for note in part.notes)),
        **(about or {}),
        "seeds": [] if given else list(dict.fromkeys(seeds)),
        "units": {key: unit[:2] for key, unit in units.items()},
    }
    numbers = {
        "key": fingerprint(asdict(protocol)),
        "line": "; ".join([shown["data"], shown["encoders"], protocol.line(shown["seeds"])]),
        "intervals": asdict(how),
        "about": shown,
        "settings": {
            name: setting_numbers(of, judge(test, name, relevance, judged_seed), test, how)
            for name, of in cells.items()
        },
    }
    write_json(out / RESULTS, numbers)
    return ModelsEvaluation.open(out)


@dataclass(frozen=True, eq=False)
class ModelsEvaluation(Tabular):
    """A finished evaluation of models of categories and products."""

    folder: Path
    protocol: EvaluationProtocol
    numbers: Mapping[str, Any]  # everything that is printed, as in ``results.json``
    about: Mapping[str, Any]
    settings: tuple[str, ...]
    models: tuple[str, ...]
    seeds: tuple[int, ...]

    @classmethod
    def open(cls, folder: Path | str) -> Self:
        folder = Path(folder)
        protocol, file = EvaluationProtocol.open(folder), folder / RESULTS
        numbers = read_json(file) if file.is_file() else {}
        if numbers.get("key") != fingerprint(asdict(protocol)):
            problem = f"{folder} is not finished: no {RESULTS} of it"
            raise StorageError(problem, "the command that began it resumes")
        about, settings = numbers["about"], tuple(numbers["settings"])
        models = tuple(dict.fromkeys(model for _, model in about["units"].values()))
        return cls(folder, protocol, numbers, about, settings, models, tuple(about["seeds"]))

    @property
    def baseline(self) -> str:
        return baseline_of(self.models)

    def cells(self, setting: str, model: str) -> list[ModelResult]:
        keys = [key for key, unit in self.about["units"].items() if unit == [setting, model]]
        return [ModelResult.open(self.folder / "units" / f"{key}.npz") for key in keys]

    def value(self, setting: str, model: str, measure: str, direction: str = "t2i") -> Spread:
        """Return one number over seeds, a share in [0, 1]; ``i2t`` is a product as the query."""
        return Spread(tuple(one.result.value(measure, direction) for one in self.cells(setting, model)))

    def sections(self) -> dict[str, list[Table | Chart]]:
        return evaluation_sections(self.numbers["settings"], self.baseline, self.models)

    def tables(self) -> list[Table]:
        return [one for part in self.sections().values() for one in part if isinstance(one, Table)]

    def line(self) -> str:
        return str(self.numbers["line"])

    def lines(self) -> list[str]:
        return [self.line()]
