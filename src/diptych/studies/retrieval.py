"""Measuring trained rows: retrieval, also with shortcuts, contributing samples, and information in embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from diptych.analysis.cocos_report import CocosOptions, CocosReport
from diptych.analysis.information.audit import Audit, gap_of
from diptych.analysis.information.questions import ProbeName
from diptych.core.errors import UsageError
from diptych.core.files import safe_name
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options, parse_values
from diptych.data.captions import choose_captions
from diptych.data.collection import Collection
from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.encode import encode_collection
from diptych.encoders.rerank import MatchingEncoder, rerank
from diptych.evaluation import Result
from diptych.evaluation.evaluate_encoder import evaluate_encoded, positives_of
from diptych.evaluation.shortcuts import evaluate_both
from diptych.metrics import DIRECTIONS
from diptych.studies.evidence import HIGH, LOW, Trajectory
from diptych.studies.plan import MEASURE, POSITIVES_OPTION, Plan
from diptych.studies.results import Measured, Measurement, Measuring
from diptych.studies.sources import (
    Source,
    Subject,
    cost_of,
    encode_split,
    encoded_split,
    encoder_of,
    given_encoder,
    logger,
    start_of,
)
from diptych.studies.study import PUBLISHED, Row
from diptych.training.adaptation import AdaptationOptions, adapt_linear

if TYPE_CHECKING:
    from diptych.training.run import Run


RECALLS = ("R@1", "R@5", "R@10")
_MEASURES = (*RECALLS, "rsum")


def evaluate_split(
    subject: Subject,
    encoded: EncodedCollection,
    name: str,
    measures: Sequence[str] = _MEASURES,
    **options: Any,
) -> Measurement:
    """Evaluate a split's embeddings, into the folder ``evaluation/NAME`` of the run."""
    kept = f"evaluation/{name}"
    folder = subject.run.folder / kept
    result = evaluate_encoded(encoded, folder, measures, samples=0, trec=False, **options)
    about = encoded.about
    on = Measured(about["dataset"], about["split"], len(encoded.images), len(encoded.texts))
    return Measurement(columns_of(result), on, result.protocol_line(), kept=kept)


def columns_of(result: Result) -> dict[str, float]:
    """Return values as tables name and print them: recalls in per cent, other shares as they are."""
    values: dict[str, float] = {}
    for direction in DIRECTIONS:
        for name, score in result.scores[direction].items():
            values[f"{direction} {name}"] = 100 * score.value if name.startswith("R@") else score.value
        recalls = [values[f"{direction} {name}"] for name in RECALLS]
        values[f"{direction} average recall"] = sum(recalls) / len(recalls)
    values["rsum"] = result.value("rsum")
    return values


@dataclass(frozen=True)
class Retrieval(Measuring):
    """Recall and its relatives of a run's best encoder on the test split, in both directions."""

    measures: Sequence[str] = ()  # besides recalls
    protocols: Mapping[str, str] = field(default_factory=dict)  # by dataset, where that is not "full"
    published: Mapping[str, str] = field(default_factory=dict)  # measure → as the paper counts it
    trajectory: bool = False

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        encoded = encoded_split(subject, subject.run.recipe.data.test)
        sources = ("",) if subject.positives is None else ("", subject.positives)
        return tuple(self._measured(subject, encoded, source) for source in sources)

    def _measured(self, subject: Subject, encoded: EncodedCollection, source: str) -> Measurement:
        run, dataset = subject.run, subject.collection.name
        positives, judged_by, protocol = None, "own", self.protocols.get(dataset.lower(), "full")
        if source:
            named, *given = source.split(POSITIVES_OPTION)
            positives = positives_of(encoded, named, **parse_values(given, POSITIVES_OPTION.strip()))
            judged_by, protocol = source.partition(":")[0], "full"
        measures = (*RECALLS, *self.measures, *self.published.values(), "rsum")
        name = safe_name(f"{dataset}-{run.recipe.data.test}-{protocol}".removesuffix("-full"))
        name += f"-{judged_by}" if source else ""
        command = "diptych evaluate {run} " + " ".join(f"--measure {measure}" for measure in measures)
        command += f" --protocol {protocol}" if protocol != "full" else ""
        command += f" --positives {source}" if source else ""
        options = {"positives": positives, "protocol": protocol, "about": {"seed": run.recipe.seed}}
        found = evaluate_split(subject, encoded, name, measures, **options)
        values = dict(found.values)
        for measure, printed in self.published.items():
            for direction in DIRECTIONS:
                values[f"{direction} {measure}{PUBLISHED}"] = values.pop(f"{direction} {printed}")
        trajectory = _trajectory_of(run) if self.trajectory and not source else None
        on = replace(found.on, protocol=protocol, positives=judged_by)
        return replace(found, values=values, on=on, commands=(command,), trajectory=trajectory)


