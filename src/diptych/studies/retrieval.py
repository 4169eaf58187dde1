"""Measuring a study's columns by retrieval on the test split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from diptych.core.errors import UsageError
from diptych.core.files import safe_name
from diptych.studies.claims import RECALLS
from diptych.studies.given import encoded_split
from diptych.studies.study import PUBLISHED, Measurement, Subject
from diptych.studies.verdict import Measured, Trajectory

if TYPE_CHECKING:
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


_DIRECTIONS = ("i2t", "t2i")


@dataclass(frozen=True)
class Retrieval:
    """Recall and its relatives of a run's best encoder, in both directions."""

    measures: tuple[str, ...] = ()
    protocols: Mapping[str, str] = field(default_factory=dict)
    published: Mapping[str, str] = field(default_factory=dict)
    trajectory: bool = False

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the run."""
        return {
            "kind": "retrieval",
            "measures": list(self.measures),
            "protocols": dict(self.protocols),
            "published": dict(self.published),
            "trajectory": self.trajectory,
        }

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
            positives=None if source is None else positives_of(encoded, source),
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
