"""Condition: what one perturbation with one seed did to every query, as it lies on disk.

::

    FOLDER/NAME-SEED.npz         values per query, which were changed, ranks, preferences, the worst hit
    FOLDER/NAME-SEED.jsonl.gz    id and text of every changed caption

The first is written last: where it is, the condition is finished. Both hold the same bytes whenever they are
made of the same.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import StorageError
from diptych.core.files import atomic_path, write_bytes
from diptych.core.fingerprint import fingerprint_lists
from diptych.evaluation.stress.queries import Queries
from diptych.metrics import Direction

_FORMAT = 1
_CLEAN_FILE = "clean.npz"
_FIX = "give the command of diptych stress once more: what is finished is kept"
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
        _save(target, header, arrays)

    @classmethod
    def open(cls, folder: Path, perturbation: str, seed: int) -> Condition:
        """Read what :meth:`save` wrote."""
        said = ("perturbation", "seed", "key", "content", "options", "reasons", "worst_texts")
        with _opened(cls.path(folder, perturbation, seed)) as (header, stored):
            values = dict(zip(header["measures"], stored["values"], strict=True))
            arrays: dict[str, Any] = {name: stored[name] for name in _ARRAYS}
            return cls(values=values, **arrays, **{name: header[name] for name in said})


@dataclass(frozen=True, eq=False)
class Clean:
    """Values of the clean queries of both directions.

    Attributes:
        key: of the stress result that they belong to.
        values: per direction and measure, (n,) float64.
        cluster: per direction, (n,) the picture that each query belongs to.
        queries: per direction, a fingerprint of the ids of queries and gallery.
    """

    key: str
    values: Mapping[str, Mapping[str, np.ndarray]]
    cluster: Mapping[str, np.ndarray]
    queries: Mapping[str, str]

    @classmethod
    def of(
        cls,
        key: str,
        sides: Mapping[Direction, Queries],
        values: Mapping[Direction, Mapping[str, np.ndarray]],
    ) -> Clean:
        """Those of a run."""
        return cls(
            key,
            {str(way): dict(given) for way, given in values.items()},
            {str(way): np.asarray(side.cluster, dtype=np.int64) for way, side in sides.items()},
            {str(way): fingerprint_lists(side.ids, side.gallery_ids) for way, side in sides.items()},
        )

    def save(self, folder: Path) -> None:
        """Write it, all or nothing; the same content gives the same bytes."""
        header = {
            "key": self.key,
            "queries": dict(self.queries),
            "measures": {way: list(given) for way, given in self.values.items()},
        }
        arrays: dict[str, np.ndarray] = {}
        for way, given in self.values.items():
            arrays[f"{way}.values"] = np.stack(list(given.values()))
            arrays[f"{way}.cluster"] = self.cluster[way]
        _save(folder / _CLEAN_FILE, header, arrays)

    @classmethod
    def there(cls, folder: Path, key: str) -> bool:
        """Whether :meth:`open` would give those of the result ``key``."""
        try:
            cls.open(folder, key)
        except StorageError:
            return False
        return True

    @classmethod
    def open(cls, folder: Path, key: str) -> Clean:
        """Read what :meth:`save` wrote."""
        path = folder / _CLEAN_FILE
        with _opened(path) as (header, stored):
            if header["key"] != key:
                raise StorageError(f"{path} belongs to result {header['key']}, not to {key}", _FIX)
            measures = header["measures"]
            values = {
                way: dict(zip(names, stored[f"{way}.values"], strict=True)) for way, names in measures.items()
            }
            return cls(key, values, {way: stored[f"{way}.cluster"] for way in measures}, header["queries"])


def _save(path: Path, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays and what they are of; the same content gives the same bytes."""
    packed = np.frombuffer(json.dumps({"format": _FORMAT, **header}).encode(), dtype=np.uint8)
    with atomic_path(path) as temporary, open(temporary, "wb") as handle:
        np.savez_compressed(handle, allow_pickle=False, header=packed, **arrays)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[dict[str, Any], Mapping[str, np.ndarray]]]:
    """Give what :func:`_save` wrote; whatever is wrong with it inside the block is an error of the file."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            header = json.loads(stored["header"].tobytes())
            if header["format"] != _FORMAT:
                raise StorageError(f"{path} is of format {header['format']}, not {_FORMAT}", _FIX)
            yield header, stored
    except FileNotFoundError:
        raise StorageError(f"{path} does not exist", _FIX) from None
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise StorageError(f"{path} is corrupt: {error}", _FIX) from None