def _trajectory_of(run: Run) -> Trajectory:
    steps = [line for line in run.metrics() if "loss" in line]
    if not steps:
        raise UsageError(f"{run.folder} has logged no step", "train it first")
    validated = [line for line in run.metrics() if "validation" in line]
    reconstruction = run.recipe.reconstruction
    constraint = None if reconstruction is None else reconstruction.constraint
    return Trajectory(
        steps=[line["step"] for line in steps],
        # A run without reconstruction has one loss only.
        contrastive=[line.get("contrastive", line["loss"]) for line in steps],
        reconstruction=[line["reconstruction"] for line in steps if "reconstruction" in line],
        multiplier=[line["multiplier"] for line in steps if "multiplier" in line],
        epoch_steps=[line["step"] for line in validated],
        rsum=[line["validation"]["rsum"] for line in validated],
        bound=None if constraint is None else constraint.bound,
    )


_COUNTS = {
    "per_active_query": "C^q",  # mean over queries that have a gradient, as in tables 2 and 4
    "per_query": "C^qv-",  # mean over all queries, as in table 3
    "in_batch": "C^B",
    "without_gradient": "C^0",
    "negatives_weight": "W^qv-",
    "positives_weight": "W^qv+",
    "effective": "C^eff",
}
_UNIQUE = {"per_query": "C^qv-"}
_AT_THE_START = {"per_active_query": "C^q", "effective": "C^eff"}


@dataclass(frozen=True)
class Counting(Measuring):
    """Contributing samples of a run's objective at its best epoch, per direction, and its recall sum.

    The batches are those of one epoch, without dropout or augmentation.
    """

    epsilon: float = 0.01  # a candidate counts when its weight is above it; half and twice are counted too
    published: bool = True  # also as the published code counts, which knows only the paper's losses

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        import torch

        from diptych.training.evaluations import count_contributing
        from diptych.training.fit import begin_encoder

        run, recipe, split = subject.run, subject.run.recipe, subject.run.recipe.data.train
        encoded = encoded_split(subject, split)
        torch.manual_seed(recipe.seed)
        untrained = encoded_split(subject, split, begin_encoder(run, subject.collection).encoder)
        values = {"rsum": Retrieval()(subject)[0].values["rsum"]}

        def count(
            rows: EncodedCollection, names: Mapping[str, str], ending: str, **options: Any
        ) -> CocosReport:
            chosen = CocosOptions(seed=recipe.seed, **{"epsilon": self.epsilon, **options})
            report = count_contributing(run, chosen, lambda: rows)
            for direction, counts in report.counts.items():
                for name, symbol in names.items():
                    # C^q is 0 where no query of any batch has a gradient any more
                    if name in counts or name.startswith("per_"):
                        mean = counts[name].mean if name in counts else 0.0
                        values[f"{direction} {symbol}{ending}"] = mean
            return report

        reports = {"none": count(encoded, _COUNTS, "")}
        if self.published:
            reports["published"] = count(encoded, _COUNTS, PUBLISHED, compat="published")
        for epsilon in (0.5 * self.epsilon, 2.0 * self.epsilon):
            count(encoded, _UNIQUE, f", ε = {epsilon:g}", epsilon=epsilon)
        count(untrained, _AT_THE_START, " at the start")
        found, name = reports["none"], safe_name(f"{subject.collection.name}-{split}")
        for compat, report in reports.items():
            report.save(run.folder / "cocos" / f"{name}-{compat}.json")
        for direction, kinds in found.weights.items():
            values[f"{direction} queries"] = kinds["negatives"].queries / found.protocol.batches
        on = Measured(subject.collection.name, split, len(encoded.images), len(encoded.texts))
        return (Measurement(values, on, found.protocol.line(), ("diptych analyse cocos {run}",)),)


