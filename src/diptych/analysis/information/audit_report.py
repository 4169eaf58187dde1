"""What an audit found: held bits per group and per question, for both sides and conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from diptych.analysis.information.figures import Side
from diptych.analysis.information.held import Held
from diptych.core.errors import StorageError
from diptych.core.files import write_json
from diptych.core.reading import opening, read_json

_FORMAT = 1
_KIND = "information audit"

CONDITIONS = {"without": "without shortcuts", "with": "with shortcuts"}
"""What the rows were encoded from."""

SIDES = {"image": "image rows", "caption": "caption rows"}
"""Whose rows."""

READING = {
    "facts": "Shared and specific are different facts, some easier to see than others: compare one kind between "
    "runs, not two kinds within one. Undescribed mixes keys that captions never state (never described) with keys "
    "that captions of other images state.",
    "words": "Shared and specific are different words, some easier to see than others: compare one kind between "
    "runs, not two kinds within one.",
}
"""Content → how its kinds are to be read."""

FEW_TO_CHOOSE = 20
"""Fewer validation images than these choose penalties and stopping points by chance."""


@dataclass(frozen=True)
class AuditProtocol:
    """Everything the figures depend on besides the rows.

    Attributes:
        content: ``facts`` or ``words``.
        probes: name → what it is.
        most: training rows per question.
        seed: of probes and control tasks.
        samples, confidence: of the bootstrap.
        images: of train, validation and test.
        about: dataset, splits, encoder, data, shortcuts.
    """

    content: str
    probes: dict[str, str]
    most: int
    seed: int
    samples: int
    confidence: float
    images: tuple[int, int, int]
    about: dict[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """One line, to be printed with the figures."""
        parts = [f"{key} {value}" for key, value in self.about.items() if value is not None]
        parts.append("images {:,} to train probes, {:,} to choose, {:,} to test".format(*self.images))
        parts.append(f"at most {self.most:,} training rows per question")
        parts += [f"{name} probe: {what}" for name, what in self.probes.items()]
        parts.append(f"control: random answers per image; seed {self.seed}")
        parts.append(
            f"held = 1 − cross-entropy with the probe / without it (training frequencies), {100 * self.confidence:g} % "
            f"intervals from {self.samples:,} resamples of test images"
        )
        return "; ".join(parts)


@dataclass(frozen=True, eq=False)
class Audit:
    """What :func:`~diptych.analysis.information.audit.audit` returns.

    Attributes:
        protocol: what the figures depend on.
        conditions: ``without`` and, where there are shortcuts, ``with`` → side → figures.
    """

    protocol: AuditProtocol
    conditions: dict[str, dict[str, Side]]

    def held(self, condition: str, side: str, group: str, probe: str) -> Held | None:
        """One figure; None where nothing of the kind was asked."""
        found = self.conditions.get(condition, {}).get(side)
        figure = None if found is None else found.group(group)
        return None if figure is None else figure.held.get(probe)

    def notes(self) -> list[str]:
        """What a reader of the figures should know, one sentence each."""
        found: dict[str, None] = {}
        to_choose = self.protocol.images[1]
        if to_choose < FEW_TO_CHOOSE:
            found[
                f"only {to_choose} validation image{'' if to_choose == 1 else 's'} to choose penalties and stopping "
                f"points by, fewer than {FEW_TO_CHOOSE}: with others the figures may be quite different."
            ] = None
        for condition, sides in self.conditions.items():
            before = f"{CONDITIONS[condition]}, " if len(self.conditions) > 1 else ""
            for name, side in sides.items():
                found.update(dict.fromkeys(f"{before}{SIDES[name]}: {note}" for note in side.notes))
        return [note[0].upper() + note[1:] for note in found]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "format": _FORMAT,
            "kind": _KIND,
            "protocol": asdict(self.protocol),
            "conditions": {
                condition: {name: asdict(side) for name, side in sides.items()}
                for condition, sides in self.conditions.items()
            },
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Audit:
        """The inverse of :meth:`to_dict`, also after a way through JSON."""
        if given.get("kind") != _KIND or given.get("format") != _FORMAT:
            raise StorageError(
                f"expected {_KIND} of format {_FORMAT}, got {given.get('kind')} of format {given.get('format')}",
                "audit again with this version: diptych audit",
            )
        protocol = {**given["protocol"], "images": tuple(given["protocol"]["images"])}
        return cls(
            AuditProtocol(**protocol),
            {
                condition: {name: Side.from_dict(side) for name, side in sides.items()}
                for condition, sides in given["conditions"].items()
            },
        )

    def save(self, path: Path | str) -> Path:
        """Write ``audit.json``, whole or not at all."""
        write_json(path, self.to_dict())
        return Path(path)

    @classmethod
    @opening("audit again: diptych audit")
    def open(cls, path: Path | str) -> Audit:
        """Read what :meth:`save` wrote."""
        given = read_json(path)
        if not isinstance(given, dict):
            raise StorageError(f"{path} holds no {_KIND}", "audit again: diptych audit")
        return cls.from_dict(given)
