"""The arrays of saved postings: their types, and whether a search of them can be trusted to stay inside them.

Kernels check no bounds. So what is read is checked number by number; of what is only mapped any content will do, for
codes are added up and numbers of documents cut to the span.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from diptych.core.errors import StorageError
from diptych.index.arrays import load_array

__all__ = ["MAPPED", "TYPES", "read_arrays"]

MAPPED = ("hubs", "documents", "codes")  # the others are small, and read

TYPES: dict[str, type[np.generic]] = {
    "hubs": np.uint8,
    "starts": np.int64,
    "offsets": np.int32,
    "documents": np.uint16,
    "codes": np.uint8,
    "place_of": np.int32,
    "steps": np.float32,
    "span": np.int64,
}
"""The arrays of :class:`diptych.index.postings.Postings`."""


def read_arrays(folder: Path, count: int, width: int) -> dict[str, np.ndarray]:
    """The arrays of ``count`` documents over ``width`` terms.

    Raises:
        StorageError: a file cannot be read, or they do not fit together.
    """
    shapes: dict[str, tuple[int | None, ...]] = dict.fromkeys(TYPES, (None,))
    shapes |= {"hubs": (None, None, None), "offsets": (None, None)}
    shapes |= {"place_of": (width,), "steps": (width,), "span": (1,)}
    arrays = {
        name: np.asarray(
            load_array(folder / f"postings.{name}.npy", shapes[name], kind, mapped=name in MAPPED)
        )
        for name, kind in TYPES.items()
    }
    if not (_blocks_fit(count, arrays) and _lists_fit(count, arrays) and _places_fit(arrays)):
        raise StorageError(
            f"the postings in {folder} are not those of {count:,} documents", "build the index again"
        )
    return arrays


def _blocks_fit(count: int, arrays: dict[str, np.ndarray]) -> bool:
    blocks, _, block = arrays["hubs"].shape
    span = int(arrays["span"][0])
    whole = 0 < block <= span <= 65_536 and block % 256 == 0 == span % block and span & (span - 1) == 0
    return whole and blocks == -(-count // block)


def _lists_fit(count: int, arrays: dict[str, np.ndarray]) -> bool:
    starts, offsets, postings = arrays["starts"], arrays["offsets"], len(arrays["documents"])
    spans = -(-count // int(arrays["span"][0]))
    if not (
        len(starts) - 1 == len(offsets) == spans and offsets.shape[1] and postings == len(arrays["codes"])
    ):
        return False
    begin = starts[0] == 0 and not offsets[:, 0].any()
    ascending = np.array_equal(np.diff(starts), offsets[:, -1]) and (offsets[:, 1:] >= offsets[:, :-1]).all()
    return bool(begin and ascending and starts[-1] == postings)


def _places_fit(arrays: dict[str, np.ndarray]) -> bool:
    places, steps = arrays["place_of"], arrays["steps"]
    rows, lists = arrays["hubs"].shape[1], arrays["offsets"].shape[1] - 1
    return bool(
        -2 - lists < places.min(initial=-1)
        and places.max(initial=-1) < rows
        and (np.isfinite(steps) & (steps > 0)).all()
    )
