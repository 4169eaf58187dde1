"""Pictures and captions through an encoder, block after block, into files.

Everything a picture needs before the network is done ahead in threads, beside a graphics card while it
computes: the file is read, decoded, cropped, resized and turned into numbers. A block's place and content depend on
its number alone, so that it does not matter which process encodes it, or after what.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import numpy as np

from diptych.core.errors import CaptionError, ImageError, NumericalError
from diptych.data.collection import Collection
from diptych.data.loading import default_workers, read_ahead
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.row_blocks import RowBlocks


def encode_blocks(
    encoder: DualEncoder,
    collection: Collection,
    rows: RowBlocks,
    blocks: Sequence[int],
    *,
    tell: Callable[[int], None] = lambda count: None,
    should_stop: Callable[[], bool] = lambda: False,
    threads: int | None = None,
) -> bool:
    """Encode some blocks of a collection's pictures or captions and write them."""
    encoded = _pictures if rows.plan.kind == "image" else _captions
    with closing(encoded(encoder, collection, rows, blocks, threads)) as work:
        for block, found in work:
            rows.write(block, found)
            tell(len(found))
            if should_stop():
                return False
    return True


def _pictures(
    encoder: DualEncoder, collection: Collection, rows: RowBlocks, blocks: Sequence[int], threads: int | None
) -> Generator[tuple[int, np.ndarray], None, None]:
    def prepared(row: int) -> tuple[str, Any]:
        name = collection.image_ids[row]
        try:
            return name, encoder.prepared(collection.item(row), name)
        except ImageError as error:
            raise _naming(error, f"image {name}", [name]) from None

    threads = default_workers() if threads is None else threads
    # Prepared pictures are small, so that beside a graphics card the next batch is made while this one is
    # encoded. On a processor both would take turns on the same cores, which is slower than one after the
    # other; and pictures that are not prepared may be large.
    depth = 4 * threads + (rows.plan.block if encoder.prepares and _has_card() else 0)
    places = (row for block in blocks for row in rows.plan.rows_of(block))
    ahead = read_ahead(prepared, places, threads, depth)
    for block in blocks:
        names, items = zip(*islice(ahead, len(rows.plan.rows_of(block))), strict=True)
        try:
            found = encoder.encode_prepared(items, names)
        except (ImageError, NumericalError) as error:
            raise _naming(error, f"among images {names[0]} to {names[-1]}", names) from None
        yield block, found


def _captions(
    encoder: DualEncoder, collection: Collection, rows: RowBlocks, blocks: Sequence[int], threads: int | None
) -> Generator[tuple[int, np.ndarray], None, None]:
    for block in blocks:
        places = rows.plan.rows_of(block)
        texts = list(collection.captions[places.start : places.stop])
        try:
            found = encoder.encode_texts(texts)
        except (CaptionError, NumericalError) as error:
            first = collection.caption_ids[places.start]
            raise _naming(error, f"of the captions from {first} on", [first]) from None
        yield block, found


def _has_card() -> bool:
    torch = sys.modules.get("torch")  # where an encoder needs it, it has been imported
    return torch is not None and bool(torch.cuda.is_available())


def _naming(error: Any, what: str, names: Sequence[str]) -> Any:
    """The same error, with ``what`` before a message that has none of ``names`` in it."""
    if any(name in error.message for name in names):
        return error
    return type(error)(f"{what}: {error.message}", error.fix)