@dataclass(frozen=True)
class ShortcutRetrieval(Measuring):
    """Recalls and rsum of a run's encoder on test and validation split, without shortcuts and with those of training.

    ``with …`` is with shortcuts, where both sides had them; ``chance …`` what knowing nothing gives; ``zero-shot …``
    the encoder that training began with, where there was one, without shortcuts.
    """

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        from diptych.training.evaluations import shortcuts_to_evaluate

        run, data, collection = subject.run, subject.run.recipe.data, subject.collection
        encoder, name = encoder_of(run), f"{collection.name}-{data.test}"
        shortcuts = shortcuts_to_evaluate(run.recipe, collection, run.begun_with.get("shortcuts"))
        folders = run.folder / "embeddings", run.folder / "evaluation"
        options: dict[str, Any] = {"samples": 0, "trec": False, "about": {"seed": run.recipe.seed}}
        test, validation = (
            evaluate_both(encoder, collection, split, *folders, _MEASURES, shortcuts=shortcuts, **options)
            for split in (data.test, data.validation)
        )
        values, protocol = columns_of(test.without), test.lines()[0]
        values["chance rsum"] = test.without.score("rsum").chance
        values["validation rsum"] = validation.without.value("rsum")
        if test.with_shortcuts is not None and validation.with_shortcuts is not None:
            with_shortcuts = columns_of(test.with_shortcuts)
            values |= {f"with {column}": value for column, value in with_shortcuts.items()}
            values["validation with rsum"] = validation.with_shortcuts.value("rsum")
        if run.begun_with.keys() & {"fine_tune", "warm_start"}:
            start, part = start_of(run), collection.split(data.test)
            # Runs that begin with the same encoder share its embeddings, wherever they are.
            shared = fingerprint(start.began, part.text_fingerprint)
            encoded = encode_collection(
                start.encoder, part, Path(subject.features) / "zero-shot" / shared, data.test
            )
            zero_shot = evaluate_split(subject, encoded, safe_name(f"{name}-zero-shot"))
            values["zero-shot rsum"] = zero_shot.values["rsum"]
            how = "begun with" if run.recipe.fine_tune is None else "fine-tuned from"
            protocol += f"; {how} {start.name}, zero-shot: {zero_shot.protocol}"
        counts = test.without.protocol.n_images, test.without.protocol.n_texts
        on, kept = Measured(collection.name, data.test, *counts), f"evaluation/{safe_name(name)}"
        return (Measurement(values, on, protocol, ("diptych evaluate {run}",), kept=kept),)


@dataclass(frozen=True)
class Information(Measuring):
    """Per cent of each kind of information that a run's best encoder holds, by both probes, and gaps in bits per image.

    ``image shared`` and the like are of embeddings without shortcuts, ``with image shared`` of those with them, as
    ``image shortcut`` and ``caption shortcut`` always are. ``image undescribed`` mixes keys that captions never state
    (``image never described``) with keys that captions of other images state.
    """

    most: int = 4000  # training images, and training rows per question
    samples: int = 1000  # bootstrap resamples
    probes: Sequence[ProbeName] = ("linear", "mlp")

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        from diptych.report.analysis import audit_page
        from diptych.training.evaluations import audit_run

        run, split = subject.run, subject.run.recipe.data.test
        part, folder = subject.collection.split(split), run.folder / "audit"
        found = audit_run(run, subject.collection, probes=self.probes, most=self.most, samples=self.samples)
        found.save(folder / "audit.json")
        audit_page(found, run.recipe.name).save(folder / "report.html")
        on = Measured(part.name, split, part.n_images, part.n_captions)
        command = f"diptych analyse audit {{run}} --most {self.most}"
        return (Measurement(_columns_of_audit(found), on, found.protocol.line(), (command,)),)


def _columns_of_audit(found: Audit) -> dict[str, float]:
    values: dict[str, float] = {}
    for (condition, sides), probe in product(found.conditions.items(), found.protocol.probes):
        before, after = "with " * (condition == "with"), "" if probe == "linear" else f" ({probe})"
        for name, group in ((name, group) for name, side in sides.items() for group in side.groups):
            if group.name != "one caption" and (held := group.held.get(probe)) is not None:
                # of digits there is only one condition: with them
                name = f"{'' if group.name == 'shortcut' else before}{name} {group.name}{after}"
                values |= zip((name, name + LOW, name + HIGH), (held.percent, *held.ends), strict=True)
        if (gap := gap_of(sides["image"], probe)) is not None:  # to a task-optimal representation
            bits = {"gap": gap.gap[0], "optimal": gap.optimal, "minimal": gap.minimal}
            values |= {f"{before}{name}{after}": value for name, value in bits.items()}
    return values


_CANDIDATES = 128
_TRAIN = "train"


class MeasureOptions(Options):
    """Options of measuring (``--set measure.KEY=VALUE``)."""

    captions: Literal["all", "first", "random"] = "all"
    seed: int = Field(0, ge=0)  # of the random captions
    k_test: int | None = Field(None, ge=0)  # candidates that a matching head scores again; 0 for none
    unranked: Literal["miss", "published"] = "miss"  # what becomes of the others; published: they tie at −100
    split: str = "test"


class AdaptOptions(AdaptationOptions):
    """Options of adapting a base (``--set adapt.KEY=VALUE``)."""

    pairs: int = 16
    captions: Literal["one", "all"] = "one"


