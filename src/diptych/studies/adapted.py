"""Rows that are their base adapted to each collection, on a few pairs of its training split.

::

    rows/ROW/seed-N/
      adapted/NAME/       the adapted encoder of a collection
      adapted/NAME.json   what it was made of; another one is made when that changes

The paper is zero-shot and names few-shot scenarios as a limitation (section 2.7).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.errors import UnknownNameError
from diptych.core.files import read_json, write_json
from diptych.studies.given import encoder_on, given_encoder
from diptych.studies.making import Made, Wanted
from diptych.studies.results import file_name
from diptych.studies.study import Subject
from diptych.studies.trained import Collections, Machine, collection_key, cost_of
from diptych.studies.ways import section_of

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.encoders.dual_encoder import DualEncoder

__all__ = ["Adapted", "make_adapted", "options_of_adaptation"]

_TRAIN = "train"
_NOT_OPTIONS = ("encoder", "collection", "seed")


@dataclass(frozen=True)
class Adapted:
    """A base that is adapted to whatever it is measured on.

    Attributes:
        folder: of its row.
        base: what is adapted.
        seed: of the pairs that are drawn.
        options: of the adaptation; ``pairs`` among them.
        machine: is told of an adaptation.
    """

    folder: Path
    base: Subject
    seed: int
    options: Mapping[str, Any]
    machine: Machine

    def possible_on(self, collection: Collection) -> bool:
        """Whether there is a training split to take pairs of."""
        return _TRAIN in collection.split_sizes

    def on(self, collection: Collection) -> DualEncoder:
        """The base adapted to a collection; what is there already is used."""
        from diptych.encoders.dual_encoder import DualEncoder
        from diptych.training.adaptation import adapt_linear

        base = encoder_on(self.base)
        about = {
            "base": base.fingerprint,
            "data": collection_key(collection),
            "seed": self.seed,
            "options": dict(self.options),
        }
        folder = self.folder / "adapted" / file_name(collection.name)
        said = folder.parent / f"{folder.name}.json"
        if said.is_file() and read_json(said) == about:
            return DualEncoder.load(folder)
        said.unlink(missing_ok=True)
        self.machine.tell(f"adapting to {self.options['pairs']} pairs of {collection.name}")
        with cost_of(self.folder):
            adapted = adapt_linear(base, collection.split(_TRAIN), seed=self.seed, **self.options)
            adapted.save(folder)
        write_json(said, about)
        return adapted


def options_of_adaptation(wanted: Wanted) -> dict[str, Any]:
    """What a row is adapted with.

    Raises:
        UnknownNameError: an option that adaptations do not have.
        UsageError: one that sets the row apart.
    """
    from diptych.training.adaptation import adapt_linear

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
        run = given_encoder(base)
        state: tuple[Any, ...] = (run.encoder.fingerprint,)
        source = f"{run.source} (fingerprint {run.encoder.fingerprint})"
    else:
        from diptych.training.run import Run

        run = Run.open(base.target)
        state, source = (run.header["step"], run.header["best"]), ""
    options = options_of_adaptation(wanted)
    subject = Subject(run, None, machine.features_root)
    adapted = Adapted(wanted.target, subject, wanted.seed, options, machine)
    changed = tuple(sorted(key for key in wanted.choices.values if key.startswith("adapt.")))
    return Made(
        Subject(adapted, None, machine.features_root),
        ("adapted", *state, wanted.seed, options),
        changed=changed,
        given=source,
    )
