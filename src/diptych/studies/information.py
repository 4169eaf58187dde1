"""Measuring what a run's rows hold: the information audit as a study's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.studies.encoding import encoded_split
from diptych.studies.measurement import Measurement, Subject
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    from diptych.analysis.information import Audit, ProbeName
    from diptych.data.collection import Collection
    from diptych.encoders.encoded import EncodedCollection
    from diptych.evaluation.auditing import Encode

IMAGE_KINDS = ("shared", "partial", "specific", "undescribed", "never described", "task-relevant", "shortcut")
CAPTION_KINDS = ("shared", "partial", "specific", "unstated", "words", "shortcut")

_NAMES = {"linear": "", "mlp": " (mlp)"}


@dataclass(frozen=True)
class Information:
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
    probes: tuple[ProbeName, ...] = ("linear", "mlp")

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the run."""
        return {
            "kind": "information",
            "version": 1,
            "most": self.most,
            "samples": self.samples,
            "probes": list(self.probes),
        }

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Audit the run; the result is kept in its ``audit`` folder, with its page."""
        from diptych.report.information import write_audit_page
        from diptych.training.evaluations import audit_run

        run = subject.run
        found = audit_run(
            run,
            subject.collection,
            probes=self.probes,
            most=self.most,
            samples=self.samples,
            encode=_from_cached_features(subject),
        )
        found.save(run.folder / "audit" / "audit.json")
        write_audit_page(found, run.folder / "audit" / "report.html", run.recipe.name)
        split = run.recipe.data.test
        part = subject.collection.split(split)
        return (
            Measurement(
                values=columns_of_audit(found),
                on=Measured(part.name, split, part.n_images, part.n_captions),
                protocol=found.protocol.line(),
                commands=(f"diptych audit {{run}} --most {self.most}",),
            ),
        )


def columns_of_audit(found: Audit) -> dict[str, float]:
    """An audit's figures by the names of a study's columns; shares in per cent, gaps in bits per image."""
    from diptych.analysis.information import gap_of

    values: dict[str, float] = {}
    for probe in found.protocol.probes:
        for condition in found.conditions:
            for side, kinds in (("image", IMAGE_KINDS), ("caption", CAPTION_KINDS)):
                for kind in kinds:
                    held = found.held(condition, side, kind, probe)
                    if held is None:
                        continue
                    # of digits there is one condition alone: with them
                    before = "with " if condition == "with" and kind != "shortcut" else ""
                    name = f"{before}{side} {kind}{_NAMES[probe]}"
                    low, high = held.ends
                    values |= {name: held.percent, f"{name} low": low, f"{name} high": high}
            gap = gap_of(found.conditions[condition]["image"], probe)
            if gap is not None:
                before = "with " if condition == "with" else ""
                of_gap = {"gap": gap.gap[0], "optimal": gap.optimal, "minimal": gap.minimal}
                values |= {f"{before}{name}{_NAMES[probe]}": bits for name, bits in of_gap.items()}
    return values


def _from_cached_features(subject: Subject) -> Encode | None:
    """Rows by way of a run's cached features, where it has them: its backbone need not run again."""
    if subject.run.recipe.features is None:
        return None

    def encode(part: Collection, split: str, folder: Path) -> EncodedCollection:
        return _taken(encoded_split(subject, split), part.image_ids, part.caption_ids)

    return encode


def _taken(
    whole: EncodedCollection, image_ids: Sequence[str], caption_ids: Sequence[str]
) -> EncodedCollection:
    """The rows of some images and their captions, in that order."""
    import numpy as np

    from diptych.encoders.embeddings import Embeddings
    from diptych.encoders.encoded import EncodedCollection

    def pick(given: Embeddings, ids: Sequence[str]) -> tuple[Embeddings, np.ndarray]:
        place = {name: row for row, name in enumerate(given.ids)}
        rows = np.array([place[name] for name in ids], dtype=np.int64)
        taken = Embeddings(
            list(ids), given.rows[rows], given.encoder, given.data, given.kind, given.about, given.similarity
        )
        return taken, rows

    images, image_rows = pick(whole.images, image_ids)
    texts, text_rows = pick(whole.texts, caption_ids)
    new_place = {int(row): place for place, row in enumerate(image_rows)}
    owner = np.array([new_place[int(image)] for image in whole.caption_image[text_rows]], dtype=np.int64)
    return EncodedCollection(images, texts, owner, whole.about)
