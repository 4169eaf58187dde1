"""Measuring with and without shortcuts: retrieval in both conditions, and what information rows hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.core.files import safe_name
from diptych.core.fingerprint import fingerprint
from diptych.studies.evidence import HIGH, LOW
from diptych.studies.results import Measurement, Measuring
from diptych.studies.retrieval import RECALLS, columns_of
from diptych.studies.sources import Start, Subject, start_of
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    from diptych.analysis.information import Audit, ProbeName
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.evaluation import Result
    from diptych.evaluation.shortcuts import BothConditions

_MEASURES = (*RECALLS, "rsum")


@dataclass(frozen=True)
class ShortcutRetrieval(Measuring):
    """Recalls and rsum of a run's encoder, on the test and the validation split.

    ``rsum`` and the recalls are without shortcuts; ``with rsum`` and so on with those of training, where
    both sides had them; ``validation rsum`` and ``validation with rsum`` are of the validation split;
    ``chance rsum`` is what knowing nothing gives; ``zero-shot rsum`` is of the encoder that training
    began with, where there was one, without shortcuts.
    """

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Evaluate; results are kept in the run's ``evaluation`` folder, a folder per split and condition."""
        from diptych.encoders.dual_encoder import DualEncoder

        run, data = subject.run, subject.run.recipe.data
        encoder = DualEncoder.load(run.best)
        test, validation = (_both(subject, encoder, split) for split in (data.test, data.validation))
        told, protocol = test.without.protocol, test.protocol_line()
        values = columns_of(test.without)
        values["chance rsum"] = test.without.score("rsum").chance
        values["validation rsum"] = validation.without.value("rsum")
        if test.with_shortcuts is not None and validation.with_shortcuts is not None:
            carrying = columns_of(test.with_shortcuts)
            values |= {f"with {name}": value for name, value in carrying.items()}
            values["validation with rsum"] = validation.with_shortcuts.value("rsum")
        start = start_of(run, subject.begun_with)
        if start is not None:
            zero_shot = _zero_shot(subject, start)
            values["zero-shot rsum"] = zero_shot.value("rsum")
            protocol += f"; {start.line()}, zero-shot: {zero_shot.protocol_line()}"
        return (
            Measurement(
                values,
                Measured(subject.collection.name, data.test, told.n_images, told.n_texts),
                protocol,
                ("diptych evaluate {run}",),
                kept=f"evaluation/{safe_name(f'{subject.collection.name}-{data.test}')}",
            ),
        )


def _both(subject: Subject, encoder: DualEncoder, split: str) -> BothConditions:
    from diptych.evaluation.shortcuts import evaluate_both
    from diptych.training.evaluations import shortcuts_to_evaluate

    run = subject.run
    return evaluate_both(
        encoder,
        subject.collection,
        split,
        run.folder / "embeddings",
        run.folder / "evaluation",
        _MEASURES,
        shortcuts=shortcuts_to_evaluate(run.recipe, subject.collection, run.begun_with.get("shortcuts")),
        samples=0,
        trec=False,
        about={"seed": run.recipe.seed},
    )


def _zero_shot(subject: Subject, start: Start) -> Result:
    """Return the test split, without shortcuts, by the encoder that training began with."""
    from diptych.encoders.encode import encode_collection
    from diptych.evaluation.evaluate_encoder import evaluate_encoded

    split = subject.run.recipe.data.test
    encoder, part = start.open(), subject.collection.split(split)
    # Rows that begin with the same encoder share its embeddings, wherever their runs are.
    name = fingerprint(encoder.fingerprint, part.text_fingerprint)
    encoded = encode_collection(encoder, part, Path(subject.features) / "zero-shot" / name, split)
    folder = subject.run.folder / "evaluation" / safe_name(f"{part.name}-{split}-zero-shot")
    return evaluate_encoded(encoded, folder, _MEASURES, samples=0, trec=False)


_KINDS = {
    "image": (
        "shared",
        "partial",
        "specific",
        "undescribed",
        "never described",
        "task-relevant",
        "shortcut",
    ),
    "caption": ("shared", "partial", "specific", "unstated", "words", "shortcut"),
}
_PROBES = {"linear": "", "mlp": " (mlp)"}  # what ends the names of their columns


@dataclass(frozen=True)
class Information(Measuring):
    """Per cent of each kind of information that a run's best encoder holds, by both probes.

    ``image shared`` and the like are of the linear probe on rows without shortcuts; ``image shortcut``
    and ``caption shortcut`` are on rows with them, as trained, and missing where there are none;
    ``with image shared`` and the like are on rows with them. ``low`` and ``high`` at the end of a name
    are the ends of its 95 % interval, ``(mlp)`` says the other probe. ``gap`` is what a task-optimal
    representation would hold beyond the measured one, in bits per image, ``optimal`` all it would hold,
    ``minimal`` what one minimally sufficient for one caption would. ``image undescribed`` mixes keys that
    captions never state, which ``image never described`` has alone, with keys that captions of other images
    state. Of collections without facts there are words: ``image shared`` and its like, and ``caption words``.

    Attributes:
        most: training images, and training rows per question.
        samples: bootstrap resamples.
        probes: which.
    """

    most: int = 4000
    samples: int = 1000
    probes: Sequence[ProbeName] = ("linear", "mlp")

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Audit the run; the result is kept in its ``audit`` folder, with its page."""
        from diptych.report.analysis import audit_page
        from diptych.training.evaluations import audit_run

        run, split = subject.run, subject.run.recipe.data.test
        part = subject.collection.split(split)
        found = audit_run(run, subject.collection, probes=self.probes, most=self.most, samples=self.samples)
        found.save(run.folder / "audit" / "audit.json")
        audit_page(found, run.recipe.name).save(run.folder / "audit" / "report.html")
        return (
            Measurement(
                columns_of_audit(found),
                Measured(part.name, split, part.n_images, part.n_captions),
                found.protocol.line(),
                (f"diptych analyse audit {{run}} --most {self.most}",),
            ),
        )


def columns_of_audit(found: Audit) -> dict[str, float]:
    """Return an audit's figures by the names of a study's columns; shares in per cent, gaps in bits per image."""
    from diptych.analysis.information import gap_of

    values: dict[str, float] = {}
    for probe in found.protocol.probes:
        for condition, sides in found.conditions.items():
            before, after = "with " if condition == "with" else "", _PROBES[probe]
            for side, kinds in _KINDS.items():
                for kind in kinds:
                    held = sides[side].held(kind, probe)
                    if held is None:
                        continue
                    # of digits there is one condition alone: with them
                    name = f"{'' if kind == 'shortcut' else before}{side} {kind}{after}"
                    low, high = held.ends
                    values |= {name: held.percent, name + LOW: low, name + HIGH: high}
            gap = gap_of(sides["image"], probe)
            if gap is not None:
                bits = {"gap": gap.gap[0], "optimal": gap.optimal, "minimal": gap.minimal}
                values |= {f"{before}{name}{after}": value for name, value in bits.items()}
    return values
