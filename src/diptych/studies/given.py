"""Rows that are published encoders, measured as they are: which encoder a person gives for one, and the encoder
of whatever a row is.

::

    rows/ROW/seed-N/
      given.json     what was given, and its fingerprint: another one is refused
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.errors import UsageError
from diptych.core.files import read_json, write_json
from diptych.studies.making import Made, Wanted
from diptych.studies.study import Subject
from diptych.studies.trained import Collections, Machine
from diptych.studies.ways import refuse_recipe_keys

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.encoders.dual_encoder import DualEncoder

__all__ = ["GivenEncoder", "encoder_on", "given_encoder", "make_encoder", "refuse_encoder"]

_FILE = "given.json"


@dataclass(frozen=True)
class GivenEncoder:
    """An encoder that is given for a row, loaded when it is first needed.

    Attributes:
        folder: of the row.
        source: a run, an encoder's folder or a name.
    """

    folder: Path
    source: str

    @cached_property
    def encoder(self) -> DualEncoder:
        """The encoder; of a run, its best."""
        from diptych.encoders.dual_encoder import DualEncoder

        best = Path(self.source).expanduser() / "best"
        return DualEncoder.load(best if (best / "diptych.json").is_file() else self.source)

    def on(self, collection: Collection) -> DualEncoder:
        """The same encoder, whatever it is asked about."""
        return self.encoder


def encoder_on(subject: Subject) -> DualEncoder:
    """The encoder of what is measured, for the collection that it is measured on."""
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.training.run import Run

    if isinstance(subject.run, Run):
        return DualEncoder.load(subject.run.best)
    found: DualEncoder = subject.run.on(subject.collection)
    return found


def given_encoder(wanted: Wanted) -> GivenEncoder:
    """What a person gives for a row."""
    return GivenEncoder(wanted.target, str(wanted.choices.values[wanted.row.given]))


def make_encoder(wanted: Wanted, collections: Collections, machine: Machine) -> Made:
    """Take the encoder that the person gives, or that the setting names.

    Raises:
        UsageError: the folder has another encoder, or was trained; recipe keys that no recipe would get;
            no encoder of that name.
    """
    refuse_recipe_keys(wanted.study, wanted.row, wanted.choices.values)
    given = given_encoder(wanted)
    if (wanted.target / "run.json").is_file():
        raise UsageError(f"{wanted.target} has a training, not {given.source}", wanted.elsewhere)
    file = wanted.target / _FILE
    there = read_json(file) if file.is_file() else None
    mark = given.encoder.fingerprint
    if there is not None and there["fingerprint"] != mark:
        raise UsageError(
            f"{wanted.target} has {there['source']} (fingerprint {there['fingerprint']}), not "
            f"{given.source} ({mark})",
            wanted.elsewhere,
        )
    if there is None:
        write_json(file, {"source": given.source, "fingerprint": mark})
    machine.tell(f"{wanted.what}: {'there already' if there else 'given'}")
    subject = Subject(given, None, machine.features_root, wanted.choices.positives)
    return Made(subject, ("given", mark), given=f"{given.source} (fingerprint {mark})")


def refuse_encoder(wanted: Wanted) -> None:
    """See that a row that is to be trained has not been given in an earlier call.

    Raises:
        UsageError: it has.
    """
    file: Any = wanted.target / _FILE
    if file.is_file():
        raise UsageError(
            f"{wanted.target} has {read_json(file)['source']}, not a training",
            f"give it again with --set {wanted.row.given}=…, or {wanted.elsewhere}",
        )
