"""Rows that are their base adapted to each collection, on a few pairs of its training split.

Maps of rows are all that is learned: the base's rows of the test split, which its own row has embedded
already, are mapped, and no picture is encoded again. The paper is zero-shot and names few-shot scenarios
as a limitation (section 2.7).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.errors import UnknownNameError, UsageError
from diptych.studies.given import encoder_of, given_encoder
from diptych.studies.making import Made, Wanted
from diptych.studies.measurement import Subject
from diptych.studies.trained import Collections, Machine, cost_of
from diptych.studies.ways import section_of

if TYPE_CHECKING:
    import numpy as np

    from diptych.data.collection import Collection
    from diptych.encoders.embeddings import Embeddings
    from diptych.encoders.encoded import EncodedCollection
    from diptych.encoders.linear_maps import LinearMap

_TRAIN = "train"
_NOT_OPTIONS = ("encoder", "collection", "seed")
_BLOCK = 65_536


@dataclass(frozen=True)
class Adapted:
    """A base that is adapted to whatever it is measured on.

    Attributes:
        folder: of its row.
        base: what is adapted: a run, or an encoder that is given.
        seed: of the pairs that are drawn.
        options: of the adaptation; ``pairs`` among them.
        machine: is told of an adaptation.
    """

    folder: Path
    base: Any
    seed: int
    options: Mapping[str, Any]
    machine: Machine

    def possible_on(self, collection: Collection) -> bool:
        """Whether there is a training split with as many pictures that have captions; says so where not."""
        there, wanted = collection.split_sizes.get(_TRAIN, 0), self.options["pairs"]
        if there:
            there = int((collection.split(_TRAIN).captions_per_image > 0).sum())
        if there < wanted:
            self.machine.tell(f"{collection.name} has {there:,} pairs to adapt on, not {wanted:,}")
        return bool(there >= wanted)

    def encoded(self, collection: Collection, split: str, name: str) -> EncodedCollection:
        """Rows of a split by the base adapted to the collection; ``name`` is of the folder of its embeddings."""
        from diptych.encoders.encode import encode_collection
        from diptych.encoders.encoded import EncodedCollection
        from diptych.training.adaptation import adapt_linear

        base, part = encoder_of(self.base), collection.split(split)
        plain = encode_collection(base, part, self.base.folder / "embeddings" / name, split)
        self.machine.tell(f"adapting to {self.options['pairs']} pairs of {collection.name}")
        with cost_of(self.folder):
            adapted = adapt_linear(base, collection.split(_TRAIN), seed=self.seed, **self.options)
        about = {**plain.about, "encoder": adapted.describe()}
        folder = self.folder / "embeddings" / name
        images, texts = (
            _mapped(folder / f"{rows.kind}s", rows, side, adapted.fingerprint, about)
            for rows, side in ((plain.images, adapted.maps.image), (plain.texts, adapted.maps.text))
        )
        return EncodedCollection(images, texts, plain.caption_image, about)


def _mapped(
    folder: Path, rows: Embeddings, side: LinearMap, fingerprint: str, about: dict[str, Any]
) -> Embeddings:
    from diptych.encoders.embeddings import Embeddings

    def blocks() -> Iterator[np.ndarray]:
        for start in range(0, len(rows), _BLOCK):
            part = rows.rows[start : start + _BLOCK]
            yield side(part, rows.kind, range(start, start + len(part)))

    return Embeddings.stream(
        folder,
        rows.ids,
        int(side.matrix.shape[1]),
        blocks(),
        encoder=fingerprint,
        data=rows.data,
        kind=rows.kind,
        about=about,
    )


def options_of_adaptation(wanted: Wanted) -> dict[str, Any]:
    """What a row is adapted with."""
    from diptych.training.adaptation import adapt_linear

    if wanted.choices.values.get("measure.split") == _TRAIN:
        raise UsageError(
            f"{wanted.row.name} is adapted on the training split, and would be measured on it",
            "measure another split, or leave the row out: --rows",
        )
    chosen = wanted.study.settings[wanted.setting]
    options = section_of(wanted.row, chosen, wanted.choices.values, "adapt")
    known = [name for name in inspect.signature(adapt_linear).parameters if name not in _NOT_OPTIONS]
    for key in options:
        if key not in known:
            raise UnknownNameError("option of adaptations", key, known)
    return options


def make_adapted(wanted: Wanted, collections: Collections, machine: Machine) -> Made:
    """Say what is adapted; it is adapted when it is measured, to each collection anew."""
    base = wanted.base
    assert base is not None  # what is adapted has a base, or its row is wrong
    run: Any
    if base.way == "given":
        run = given_encoder(base, machine.accelerator)
        state: tuple[Any, ...] = (run.encoder.fingerprint,)
        source = f"{run.source} (fingerprint {run.encoder.fingerprint})"
    else:
        from diptych.training.run import Run

        run = Run.open(base.target)
        state, source = (run.header["step"], run.header["best"]), ""
    options = options_of_adaptation(wanted)
    adapted = Adapted(wanted.target, run, wanted.seed, options, machine)
    changed = tuple(sorted(key for key in wanted.choices.values if key.startswith("adapt.")))
    return Made(
        Subject(adapted, None, machine.features_root),
        ("adapted", *state, wanted.seed, options),
        changed=changed,
        given=source,
    )
