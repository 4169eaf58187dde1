"""Result: numbers with their chance level, their interval and the protocol that made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.core.errors import StorageError, UnknownNameError
from diptych.core.files import atomic_folder, read_json, write_json
from diptych.evaluation.ground_truth import DIRECTIONS
from diptych.evaluation.measuring import measure

__all__ = ["BOTH", "Protocol", "Result", "Score", "TableRow"]

BOTH = "both"  # where a sum over both directions is kept
_FORMAT = 1
_RANKS = "ranks"


@dataclass(frozen=True)
class Protocol:
    """Everything a number depends on besides the embeddings.

    Attributes:
        name: the protocol's name, e.g. ``"coco-1k"``.
        n_images: images in the test set.
        n_texts: texts in the test set.
        texts_per_image: least and most positives of an image query.
        images_per_text: least and most positives of a text query.
        galleries: into how many folds the test set was cut; values are averaged over them.
        ties: the tie rule.
        any_of_k: measures for which only the best positive of a query counts.
        all_positives: measures for which every positive counts.
        compat: what follows published conventions instead of plain definitions.
        without_positive: per direction, queries that have none; they score 0 in every mean.
        samples: bootstrap resamples of images; 0 for no intervals.
        confidence: coverage of the intervals.
        seed: of the bootstrap.
        about: dataset, split, fingerprints, training seed: whatever else the numbers depend on.
    """

    name: str
    n_images: int
    n_texts: int
    texts_per_image: tuple[int, int]
    images_per_text: tuple[int, int]
    galleries: int
    ties: str
    any_of_k: tuple[str, ...]
    all_positives: tuple[str, ...]
    compat: tuple[str, ...]
    without_positive: dict[str, int]
    samples: int
    confidence: float
    seed: int
    about: dict[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """One line, to be printed with every number."""
        per_image = "–".join(str(count) for count in dict.fromkeys(self.texts_per_image))
        per_text = "–".join(str(count) for count in dict.fromkeys(self.images_per_text))
        parts = [f"{key} {value}" for key, value in self.about.items()]
        parts.append(
            f"{self.name}: {self.n_images:,} images, {self.n_texts:,} texts "
            f"({per_image} per image, {per_text} per text)"
        )
        if self.galleries > 1:
            parts.append(f"mean of {self.galleries} galleries")
        if self.any_of_k:
            parts.append(f"any-of-k for {', '.join(self.any_of_k)}")
        if self.all_positives:
            parts.append(f"all positives for {', '.join(self.all_positives)}")
        parts.append(f"ties {self.ties}")
        parts += [f"compat {what}" for what in self.compat]
        parts += [
            f"{count:,} {direction} queries without a positive count as 0"
            for direction, count in self.without_positive.items()
            if count
        ]
        if self.samples:
            parts.append(
                f"{100 * self.confidence:g} % intervals from {self.samples:,} resamples of images, "
                f"seed {self.seed}"
            )
        return "; ".join(parts)


@dataclass(frozen=True)
class Score:
    """A measure's value.

    Attributes:
        value: a share in [0, 1], a rank from 1, or a sum in per cent.
        chance: what a model that knows nothing gets.
        low: lower end of the interval; None without one.
        high: upper end.
    """

    value: float
    chance: float
    low: float | None = None
    high: float | None = None


class TableRow(NamedTuple):
    """One row of a printed table; shares are in per cent, ``both`` is for sums."""

    measure: str
    i2t: str
    t2i: str
    both: str
    chance: str
    interval: str


@dataclass(frozen=True, eq=False)
class Result:
    """What :func:`~diptych.evaluation.evaluate.evaluate` returns.

    Attributes:
        protocol: what the numbers depend on.
        scores: per direction (``"i2t"``, ``"t2i"``, and ``"both"`` for sums) and measure.
        per_query: per direction and measure, one float64 per query.
        ranks: per direction, the rank of each query's best positive, expected where ties leave it open.
    """

    protocol: Protocol
    scores: dict[str, dict[str, Score]]
    per_query: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    ranks: dict[str, np.ndarray] = field(default_factory=dict)

    def score(self, name: str, direction: str = BOTH) -> Score:
        """The score of one measure.

        Raises:
            UnknownNameError: no such direction, or the measure was not computed for it.
        """
        if direction not in self.scores:
            raise UnknownNameError("direction", direction, self.scores)
        if name not in self.scores[direction]:
            raise UnknownNameError(f"{direction} measure", name, self.scores[direction])
        return self.scores[direction][name]

    def value(self, name: str, direction: str = BOTH) -> float:
        """The value of one measure; see :meth:`score`."""
        return self.score(name, direction).value

    def values(self) -> dict[str, float]:
        """All values under flat names: ``"i2t R@1"``, ``"t2i R@1"``, ``"rsum"``, ..."""
        return {
            name if direction == BOTH else f"{direction} {name}": score.value
            for direction, given in self.scores.items()
            for name, score in given.items()
        }

    def table(self) -> list[TableRow]:
        """Rows for printing, one per measure."""
        rows = []
        for name in dict.fromkeys(name for given in self.scores.values() for name in given):
            cells = {key: given[name] for key, given in self.scores.items() if name in given}
            show = measure(name).show
            values = {key: show(score.value) for key, score in cells.items()}
            intervals = [
                f"{show(score.low)}–{show(score.high)}"
                for score in cells.values()
                if score.low is not None and score.high is not None
            ]
            rows.append(
                TableRow(
                    measure=name,
                    i2t=values.get("i2t", ""),
                    t2i=values.get("t2i", ""),
                    both=values.get(BOTH, ""),
                    chance=" / ".join(show(score.chance) for score in cells.values()),
                    interval=" / ".join(intervals),
                )
            )
        return rows

    def protocol_line(self) -> str:
        """One line, to be printed with every number."""
        return self.protocol.line()

    def to_dict(self) -> dict[str, Any]:
        """Protocol and scores for JSON; the arrays per query are left out (see :meth:`save`)."""
        return {
            "format": _FORMAT,
            "protocol": asdict(self.protocol),
            "scores": {
                direction: {name: asdict(score) for name, score in given.items()}
                for direction, given in self.scores.items()
            },
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Result:
        """The inverse of :meth:`to_dict`, also after a way through JSON.

        Raises:
            StorageError: another format.
        """
        if given.get("format") != _FORMAT:
            raise StorageError(
                f"an evaluation of format {given.get('format')}, this version reads {_FORMAT}",
                "evaluate again with this version",
            )
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in given["protocol"].items()
        }
        scores = {
            direction: {name: Score(**score) for name, score in by_name.items()}
            for direction, by_name in given["scores"].items()
        }
        return cls(Protocol(**fields), scores)

    def save(self, folder: Path | str) -> Path:
        """Write ``evaluation.json`` and ``per_query.npz``; all or nothing."""
        folder = Path(folder)
        arrays = {
            f"{direction} {name}": values
            for direction, given in self.per_query.items()
            for name, values in given.items()
        }
        arrays |= {f"{direction} {_RANKS}": values for direction, values in self.ranks.items()}
        with atomic_folder(folder, "evaluation.json") as temporary:
            write_json(temporary / "evaluation.json", self.to_dict())
            np.savez_compressed(temporary / "per_query.npz", allow_pickle=False, **arrays)
        return folder

    @classmethod
    def open(cls, folder: Path | str) -> Result:
        """Read what :meth:`save` wrote.

        Raises:
            StorageError: the folder is not one, or of another version.
        """
        folder = Path(folder)
        result = cls.from_dict(read_json(folder / "evaluation.json"))
        try:
            with np.load(folder / "per_query.npz", allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
        except (OSError, ValueError) as error:
            raise StorageError(f"{folder / 'per_query.npz'} cannot be opened: {error}") from None
        for direction in DIRECTIONS:
            result.per_query[direction] = {}
        for key, values in arrays.items():
            direction_, name = key.split(" ", 1)
            if name == _RANKS:
                result.ranks[direction_] = values
            else:
                result.per_query[direction_][name] = values
        return result
