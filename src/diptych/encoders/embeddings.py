"""Embeddings: rows on disk, memory-mapped, with their ids and where they came from.

::

    FOLDER/rows.npy              (n, d) float32
    FOLDER/ids.utf8, ids.ends    one id per row; see diptych.data.string_table
    FOLDER/embeddings.json       the rest; format 1 had the ids in ids.json
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import DataError, NumericalError, StorageError
from diptych.core.files import atomic_folder, create_array, recover_folder, write_json
from diptych.core.reading import map_array, opening, read_json
from diptych.data.string_table import StringTable, write_strings

_FORMAT = 2
_OLD_FORMAT = 1
_CHECK_ROWS = 65_536
_HELD_IDS = 65_536
"""So many ids are read into a list when embeddings are opened; of more each is read when asked for."""


@dataclass(frozen=True, eq=False)
class Embeddings:
    """(n, d) float32 rows with one id each.

    Attributes:
        ids: one unique id per row.
        rows: (n, d) float32, usually unit length, usually memory-mapped.
        encoder: fingerprint of the weights and preprocessing that made them.
        data: fingerprint of what was encoded.
        kind: ``"image"`` or ``"text"``.
        about: whatever else should travel with them (dataset, split, counts).
        similarity: how a row of pictures and a row of texts are compared: ``"cosine"`` (the product of
            unit rows) or ``"order"``.
    """

    ids: Sequence[str]
    rows: np.ndarray
    encoder: str
    data: str
    kind: str
    about: dict[str, Any]
    similarity: str = "cosine"

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or len(self.rows) != len(self.ids):
            raise DataError(f"{len(self.ids)} ids for rows of shape {self.rows.shape}")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def width(self) -> int:
        """d, the length of one row."""
        return int(self.rows.shape[1])

    def check_finite(self) -> None:
        """Read every row once, in blocks.

        Raises:
            NumericalError: a row holds NaN or infinity; the message names its id.
        """
        for start in range(0, len(self), _CHECK_ROWS):
            bad = np.flatnonzero(~np.isfinite(self.rows[start : start + _CHECK_ROWS]).all(axis=1))
            if len(bad):
                row = start + int(bad[0])
                raise NumericalError(
                    f"{self.kind} embedding {self.ids[row]!r} (row {row}) is not finite",
                    "the encoder diverged: train it again with a lower learning rate",
                )

    def save(self, folder: Path | str) -> Path:
        """Write rows, ids and ``embeddings.json``; all or nothing."""
        folder = Path(folder)
        with atomic_folder(folder, "embeddings.json") as temporary:
            np.save(temporary / "rows.npy", np.ascontiguousarray(self.rows, dtype=np.float32))
            header = embeddings_header(self.kind, self.encoder, self.data, self.about, self.similarity)
            describe_rows(temporary, self.ids, header)
        return folder

    @classmethod
    @opening("embed again")
    def open(cls, folder: Path | str) -> Embeddings:
        """Memory-map what :meth:`save` wrote.

        Raises:
            StorageError: the folder is not one, or of another version.
        """
        folder = Path(folder)
        recover_folder(folder)
        header = read_json(folder / "embeddings.json")
        if header.get("format") not in (_OLD_FORMAT, _FORMAT):
            raise StorageError(
                f"{folder} holds embeddings of format {header.get('format')}, "
                f"this version reads {_OLD_FORMAT} and {_FORMAT}",
                "embed again with this version",
            )
        rows = map_array(folder / "rows.npy", fix="embed again")
        return cls(
            ids=_read_ids(folder, header["format"]),
            rows=rows,
            encoder=header["encoder"],
            data=header["data"],
            kind=header["kind"],
            about=header["about"],
            similarity=header.get("similarity", "cosine"),  # folders of before there was another
        )

    @classmethod
    def stream(
        cls,
        folder: Path | str,
        ids: Sequence[str],
        width: int,
        blocks: Iterable[np.ndarray],
        *,
        encoder: str,
        data: str,
        kind: str,
        about: dict[str, Any],
        similarity: str = "cosine",
    ) -> Embeddings:
        """Write ``blocks`` of rows as they come, holding one at a time, and open the result.

        Raises:
            DataError: the blocks do not add up to one row per id.
            StorageError: the write failed; an older version in ``folder`` is untouched.
        """
        folder = Path(folder)
        with atomic_folder(folder, "embeddings.json") as temporary:
            rows = create_array(temporary / "rows.npy", "float32", (len(ids), width))
            done = 0
            for block in blocks:
                if done + len(block) > len(ids):
                    raise DataError(f"more than {len(ids)} rows came for {len(ids)} ids")
                rows[done : done + len(block)] = block
                done += len(block)
            if done != len(ids):
                raise DataError(f"{len(ids)} rows expected, got {done}")
            rows.flush()  # type: ignore[attr-defined]
            del rows
            describe_rows(temporary, ids, embeddings_header(kind, encoder, data, about, similarity))
        return cls.open(folder)


def embeddings_header(
    kind: str, encoder: str, data: str, about: dict[str, Any], similarity: str
) -> dict[str, Any]:
    """What ``embeddings.json`` holds."""
    header = {"format": _FORMAT, "kind": kind, "encoder": encoder, "data": data, "about": about}
    return {**header, "similarity": similarity}


def describe_rows(folder: Path, ids: Iterable[str], header: dict[str, Any]) -> None:
    """Write beside ``rows.npy`` what makes it embeddings; ids are taken one at a time."""
    write_strings(folder / "ids", ids)
    write_json(folder / "embeddings.json", header)


def _read_ids(folder: Path, version: int) -> Sequence[str]:
    if version == _OLD_FORMAT:
        ids: list[str] = read_json(folder / "ids.json")
        return ids
    try:
        table = StringTable(folder / "ids")
        return table if len(table) > _HELD_IDS else list(table)
    except StorageError as error:
        raise StorageError(error.message, "embed again") from None
