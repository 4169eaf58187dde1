"""Position tables for pictures of another size than a model was trained with, as ALBEF and X-VLM do it.

Both forms are those of the published code: another way of interpolating gives other numbers.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.interpolate import RectBivariateSpline
from torch import Tensor
from torch.nn.functional import interpolate

from diptych.core.errors import StorageError


def position_table(table: Tensor, side: int) -> Tensor:
    """ViT's position rows for a grid of ``side`` × ``side`` patches.

    The first row, of the class token, stays; the others are resized as a picture, bicubic (ALBEF's
    ``interpolate_pos_embed``).

    Args:
        table: (1, 1 + n · n, width).

    Returns:
        (1, 1 + side · side, width); the table itself when the size is its own.
    """
    old = _square(table.shape[1] - 1, "position table", table)
    if old == side:
        return table
    grid = table[:, 1:].reshape(1, old, old, -1).permute(0, 3, 1, 2)
    grid = interpolate(grid.float(), size=(side, side), mode="bicubic", align_corners=False)
    return torch.cat([table[:, :1].float(), grid.permute(0, 2, 3, 1).flatten(1, 2)], dim=1)


def relative_bias_table(table: Tensor, window: int) -> Tensor:
    """Swin's relative position biases for windows of ``window`` × ``window`` patches.

    The old biases are put at distances that grow geometrically, so that the nearest stay where they are
    and the outermost fall on the new edge; a cubic spline through them is read at whole distances (the
    form that X-VLM takes from BEiT). A table of fewer than four rows has a spline of lower order.
    """
    old = _square(len(table), "table of relative position biases", table)
    new = 2 * window - 1
    if old == new:
        return table
    if old < 3:
        raise StorageError(
            f"a table of relative position biases of {len(table)} row holds no distances to interpolate",
            f"load it at the size of its own, instead of windows of {window}",
        )
    at, wanted = _distances(old // 2, new // 2), np.arange(-(new // 2), new // 2 + 1, dtype=np.float64)
    order = min(3, old - 1)
    columns = []
    for head in table.float().T.numpy():
        spline = RectBivariateSpline(at, at, head.reshape(old, old), kx=order, ky=order)
        columns.append(spline(wanted, wanted).reshape(-1))
    return torch.from_numpy(np.stack(columns, axis=1).astype(np.float32))


def _distances(old: int, new: int) -> np.ndarray:
    """(2 · old + 1,) places of the old biases: 0, ±1, ±(1 + q), ±(1 + q + q²) …, the last near ``new``."""
    low, high = 1.01, 1.5
    while high - low > 1e-6:
        ratio = (low + high) / 2.0
        reach = (1.0 - ratio**old) / (1.0 - ratio)
        low, high = (low, ratio) if reach > new else (ratio, high)
    steps = np.cumsum([ratio**power for power in range(old)])
    return np.concatenate([-steps[::-1], [0.0], steps])


def _square(count: int, what: str, table: Tensor) -> int:
    side = math.isqrt(max(count, 0))
    if side * side != count or not side:
        raise StorageError(
            f"a {what} of shape {tuple(table.shape)} is of no square picture",
            "the checkpoint is damaged or of another model",
        )
    return side
