"""Bleeker and de Rijke, Do Lessons from Metric Learning Generalize to Image-Caption Retrieval? (ECIR 2022).

diptych study run metric-learning.table-1 --quick                      2 minutes on a processor
diptych study run metric-learning.table-1 --data FLICKR8K --seeds 0,1,2    about an hour of one core
diptych study run metric-learning.table-1 --data flickr30k             the paper's own training, on a GPU

Table 1 compares four losses on two architectures, five runs each: expect rsum 353.8 ± 1.6 for Triplet
loss SH with VSE++ on Flickr30k (row 1.2). Tables 2 to 4 count, on table 1's runs, which candidates
still move a query (COCOS).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diptych.core.files import safe_name
from diptych.studies.claims import (
    I2T,
    T2I,
    Check,
    Claim,
    Finding,
    above_one,
    all_of,
    at_most,
    beats,
    best_of,
    between,
    missing,
    not_better,
    share_at_rest,
    similar,
)
from diptych.studies.given import encoded_split
from diptych.studies.published import published_table
from diptych.studies.retrieval import Retrieval
from diptych.studies.study import (
    PUBLISHED,
    STUDIES,
    Column,
    Measurement,
    Row,
    Setting,
    SettingName,
    Study,
    Subject,
)
from diptych.studies.verdict import Evidence, Measured

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
                run.folder / "cocos" / f"{safe_name(f'{subject.collection.name}-{split}-{compat}')}.json"
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
        return (Measurement(values, measured, line, ("diptych analyse cocos {run}",)),)


# How it is trained ------------------------------------------------------------------------------

_LOSSES: Mapping[str, tuple[str, dict[str, object]]] = {
    "triplet": ("Triplet loss", {"name": "triplet", "margin": 0.2}),
    "triplet-hardest": ("Triplet loss SH", {"name": "triplet-hardest", "margin": 0.2}),
    "nt-xent": ("NT-Xent", {"name": "nt-xent", "temperature": 0.1}),
    "smoothap": ("SmoothAP", {"name": "smoothap", "temperature": 0.01}),
}
_METHODS = {"vsepp": "VSE++", "vsrn": "VSRN"}

# SmoothAP's batches hold all five captions of an image, so that an epoch is a fifth as long.
_FIVE_CAPTIONS = {"batches.plan": "grouped", "batches.captions_per_image": 5}

PAPER = Setting(
    description="the paper's: 30 epochs of 128 pairs, Adam at 2e-4, a tenth of it after 15",
    recipes={"vsepp": "metric-learning.paper.vsepp.toml", "vsrn": "metric-learning.paper.vsrn.toml"},
    changes={
        f"{method}-smoothap": {"stages.0.epochs": 150, "stages.0.step_epochs": 75} for method in _METHODS
    },
    seeds=(0, 1, 2, 3, 4),
    time="GPU hours; per row and seed",
)
DATA = Setting(
    description="for a processor: a frozen MobileNetV2 with cached views, batch norm after both heads, 12 epochs",
    recipes={"vsepp": "metric-learning.data.vsepp.toml", "vsrn": "metric-learning.paper.vsrn.toml"},
    changes={"vsepp-smoothap": {"stages.0.epochs": 60, "stages.0.step_epochs": 30}},
    seeds=(0, 1, 2),
    time="1 h; of a processor core on Flickr8k, for VSE++ with three seeds",
)
QUICK = Setting(
    description="scenes: a small network whose random image features stay as they are, 6 epochs",
    recipes={"vsepp": "metric-learning.quick.vsepp.toml"},
    changes={"vsepp-smoothap": {"stages.0.epochs": 30}},
    left_out={f"vsrn-{loss}": "there are no region features of scenes" for loss in _LOSSES},
    time="2 min; on a processor",
)
_SETTINGS: dict[SettingName, Setting] = {"paper": PAPER, "data": DATA, "quick": QUICK}


def _rows(home: str | None, *losses: str) -> tuple[Row, ...]:
    return tuple(
        Row(
            name=f"{method}-{loss}",
            label=f"{title}, {_LOSSES[loss][0]}",
            model=method,
            changes={"objective": _LOSSES[loss][1], **(_FIVE_CAPTIONS if loss == "smoothap" else {})},
            home=home,
            takes_regions=method == "vsrn",
        )
        for method, title in _METHODS.items()
        for loss in losses
    )


# Table 1 ----------------------------------------------------------------------------------------

_SCORES = (*I2T, *T2I, "rsum")


def _per_method(check: object) -> Check:
    """``check(prefix)`` for each method, the prefix being that of its rows."""
    return all_of(*(check(f"{method}-") for method in _METHODS))  # type: ignore[operator]


def _best_has_best_map(evidence: Evidence) -> list[Finding]:
    findings = []
    for method, title in _METHODS.items():
        rows = [f"{method}-{loss}" for loss in _LOSSES]
        precision = evidence.only(rows, "i2t mAP@5")
        for column in I2T:
            recall = evidence.only(rows, column)
            what = f"{title}: the row with the best {column} has the best mAP@5"
            if len(recall) < 2 or set(recall) != set(precision):
                findings.append(missing(what, f"{column} and mAP@5 of the {title} rows"))
                continue
            # Of rows with the same recall, the one whose mAP@5 speaks for the claim.
            winner = max(recall, key=lambda row: (recall[row].mean, precision[row].mean))
            best = max(figure.mean for figure in precision.values())
            short = best - precision[winner].mean
            detail = f"{winner} has {precision[winner].mean:.3f}, the best is {best:.3f}"
            findings.append(Finding(what, short <= 0, detail, -short))
    return findings


_CLAIMS = (
    Claim(
        "(1)",
        "Triplet loss SH gives the best scores, whatever the method and the task",
        _per_method(
            lambda m: best_of(
                f"{m}triplet-hardest", [f"{m}{x}" for x in _LOSSES if x != "triplet-hardest"], *_SCORES
            )
        ),
        "Section 3, results",
    ),
    Claim(
        "(2)",
        "Triplet loss SH beats the triplet loss over all negatives",
        _per_method(lambda m: beats(f"{m}triplet-hardest", f"{m}triplet", *_SCORES)),
        "Section 3, results",
    ),
    Claim(
        "(3)",
        "NT-Xent stays below Triplet loss SH",
        _per_method(lambda m: beats(f"{m}triplet-hardest", f"{m}nt-xent", *_SCORES)),
        "Section 3, results",
    ),
    Claim(
        "(4)",
        "For VSE++ and images asking for captions, SmoothAP is similar to Triplet loss SH",
        similar("vsepp-smoothap", "vsepp-triplet-hardest", *I2T, "i2t average recall"),
        "Section 3, results; similar: within twice the spread over seeds",
    ),
    Claim(
        "(5)",
        "SmoothAP does not beat Triplet loss SH",
        _per_method(lambda m: not_better(f"{m}smoothap", f"{m}triplet-hardest", *_SCORES)),
        "Section 3, results",
    ),
    Claim(
        "(6)", "The row with the best recall has the best mAP@5 too", _best_has_best_map, "Section 3, results"
    ),
)

TABLE_1 = STUDIES.add(
    Study(
        name="metric-learning.table-1",
        asks="Which of four losses trains the best image–caption retrieval, for VSE++ and for VSRN?",
        topic="four losses compared",
        rows=_rows(None, *_LOSSES),
        columns=(
            *(Column(name) for name in I2T),
            Column("i2t average recall", short="i2t avg"),
            Column("i2t mAP@5", 2),
            *(Column(name) for name in T2I),
            Column("t2i average recall", short="t2i avg"),
            Column("rsum"),
        ),
        published=(published_table("metric-learning", "table-1"),),
        claims=_CLAIMS,
        settings=_SETTINGS,
        measure=Retrieval(measures=("mAP@5",), published={"mAP@5": "mAP-hits@5"}),
        notes=(
            "mAP@5 is held against the paper as the paper computes it (mAP-hits@5, divided by the positives "
            "found); claims are judged by the plain mAP@5.",
            "Other captions of an image in a batch are positives here; the published code takes them for "
            "negatives (--set objective.compat=pairs).",
            "The frozen backbone's batch-norm statistics stay as they are; in the published code they drift.",
            "VSRN's published code takes unit length over the regions (--set model.image.compat=region-axis). On "
            "Flickr30k it leaves its input as it is (--set model.image.normalise_input=false) and lowers the "
            "learning rate after 10 epochs, after 50 for SmoothAP, where the paper says 15.",
        ),
    )
)

# Tables 2 to 4: COCOS on table 1's runs ---------------------------------------------------------

_HOME = "metric-learning.table-1"
_COUNTING_NOTES = (
    "Counts are held against the paper as its code made them (compat published); claims are judged by the "
    "right counts.",
    "Measured counts are means over the batches of one epoch of the training split, and spreads here are over "
    "seeds; the paper's are over batches of one run.",
)


TABLE_2 = STUDIES.add(
    Study(
        name="metric-learning.table-2",
        asks="How many negatives move a query at the end of training with the triplet losses?",
        topic="gradient of triplet losses",
        rows=_rows(_HOME, "triplet", "triplet-hardest"),
        columns=tuple(Column(f"{d} {c}", 2) for d in ("i2t", "t2i") for c in ("C^q", "C^B", "C^0")),
        published=(published_table("metric-learning", "table-2"),),
        claims=(
            Claim(
                "many negatives",
                "With VSE++, the triplet loss lets many more negatives move a query than Triplet loss SH",
                # C^q of Triplet loss SH is 1 by definition, so that more than it would be no claim.
                at_most(
                    "vsepp-triplet-hardest", "vsepp-triplet", 0.5, "i2t C^q", "t2i C^q", "i2t C^B", "t2i C^B"
                ),
                "Section 5, Triplet loss; many more: at least twice as many",
            ),
            Claim(
                "VSRN alike",
                "With VSRN, the triplet loss lets about one negative per query through, as Triplet loss SH does",
                all_of(*(between("vsrn-triplet", f"{d} C^q", 1.0, 1.5) for d in ("i2t", "t2i"))),
                "Section 5, Triplet loss; about one: at most 1.5",
            ),
        ),
        settings=_SETTINGS,
        measure=Counting(),
        notes=_COUNTING_NOTES,
    )
)

TABLE_3 = STUDIES.add(
    Study(
        name="metric-learning.table-3",
        asks="How many negatives carry weight at the end of training with NT-Xent?",
        topic="gradient of NT-Xent",
        rows=_rows(_HOME, "nt-xent"),
        columns=tuple(Column(f"{d} {c}", 2) for d in ("i2t", "t2i") for c in ("C^qv-", "W^qv-", "W^qv+")),
        published=(published_table("metric-learning", "table-3"),),
        claims=(
            Claim(
                "more than one",
                "With NT-Xent more than one negative per query contributes",
                above_one(("vsepp-nt-xent", "vsrn-nt-xent"), "C^qv-"),
                "Section 5, NT-Xent",
            ),
        ),
        settings=_SETTINGS,
        measure=Counting(),
        notes=_COUNTING_NOTES,
    )
)

TABLE_4 = STUDIES.add(
    Study(
        name="metric-learning.table-4",
        asks="How many triplets move a query at the end of training with SmoothAP?",
        topic="gradient of SmoothAP",
        rows=_rows(_HOME, "smoothap"),
        columns=tuple(Column(f"{d} {c}", 2) for d in ("i2t", "t2i") for c in ("C^q", "C^0")),
        published=(published_table("metric-learning", "table-4"),),
        claims=(
            Claim(
                "about one",
                "SmoothAP takes about one triplet per query into account",
                all_of(
                    *(
                        between(f"{method}-smoothap", f"{d} C^q", 0.5, 2.0)
                        for method in _METHODS
                        for d in ("i2t", "t2i")
                    )
                ),
                "Section 5, SmoothAP; about one: between 0.5 and 2",
            ),
            Claim(
                "captions at rest",
                "Hardly any caption has a gradient left when it asks for images (C^0 near the batch's 640), hardly any "
                "image is without one",
                all_of(
                    *(share_at_rest(f"{method}-smoothap", "t2i", 640, 0.9, 1.0) for method in _METHODS),
                    *(share_at_rest(f"{method}-smoothap", "i2t", 128, 0.0, 0.1) for method in _METHODS),
                ),
                "Section 5, SmoothAP; hardly any: a tenth",
            ),
        ),
        settings=_SETTINGS,
        measure=Counting(),
        notes=_COUNTING_NOTES,
    )
)