@dataclass(frozen=True)
class ZeroShot(Measuring):
    """Recalls and their sums in both directions, of whatever encoder a row is."""

    k_test: Mapping[str, int] = field(default_factory=lambda: {"coco": 256})

    def check(self, measuring: Mapping[str, Any], collections: Mapping[str, Collection]) -> None:
        chosen = MeasureOptions.read(measuring, MEASURE)
        for collection in collections.values():
            collection.split(chosen.split)

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        chosen, run = MeasureOptions.read(subject.measuring, MEASURE), subject.run
        collection = subject.collection
        part = collection.split(chosen.split)
        encoder = None if isinstance(run, Adapted) else encoder_of(run)
        if encoder is not None:
            encoded = encode_split(encoder, collection, run.folder, chosen.split)
        elif (encoded := run.encoded(collection, chosen.split)) is None:
            return ()
        name, options, on = safe_name(f"{part.name}-{chosen.split}"), dict[str, Any](), dict[str, Any]()
        # Where every image has one caption there is nothing to choose.
        which = "all" if (part.captions_per_image <= 1).all() else chosen.captions
        if which != "all":
            captions = f"random:{chosen.seed}" if which == "random" else which
            part = choose_captions(part, captions)
            metadata = {**encoded.about, "data": fingerprint(encoded.about["data"], part.text_fingerprint)}
            texts = encoded.texts.select(part.caption_ids)
            encoded = EncodedCollection(encoded.images, texts, part.caption_image, metadata)
            options["about"] = {"captions": captions.replace(":", ", seed ")}
            name += f"-{captions.replace(':', '-')}"
        k = self.k_test.get(part.name.lower(), _CANDIDATES) if chosen.k_test is None else chosen.k_test
        if k and isinstance(encoder, MatchingEncoder):
            candidates = rerank(encoder, part, encoded, k, folder=run.folder / "reranked" / name)
            options |= {"reranked": candidates, "unranked": chosen.unranked}
            on = {"reranked": k, "unranked": chosen.unranked}
            name += f"-k{k}-{chosen.unranked}"
        found = evaluate_split(subject, encoded, name, **options)
        recalls = {way: [found.values[f"{way} {recall}"] for recall in RECALLS] for way in DIRECTIONS}
        values = {**found.values, **{f"{way} rsum": sum(each) for way, each in recalls.items()}}
        measured_on = replace(found.on, chosen=which, centric=part.centric or "", **on)
        return (replace(found, values=values, on=measured_on),)


@dataclass(frozen=True)
class Adapted:
    """A base that is adapted to whatever it is measured on."""

    folder: Path
    base: Any
    seed: int
    options: Mapping[str, Any]

    def encoded(self, collection: Collection, split: str) -> EncodedCollection | None:
        """Return the base's embeddings of a split, adapted to the collection: no image is encoded again.

        None where too few images of its training split have captions.
        """
        available, pairs = 0, self.options["pairs"]
        if _TRAIN in collection.split_sizes:
            available = int((collection.split(_TRAIN).captions_per_image > 0).sum())
        if available < pairs:
            logger.info(f"{collection.name} has {available:,} pairs to adapt on, not {pairs:,}")
            return None
        base = encoder_of(self.base)
        plain = encode_split(base, collection, self.base.folder, split)
        logger.info(f"adapting to {pairs} pairs of {collection.name}")
        with cost_of(self.folder):
            adapted = adapt_linear(base, collection.split(_TRAIN), seed=self.seed, **self.options)
        about = {**plain.about, "encoder": adapted.describe()}
        images, texts = (
            replace(old, rows=side(old.rows, old.kind, old.ids), encoder=adapted.fingerprint, about=about)
            for old, side in ((plain.images, adapted.maps.image), (plain.texts, adapted.maps.text))
        )
        return replace(plain, images=images, texts=texts, about=about)


class Adaptations(Source):
    """A base that is adapted to each collection anew, when it is measured."""

    def check(self, plan: Plan, row: Row) -> None:
        if plan.choices.values.get("measure.split") == _TRAIN:
            raise UsageError(
                f"{row.name} is adapted on the training split, and would be measured on it",
                "measure another split, or leave the row out: --rows",
            )
        AdaptOptions.read(plan.options_of(row), "adapt")

    def all_options(self, plan: Plan, row: Row) -> dict[str, Any]:
        return {"adapt": AdaptOptions.read(plan.options_of(row), "adapt").model_dump()}

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Subject:
        from diptych.training.run import Run

        base, options = plan.base_of(row), plan.options_of(row)
        assert base is not None  # what is adapted has a base, or its row is wrong
        if plan.is_given(base):
            run: Any = given_encoder(plan, base)
            state, about = [run.encoder.fingerprint], {"given": run.name}
        else:
            run = Run.open(plan.target(base))
            state = [run.numbers["step"], run.numbers["best"]]
            about = {"stands_for": f"{run.recipe.description}, adapted"}
        adapted = Adapted(plan.target(row, seed), run, seed, options)
        return Subject(adapted, None, plan.features, state=("adapted", *state, seed, options), **about)
