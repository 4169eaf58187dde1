"""Re-ranking of what is prepared already: rows and head inputs in memory, without a collection or a folder.

What :func:`diptych.encoders.rerank.rerank` does for a collection, block by block and with a memory of what is
done, is done here for arrays: for tests against published code, and for inputs that are no files.
"""

from __future__ import annotations

import numpy as np

from diptych.core.errors import MismatchError, UsageError
from diptych.encoders.matching import MatchingEncoder, PairInputs
from diptych.encoders.rerank_pairs import PairPlan, match_pairs
from diptych.metrics.candidates import Candidates, Reranked
from diptych.metrics.topk import top_k


def rerank_prepared(
    encoder: MatchingEncoder,
    image_rows: np.ndarray,
    text_rows: np.ndarray,
    images: PairInputs,
    texts: PairInputs,
    k: int,
    *,
    batch: int = 64,
) -> Reranked:
    """Score the ``k`` best texts of every image and the ``k`` best images of every text with the head.

    Args:
        image_rows: (n, d) float32 unit rows, which choose.
        text_rows: (m, d).
        k: candidates of each query; a gallery that is smaller is taken whole, so that ``max(n, m)`` scores
            every pair.
    """
    if batch < 1:
        raise UsageError(f"batch is {batch}, it must be at least 1")
    for what, rows, inputs in (("images", image_rows, images), ("texts", text_rows, texts)):
        counts = sorted({len(values) for values in inputs.values()})
        if counts != [len(rows)]:
            raise MismatchError(
                f"{len(rows):,} rows of {what}, and inputs of {', '.join(map(str, counts)) or 'nothing'}",
                "the head needs the inputs of the same items, in the same order",
            )
    chosen = {"i2t": top_k(image_rows, text_rows, k), "t2i": top_k(text_rows, image_rows, k)}
    plan = PairPlan(chosen["i2t"][0], chosen["t2i"][0], pictures=len(image_rows))
    block = plan.block(0)
    scores = np.concatenate(
        [
            match_pairs(encoder, images, texts, block, slice(begin, begin + batch))
            for begin in range(0, len(block), batch)
        ]
    )
    matching = {"i2t": scores[block.i2t], "t2i": np.empty(chosen["t2i"][0].shape, dtype=np.float32)}
    matching["t2i"].reshape(-1)[block.t2i_cells] = scores[block.t2i]
    i2t, t2i = (
        Candidates(items, contrastive.astype(np.float32), matching[name])
        for name, (items, contrastive) in chosen.items()
    )
    return Reranked(i2t, t2i, encoder.adds_contrastive)
