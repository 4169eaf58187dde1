"""Measuring a study's columns by counting contributing samples (COCOS) on the training split."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from diptych.core.files import safe_name
from diptych.studies.encoding import encoded_split
from diptych.studies.measurement import PUBLISHED, Measurement, Subject
from diptych.studies.verdict import Measured

_COUNTS = {
    "in_batch": "C^B",
    "without_gradient": "C^0",
    "negatives_weight": "W^qv-",
    "positives_weight": "W^qv+",
}


@dataclass(frozen=True)
class Counting:
    """C^q, C^B, C^0, W^- and W^+ of a run's objective at its best epoch, per direction.

    C^q is the mean over queries that have a gradient, as tables 2 and 4 print it; C^qv- the mean over
    all queries, as table 3 does. Everything is counted twice: rightly, and as the published code
    counts. ``queries`` is how many a batch has.

    Attributes:
        epsilon: ε; a candidate counts when its weight is above it.
    """

    epsilon: float = 0.01

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the run."""
        return {"kind": "cocos", "epsilon": self.epsilon}

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Count in the batches of one epoch, without dropout or augmentation."""
        from diptych.analysis import cocos_over
        from diptych.data.batches import BatchPlan
        from diptych.objectives import OBJECTIVES

        run, recipe = subject.run, subject.run.recipe
        split = recipe.data.train
        encoded = encoded_split(subject, split)
        batches = recipe.batches
        plan = BatchPlan(
            encoded.caption_image,
            len(encoded.images),
            batches.size,
            batches.plan,
            batches.captions_per_image,
            recipe.seed,
        ).epoch(0)
        options = {key: value for key, value in recipe.objective.items() if key != "name"}
        objective = OBJECTIVES.get(recipe.objective["name"])(**options)
        values: dict[str, float] = {
            "i2t queries": statistics.mean(len(batch.images) for batch in plan),
            "t2i queries": statistics.mean(len(batch.captions) for batch in plan),
        }
        line = ""
        for compat in ("none", "published"):
            found = cocos_over(
                encoded.images.rows,
                encoded.texts.rows,
                plan,
                objective,
                self.epsilon,
                compat=compat,
                about={
                    "dataset": subject.collection.name,
                    "split": split,
                    "encoder": encoded.images.encoder,
                    "plan": batches.plan,
                    "seed": recipe.seed,
                },
            )
            found.save(
                run.folder / "cocos" / safe_name(f"{subject.collection.name}-{split}-{compat}") + ".json"
            )
            ending = "" if compat == "none" else PUBLISHED
            line = line or found.protocol.line()
            for direction, counts in found.counts.items():
                for name, spread in counts.items():
                    if name in _COUNTS:
                        values[f"{direction} {_COUNTS[name]}{ending}"] = spread.mean
                for name, symbol in (("per_active_query", "C^q"), ("per_query", "C^qv-")):
                    # Defined in no batch: no query has a gradient any more.
                    values[f"{direction} {symbol}{ending}"] = counts[name].mean if name in counts else 0.0
        measured = Measured(subject.collection.name, split, len(encoded.images), len(encoded.texts))
        return (Measurement(values, measured, line, ("diptych cocos {run}",)),)
