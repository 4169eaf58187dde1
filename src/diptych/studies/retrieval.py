"""Measuring a study's columns by retrieval on the test split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from diptych.studies.encoding import encoded_split
from diptych.studies.measurement import PUBLISHED, Measurement, Subject
from diptych.studies.trajectories import trajectory_of
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    from diptych.encoders.encoded import EncodedCollection
    from diptych.evaluation import Result

RECALLS = ("R@1", "R@5", "R@10")
I2T = tuple(f"i2t {name}" for name in RECALLS)
T2I = tuple(f"t2i {name}" for name in RECALLS)
_DIRECTIONS = ("i2t", "t2i")


@dataclass(frozen=True)
class Retrieval:
    """Recall and its relatives of a run's best encoder, in both directions.

    Attributes:
        measures: besides R@1, R@5, R@10 and rsum.
        protocols: dataset → protocol, where it is not ``full``.
        published: measure → the measure that a paper prints under its name.
        trajectory: whether to keep how the training went.
    """

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
        name = f"{dataset}-{split}-{protocol}".removesuffix("-full")
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
