"""Measuring retrieval without and with shortcuts, beside chance and beside what training began with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.studies.encoding import encoded_split
from diptych.studies.measurement import Measurement, Subject
from diptych.studies.retrieval import RECALLS, columns_of
from diptych.studies.start import Start, start_of
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.evaluation import Result
    from diptych.evaluation.shortcuts import BothConditions

WITH_RSUM, VALIDATION = "with rsum", "validation rsum"
CHANCE, ZERO_SHOT = "chance rsum", "zero-shot rsum"
_MEASURES = (*RECALLS, "rsum")


@dataclass(frozen=True)
class ShortcutRetrieval:
    """Recalls and rsum of a run's encoder, on the test and the validation split.

    ``rsum`` and the recalls are without shortcuts; ``with rsum`` and so on with those of training, where
    both sides had them; ``validation rsum`` and ``validation with rsum`` are of the validation split;
    ``chance rsum`` is what knowing nothing gives; ``zero-shot rsum`` is of the encoder that training
    began with, where there was one, without shortcuts.
    """

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the run."""
        return {"kind": "shortcut retrieval", "version": 2}

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Evaluate; results are kept in the run's ``evaluation`` folder, a folder per split and condition."""
        from diptych.encoders.dual_encoder import DualEncoder

        run, data = subject.run, subject.run.recipe.data
        encoder = DualEncoder.load(run.best)
        test = self._both(subject, encoder, data.test)
        validation = self._both(subject, encoder, data.validation)
        values = columns_of(test.without)
        values[CHANCE] = test.without.score("rsum").chance
        values[VALIDATION] = validation.without.value("rsum")
        if test.with_shortcuts is not None and validation.with_shortcuts is not None:
            given = columns_of(test.with_shortcuts)
            values |= {f"with {name}": value for name, value in given.items()}
            values["validation with rsum"] = validation.with_shortcuts.value("rsum")
        protocol = test.protocol_line()
        start = start_of(run, subject.begun_with)
        if start is not None:
            zero_shot = _zero_shot(subject, start)
            values[ZERO_SHOT] = zero_shot.value("rsum")
            protocol += f"; {start.line()}, zero-shot: {zero_shot.protocol_line()}"
        told = test.without.protocol
        return (
            Measurement(
                values=values,
                on=Measured(subject.collection.name, data.test, told.n_images, told.n_texts),
                protocol=protocol,
                commands=("diptych evaluate {run}",),
            ),
        )

    def _both(self, subject: Subject, encoder: DualEncoder, split: str) -> BothConditions:
        from diptych.evaluation.shortcuts import evaluate_both
        from diptych.training.evaluations import begun_with, shortcuts_to_evaluate

        run = subject.run
        return evaluate_both(
            encoder,
            subject.collection,
            split,
            run.folder / "embeddings",
            run.folder / "evaluation",
            _MEASURES,
            encoded=encoded_split(subject, split),
            shortcuts=shortcuts_to_evaluate(run.recipe, subject.collection, begun_with(run)),
            samples=0,
            trec=False,
            about={"seed": run.recipe.seed},
        )


def _zero_shot(subject: Subject, start: Start) -> Result:
    """The test split, without shortcuts, by the encoder that training began with."""
    from diptych.core.fingerprint import fingerprint
    from diptych.encoders.encode import encode_collection
    from diptych.evaluation.evaluate_encoder import evaluate_encoded

    split = subject.run.recipe.data.test
    encoder = start.open()
    part = subject.collection.split(split)
    # Rows that begin with the same encoder share its rows, wherever their runs are.
    name = fingerprint(encoder.fingerprint, part.text_fingerprint)
    encoded = encode_collection(encoder, part, Path(subject.features) / "zero-shot" / name, split)
    folder = subject.run.folder / "evaluation" / f"{part.name}-{split}-zero-shot"
    return evaluate_encoded(encoded, folder, _MEASURES, samples=0, trec=False)
