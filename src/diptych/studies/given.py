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
from typing import TYPE_CHECKING

from diptych.core.errors import UsageError
from diptych.core.files import read_json, write_json
from diptych.studies.making import Made, Wanted
from diptych.studies.measurement import Subject
from diptych.studies.trained import Collections, Machine
from diptych.studies.ways import refuse_recipe_keys

if TYPE_CHECKING:
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.training.run import Run

_FILE = "given.json"


@dataclass(frozen=True)
class GivenEncoder:
    """An encoder that is given for a row, loaded when it is first needed.

    Attributes:
        folder: of the row.
        source: a run, an encoder's folder or a name.
        device: it is loaded to; where there is one, the GPU, when not given.
    """

    folder: Path
    source: str
    device: str | None = None

    @property
    def place(self) -> str | Path:
        """Where the encoder is; of a run, its best."""
        best = Path(self.source).expanduser() / "best"
        return best if (best / "diptych.json").is_file() else self.source

    def check(self) -> None:
        """See that it can be loaded: the rows before it may be measured for hours."""
        from diptych.encoders.dual_encoder import DualEncoder

        DualEncoder.load(self.place, device="cpu")

    @cached_property
    def encoder(self) -> DualEncoder:
        """The encoder."""
        from diptych.encoders.dual_encoder import DualEncoder

        return DualEncoder.load(self.place, device=self.device)


def encoder_of(run: Run | GivenEncoder) -> DualEncoder:
    """The encoder that a row is: a run's best, or the one that is given."""
    from diptych.encoders.dual_encoder import DualEncoder

    return run.encoder if isinstance(run, GivenEncoder) else DualEncoder.load(run.best)


def given_encoder(wanted: Wanted, accelerator: str = "auto") -> GivenEncoder:
    """What a person gives for a row."""
    device = None if accelerator == "auto" else accelerator
    return GivenEncoder(wanted.target, str(wanted.choices.values[wanted.row.given]), device)


def make_encoder(wanted: Wanted, collections: Collections, machine: Machine) -> Made:
    """Take the encoder that the person gives, or that the setting names."""
    refuse_recipe_keys(wanted.study, wanted.row, wanted.choices.values)
    given = given_encoder(wanted, machine.accelerator)
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
    """See that a row that is to be trained has not been given in an earlier call."""
    file = wanted.target / _FILE
    if file.is_file():
        raise UsageError(
            f"{wanted.target} has {read_json(file)['source']}, not a training",
            f"give it again with --set {wanted.row.given}=…, or {wanted.elsewhere}",
        )
