"""What a run began with: where that is now, and the fingerprint that the run has kept of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.core.errors import MismatchError

if TYPE_CHECKING:
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.training.run import Run

_WORDS = {"fine_tune": "fine-tuned from", "warm_start": "begun with"}


@dataclass(frozen=True)
class Start:
    """An encoder that a training went on from.

    Attributes:
        key: the recipe's key that names it.
        source: a folder, as far as it is one of today, or a name.
        fingerprint: of its weights, when training began.
    """

    key: str
    source: str
    fingerprint: str

    @property
    def name(self) -> str:
        """``SOURCE (fingerprint F)``."""
        return f"{self.source} (fingerprint {self.fingerprint})"

    def line(self) -> str:
        """For protocols."""
        return f"{_WORDS[self.key]} {self.name}"

    def open(self) -> DualEncoder:
        """The encoder."""
        from diptych.encoders.dual_encoder import DualEncoder

        best = Path(self.source).expanduser() / "best"
        encoder = DualEncoder.load(best if (best / "diptych.json").is_file() else self.source)
        if encoder.fingerprint != self.fingerprint:
            raise MismatchError(
                f"training began with {self.name}, which now holds {encoder.fingerprint}",
                "put the old encoder back, or train the row again in another folder",
            )
        return encoder


def start_of(run: Run, now: str | None = None) -> Start | None:
    """What ``run`` began with; None for fresh weights. ``now``: where that is today, if not where it was."""
    for key, source in (("fine_tune", run.recipe.fine_tune), ("warm_start", run.recipe.warm_start)):
        if source is not None:
            return Start(key, now or source, str(run.begun_with[key]))
    return None
