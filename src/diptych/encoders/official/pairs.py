"""What a matching head reads of pictures and texts, as arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from diptych.core.errors import MismatchError
from diptych.encoders.matching import PairInputs, finite_scores

__all__ = ["checked_scores", "distinct_pictures", "padded_states", "pair_tensors"]

_NAMES = {"images": {"states"}, "texts": {"states", "mask"}}


def distinct_pictures(states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pictures that ``states`` repeat one after the other, once each, and which of them each item is.

    Pairs come picture by picture; what a picture costs the head is paid once for all its texts.

    Args:
        states: (n, tokens, width).

    Returns:
        (m, tokens, width) and (n,) int64 rows of it.
    """
    if len(states) > 1 and states.strides[0] == 0:  # numpy.broadcast_to
        return states[:1], np.zeros(len(states), dtype=np.int64)
    new = np.ones(len(states), dtype=bool)
    for row in 1 + np.flatnonzero((states[1:, 0] == states[:-1, 0]).all(axis=1)):
        new[row] = not np.array_equal(states[row], states[row - 1])
    return (states if new.all() else states[new]), np.cumsum(new) - 1


def pair_tensors(
    images: PairInputs,
    rows: np.ndarray,
    texts: PairInputs,
    widths: Mapping[str, int],
    device: torch.device,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Image states, which of them each pair has, text states and text mask, on ``device``.

    Args:
        images: m pictures.
        rows: (n,) which of them each pair has.
        texts: n texts.
        widths: of a state of ``images`` and of ``texts``.
        device: where to.

    Raises:
        MismatchError: other arrays than these encoders make, or sides of different length.
    """
    for side, inputs in (("images", images), ("texts", texts)):
        if inputs.keys() != _NAMES[side]:
            raise MismatchError(
                f"inputs of {side} hold {', '.join(sorted(inputs)) or 'nothing'}, not "
                f"{', '.join(sorted(_NAMES[side]))}",
                "they are another encoder's, or the two sides are swapped",
            )
        shape = inputs["states"].shape
        if len(shape) != 3 or shape[2] != widths[side]:
            raise MismatchError(
                f"states of {side} are of shape {shape}, not (n, states, {widths[side]})",
                "they are another encoder's",
            )
    counts = [len(rows), len(texts["states"]), len(texts["mask"])]
    if len(set(counts)) > 1:
        raise MismatchError(
            f"{counts[0]} images, {counts[1]} texts and {counts[2]} masks are no pairs",
            "item i of the images is scored with item i of the texts: repeat the one that is alone",
        )
    outside = np.flatnonzero((rows < 0) | (rows >= len(images["states"])))
    if len(outside):
        raise MismatchError(
            f"pair {outside[0]} has picture {rows[outside[0]]} of {len(images['states'])}",
            "rows count the pictures from 0",
        )
    return (
        _tensor(images["states"]).to(device),
        _tensor(np.asarray(rows, dtype=np.int64)).to(device),
        _tensor(texts["states"]).to(device),
        _tensor(texts["mask"]).to(device, torch.bool),
    )


def _tensor(array: np.ndarray) -> Tensor:
    # A tensor cannot say that its memory may not be written to.
    usable = array.flags.writeable and all(stride >= 0 for stride in array.strides)
    return torch.from_numpy(array if usable else array.copy())


def padded_states(states: Tensor, mask: Tensor, length: int) -> PairInputs:
    """States of texts filled up to ``length`` with zeros, which nothing reads, and their mask.

    Args:
        states: (n, t, width).
        mask: (n, t).
        length: at least t.
    """
    count, tokens, width = states.shape
    filled = np.zeros((count, length, width), dtype=np.float32)
    inside = np.zeros((count, length), dtype=bool)
    inside[:, :tokens] = mask.bool().cpu().numpy()
    filled[:, :tokens] = states.float().cpu().numpy()
    filled[~inside] = 0.0
    return {"states": filled, "mask": inside}


def checked_scores(logits: np.ndarray) -> np.ndarray:
    """(n,) float32 scores of "they belong together" out of (n, 2) logits.

    Raises:
        NumericalError: one is NaN or infinite; the message names its position.
    """
    return finite_scores(np.ascontiguousarray(logits[:, 1]))
