"""Measuring trained rows: retrieval on the test split, and which candidates move a query in training."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from diptych.core.errors import UsageError
from diptych.core.files import safe_name
from diptych.core.options import parse_values
from diptych.studies.dense import encoded_split
from diptych.studies.evidence import Trajectory
from diptych.studies.plan import POSITIVES_OPTION
from diptych.studies.results import Measurement, Measuring
from diptych.studies.sources import Subject
from diptych.studies.study import PUBLISHED
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    from diptych.analysis.cocos_report import CocosCompat, CocosReport
    from diptych.data.batches import Batch
    from diptych.encoders.embeddings import EncodedCollection
    from diptych.evaluation import Result
    from diptych.training.run import Run


def trajectory_of(run: Run) -> Trajectory:
    """The trajectory of one run, from its metrics.jsonl."""
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
        reconstruction=[line["reconstruction"] for line in steps] if reconstruction is not None else [],
        multiplier=[line["multiplier"] for line in steps] if constraint is not None else [],
        epoch_steps=[line["step"] for line in validated],
        rsum=[line["validation"]["rsum"] for line in validated],
        bound=None if constraint is None else constraint.bound,
    )


RECALLS = ("R@1", "R@5", "R@10")
_DIRECTIONS = ("i2t", "t2i")


@dataclass(frozen=True)
class Retrieval(Measuring):
    """Recall and its relatives of a run's best encoder, in both directions."""

    measures: Sequence[str] = ()
    protocols: Mapping[str, str] = field(default_factory=dict)
    published: Mapping[str, str] = field(default_factory=dict)
    trajectory: bool = False

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Evaluate on the test split; results are kept in the run's ``evaluation`` folder."""
        encoded = encoded_split(subject, subject.run.recipe.data.test)
        found = [self._measured(subject, encoded, None)]
        if subject.positives is not None:
            found.append(self._measured(subject, encoded, subject.positives))
        return tuple(found)

    def _measured(self, subject: Subject, encoded: EncodedCollection, source: str | None) -> Measurement:
        """By the collection's own pairs, or by further judgements ``NAME:PATH``."""
        from diptych.evaluation.evaluate_encoder import evaluate_encoded, positives_of

        named, *given = ("" if source is None else source).split(POSITIVES_OPTION)
        options = parse_values(given, POSITIVES_OPTION.strip())
        run, dataset, split = subject.run, subject.collection.name, subject.run.recipe.data.test
        protocol = self.protocols.get(dataset.lower(), "full") if source is None else "full"
        judged_by = "own" if source is None else source.partition(":")[0]
        measures = (*RECALLS, *self.measures, *self.published.values(), "rsum")
        name = safe_name(f"{dataset}-{split}-{protocol}".removesuffix("-full"))
        if source is not None:
            name += f"-{judged_by}"
        result = evaluate_encoded(
            encoded,
            run.folder / "evaluation" / name,
            measures,
            positives=None if source is None else positives_of(encoded, named, **options),
            protocol=protocol,
            samples=0,
            trec=False,
            about={"seed": run.recipe.seed},
        )
        command = "diptych evaluate {run} " + " ".join(f"--measure {measure}" for measure in measures)
        if protocol != "full":
            command += f" --protocol {protocol}"
        if source is not None:
            command += f" --positives {source}"
        told = result.protocol
        return Measurement(
            values=columns_of(result, self.published),
            on=Measured(dataset, split, told.n_images, told.n_texts, protocol, judged_by),
            protocol=result.protocol_line(),
            commands=(command,),
            trajectory=trajectory_of(run) if self.trajectory and source is None else None,
            kept=f"evaluation/{name}",
        )


def columns_of(result: Result, published: Mapping[str, str] | None = None) -> dict[str, float]:
    """The values of a result as tables name and print them: recalls in per cent, other shares as they are."""
    published = published or {}
    values: dict[str, float] = {}
    for direction in _DIRECTIONS:
        given = result.scores[direction]
        for name, score in given.items():
            values[f"{direction} {name}"] = 100 * score.value if name.startswith("R@") else score.value
        recalls = [values[f"{direction} {name}"] for name in RECALLS]
        values[f"{direction} average recall"] = sum(recalls) / len(recalls)
        for name, printed in published.items():
            if printed in given:
                values[f"{direction} {name}{PUBLISHED}"] = values.pop(f"{direction} {printed}")
    values["rsum"] = result.value("rsum")
    return values


