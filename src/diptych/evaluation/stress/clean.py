"""Clean: the values of clean queries of a stress run, as they lie on disk beside its conditions.

``FOLDER/clean.npz`` holds them with the picture that each query belongs to: what is needed to hold one run's
drops against another's, query by query, without the encoder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import StorageError
from diptych.core.files import atomic_path
from diptych.core.fingerprint import fingerprint_lists
from diptych.core.reading import file_errors, parse_json, read_arrays
from diptych.evaluation.stress.asking import Asking
from diptych.metrics import Direction

_FORMAT = 1
_FILE = "clean.npz"
_FIX = "give the command of diptych stress once more: what is finished is kept"


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
        sides: Mapping[Direction, Asking],
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
            "format": _FORMAT,
            "key": self.key,
            "queries": dict(self.queries),
            "measures": {way: list(given) for way, given in self.values.items()},
        }
        arrays: dict[str, Any] = {"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)}
        for way, given in self.values.items():
            arrays[f"{way}.values"] = np.stack(list(given.values()))
            arrays[f"{way}.cluster"] = self.cluster[way]
        with atomic_path(folder / _FILE) as temporary, open(temporary, "wb") as handle:
            np.savez_compressed(handle, **arrays)

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
        path = folder / _FILE
        with file_errors(path, fix=_FIX):
            stored = read_arrays(path, fix=_FIX)
            header = parse_json(stored["header"].tobytes(), path)
            if header["format"] != _FORMAT:
                raise StorageError(f"{path} is of format {header['format']}, not {_FORMAT}", _FIX)
            if header["key"] != key:
                raise StorageError(f"{path} belongs to result {header['key']}, not to {key}", _FIX)
            measures = header["measures"]
            return cls(
                key,
                {
                    way: dict(zip(names, stored[f"{way}.values"], strict=True))
                    for way, names in measures.items()
                },
                {way: stored[f"{way}.cluster"] for way in measures},
                header["queries"],
            )
