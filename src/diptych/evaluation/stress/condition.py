"""Condition: what one perturbation with one seed did to every query, as it lies on disk.

::

    FOLDER/NAME-SEED.npz         values per query, which were changed, ranks, preferences, the worst hit
    FOLDER/NAME-SEED.jsonl.gz    id and text of every changed caption

The first is written last: where it is, the condition is finished. Both hold the same bytes whenever they are
made of the same.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import StorageError
from diptych.core.files import atomic_path, write_bytes
from diptych.core.reading import file_errors, parse_json, read_arrays

_FORMAT = 1
_ARRAYS = ("changed", "same", "rank", "preference", "worst", "worst_first")


@dataclass(frozen=True, eq=False)
class Condition:
    """One perturbation with one seed.

    Attributes:
        perturbation: its name.
        seed: of its draws.
        key: what it was made of, by content.
        content: a fingerprint of the changed queries: two seeds with the same are one experiment.
        options: of the perturbation.
        reasons: how many queries stayed as they were, by reason.
        changed: (n,) booleans.
        same: (n,) booleans: queries that were changed and whose row did not differ by more than rounding.
        values: per measure, (n,) float64; those of the clean query where it was not changed.
        rank: (n,) float64, of the best positive.
        preference: (n,) float64: 1 where the own picture scores the clean caption higher than the changed
            one, 0 where lower, one half where they tie; NaN for captions that were not changed, and for
            pictures.
        worst: queries whose best positive's rank grew by the greatest factor, that first, at most one of a
            picture.
        worst_first: (w, 2): the item that each of them found first, clean and changed.
        worst_texts: of captions, the changed text of each of them.
    """

    perturbation: str
    seed: int
    key: str
    content: str
    options: Mapping[str, Any]
    reasons: Mapping[str, int]
    changed: np.ndarray
    same: np.ndarray
    values: Mapping[str, np.ndarray]
    rank: np.ndarray
    preference: np.ndarray
    worst: np.ndarray
    worst_first: np.ndarray
    worst_texts: Sequence[str] = ()

    @staticmethod
    def path(folder: Path, perturbation: str, seed: int) -> Path:
        """Where it lies."""
        return folder / f"{perturbation}-{seed}.npz"

    @classmethod
    def texts_path(cls, folder: Path, perturbation: str, seed: int) -> Path:
        """Where the texts of changed captions lie."""
        return cls.path(folder, perturbation, seed).with_suffix(".jsonl.gz")

    def save(self, folder: Path, texts: Mapping[str, str] | None = None) -> None:
        """Write it, all or nothing."""
        target = self.path(folder, self.perturbation, self.seed)
        if texts is not None:
            lines = "".join(
                json.dumps({"id": name, "text": text}, ensure_ascii=False) + "\n"
                for name, text in texts.items()
            )
            packed = gzip.compress(lines.encode("utf-8", "surrogatepass"), compresslevel=6, mtime=0)
            write_bytes(self.texts_path(folder, self.perturbation, self.seed), packed)
        header = {
            "format": _FORMAT,
            "perturbation": self.perturbation,
            "seed": self.seed,
            "key": self.key,
            "content": self.content,
            "options": dict(self.options),
            "reasons": dict(self.reasons),
            "measures": list(self.values),
            "worst_texts": list(self.worst_texts),
        }
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        arrays["values"] = np.stack(list(self.values.values()))
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        with atomic_path(target) as temporary, open(temporary, "wb") as handle:
            np.savez_compressed(handle, **arrays)

    @classmethod
    def open(cls, folder: Path, perturbation: str, seed: int) -> Condition:
        """Read what :meth:`save` wrote."""
        path = cls.path(folder, perturbation, seed)
        with file_errors(path, fix="give the same command again"):
            arrays = read_arrays(path, (*_ARRAYS, "values", "header"), fix="give the same command again")
            header = parse_json(arrays.pop("header").tobytes(), path)
            if header["format"] != _FORMAT:
                raise StorageError(f"{path} is of format {header['format']}", "give the same command again")
            values = dict(zip(header["measures"], arrays.pop("values"), strict=True))
            said = ("perturbation", "seed", "key", "content", "options", "reasons", "worst_texts")
            fields: dict[str, Any] = {**arrays, **{name: header[name] for name in said}}
            return cls(values=values, **fields)
