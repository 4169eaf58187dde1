"""StressResult: what every perturbation costs, with the protocol that made the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from diptych.core.errors import StorageError, UnknownNameError
from diptych.core.files import write_json
from diptych.core.reading import opening, read_json
from diptych.evaluation.stress.rows import Agreement, StressRow

MARKER = "stress.json"
"""The file that marks a folder of a stress run."""

FORMAT = 2


@dataclass(frozen=True)
class StressResult:
    """What a stress run found.

    Attributes:
        key: what it was made of, by content.
        model: what reports call the encoder.
        protocol: what every number depends on, by name.
        method: how intervals and p-values were made, one line.
        measures: in the order asked for.
        clean: per direction and measure, the mean over clean queries.
        rows: one per perturbation.
        left_out: perturbations that could not be run, and why.
        agreement: per direction with two perturbations or more.
        notes: what a reader of the numbers should know besides.
        opened: whether the run found it finished, of the same content; this alone is not kept.
    """

    key: str
    model: str
    protocol: Mapping[str, Any]
    method: str
    measures: Sequence[str]
    clean: Mapping[str, Mapping[str, float]]
    rows: Sequence[StressRow]
    left_out: Mapping[str, str] = field(default_factory=dict)
    agreement: Mapping[str, Agreement] = field(default_factory=dict)
    notes: Sequence[str] = ()
    opened: bool = field(default=False, compare=False)

    def row(self, perturbation: str) -> StressRow:
        """The row of a perturbation."""
        found = {row.name: row for row in self.rows}
        if perturbation not in found:
            raise UnknownNameError("perturbation of this run", perturbation, found)
        return found[perturbation]

    def protocol_line(self) -> str:
        """One line, to be printed with every number."""
        return "; ".join(f"{name} {value}" for name, value in self.protocol.items())

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        kept = {name: value for name, value in asdict(self).items() if name != "opened"}
        return {"format": FORMAT, "state": "finished", **kept}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> StressResult:
        """The inverse of :meth:`to_dict`, also after a way through JSON."""
        if given.get("format") != FORMAT:
            raise StorageError(
                f"a stress run of format {given.get('format')}, this version reads format {FORMAT}",
                "give the command that made it once more",
            )
        if given.get("state") != "finished":
            raise StorageError("the stress run is not finished", "give the command that began it once more")
        try:
            kept = {name: given[name] for name in cls.__dataclass_fields__ if name != "opened"}
            kept["rows"] = tuple(StressRow.from_dict(row) for row in given["rows"])
            kept["agreement"] = {way: Agreement(**one) for way, one in given["agreement"].items()}
            return cls(**kept)
        except (KeyError, TypeError) as error:
            raise StorageError(
                f"not a stress run: {error}", "give the command that made it once more"
            ) from None

    def save(self, folder: Path | str) -> Path:
        """Write ``stress.json``."""
        write_json(Path(folder) / MARKER, self.to_dict())
        return Path(folder)

    @classmethod
    @opening("stress again")
    def open(cls, folder: Path | str) -> StressResult:
        """Read what a stress run wrote."""
        given = read_json(Path(folder) / MARKER)
        if not isinstance(given, dict):
            raise StorageError(
                f"{Path(folder) / MARKER} holds no stress run", "give the command that made it once more"
            )
        return cls.from_dict(given)
