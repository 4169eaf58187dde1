"""Measuring a study's columns by retrieval on the test split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from diptych.studies.encoding import encoded_split
from diptych.studies.study import PUBLISHED, Measurement, Subject
from diptych.studies.trajectories import trajectory_of
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    from diptych.evaluation import Result

__all__ = ["RECALLS", "Retrieval", "columns_of"]

RECALLS = ("R@1", "R@5", "R@10")
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
        """Evaluate on the test split; the result is kept in the run's ``evaluation`` folder."""
        from diptych.training.testing import evaluate_encoded

        run = subject.run
        split = run.recipe.data.test
        encoded = encoded_split(subject, split)
        dataset = subject.collection.name
        protocol = self.protocols.get(dataset.lower(), "full")
        measures = (*RECALLS, *self.measures, *self.published.values(), "rsum")
        folder = run.folder / "evaluation" / f"{dataset}-{split}-{protocol}".removesuffix("-full")
        result = evaluate_encoded(
            encoded,
            folder,
            measures,
            protocol=protocol,
            samples=0,
            trec=False,
            about={"seed": run.recipe.seed},
        )
        # rsum is measured whether asked for or not.
        asked = " ".join(f"--measure {name}" for name in measures)
        command = f"diptych evaluate {{run}} {asked}" + (
            "" if protocol == "full" else f" --protocol {protocol}"
        )
        told = result.protocol
        measured = Measured(dataset, split, told.n_images, told.n_texts, protocol)
        trajectory = trajectory_of(run) if self.trajectory else None
        values = columns_of(result, self.published)
        return (Measurement(values, measured, result.protocol_line(), (command,), trajectory),)


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