_COUNTS = {
    "per_active_query": "C^q",
    "per_query": "C^qv-",
    "in_batch": "C^B",
    "without_gradient": "C^0",
    "negatives_weight": "W^qv-",
    "positives_weight": "W^qv+",
    "effective": "C^eff",
}
_OTHER_EPSILONS = (0.5, 2.0)  # times ε


@dataclass(frozen=True)
class Counting(Measuring):
    """C^q, C^B, C^0, W^- and W^+ of a run's objective at its best epoch, per direction, and its recall sum.

    C^q is the mean over queries that have a gradient, as tables 2 and 4 print it; C^qv- the mean over all queries, as
    table 3 does, of half and twice the ε too. Everything is counted twice: rightly, and as the published code counts.
    ``queries`` is how many a batch has, ``C^q at the start`` what an untrained encoder of the recipe gives.

    Attributes:
        epsilon: ε; a candidate counts when its weight is above it.
        published: whether as the published code counts too, which knows the paper's losses alone.
    """

    epsilon: float = 0.01
    published: bool = True

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Count in the batches of one epoch, without dropout or augmentation."""
        import torch

        from diptych.training.fit import begin_encoder

        run, recipe = subject.run, subject.run.recipe
        split, name = recipe.data.train, subject.collection.name
        encoded = encoded_split(subject, split)
        report = self._counted(subject, encoded, "none", self.epsilon)
        found = {"none": report}
        if self.published:
            found["published"] = self._counted(subject, encoded, "published", self.epsilon)
        values = {"rsum": Retrieval()(subject)[0].values["rsum"]}
        for compat, counted in found.items():
            counted.save(run.folder / "cocos" / f"{safe_name(f'{name}-{split}-{compat}')}.json")
            values |= _columns(counted, _COUNTS, "" if compat == "none" else PUBLISHED)
        for times in _OTHER_EPSILONS:
            other = self._counted(subject, encoded, "none", times * self.epsilon)
            values |= _columns(other, {"per_query": f"C^qv-, ε = {times * self.epsilon:g}"})
        torch.manual_seed(recipe.seed)
        untrained = encoded_split(subject, split, begin_encoder(run, subject.collection).encoder)
        start = self._counted(subject, untrained, "none", self.epsilon)
        values |= _columns(start, {"per_active_query": "C^q at the start", "effective": "C^eff at the start"})
        batches = list(_batches(subject, encoded))
        values["i2t queries"] = statistics.mean(len(batch.images) for batch in batches)
        values["t2i queries"] = statistics.mean(len(batch.captions) for batch in batches)
        measured = Measured(name, split, len(encoded.images), len(encoded.texts))
        return (Measurement(values, measured, report.protocol.line(), ("diptych analyse cocos {run}",)),)

    def _counted(
        self, subject: Subject, encoded: EncodedCollection, compat: CocosCompat, epsilon: float
    ) -> CocosReport:
        from diptych.analysis import cocos_over
        from diptych.objectives import OBJECTIVES

        recipe = subject.run.recipe
        options = {key: value for key, value in recipe.objective.items() if key != "name"}
        about = {
            "dataset": subject.collection.name,
            "split": recipe.data.train,
            "encoder": encoded.images.encoder,
            "plan": recipe.batches.plan,
            "seed": recipe.seed,
        }
        return cocos_over(
            encoded.images.rows,
            encoded.texts.rows,
            _batches(subject, encoded),
            OBJECTIVES.get(recipe.objective["name"])(**options),
            epsilon,
            compat=compat,
            about=about,
        )


def _batches(subject: Subject, encoded: EncodedCollection) -> Iterable[Batch]:
    """Return the batches of the first epoch."""
    from diptych.data.batches import BatchPlan

    recipe = subject.run.recipe
    one = recipe.batches
    how = (one.size, one.plan, one.captions_per_image, recipe.seed)
    return BatchPlan(encoded.caption_image, len(encoded.images), *how).epoch(0)


def _columns(found: CocosReport, names: Mapping[str, str], ending: str = "") -> dict[str, float]:
    """Return counts by their columns; C^q is 0 where no query of any batch has a gradient any more."""
    return {
        f"{direction} {symbol}{ending}": counts[name].mean if name in counts else 0.0
        for direction, counts in found.counts.items()
        for name, symbol in names.items()
        if name in counts or name.startswith("per_")
    }
