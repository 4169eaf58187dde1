"""Latent target decoding: a caption's row has to give back what another model says the caption means.

A decoder of three layers maps the row z to a reconstruction ỹ of the caption's latent target y; the
loss is one minus their cosine (Eq. 5 and 6)::

    ỹ = W₃ σ(W₂ σ(W₁ z + b₁) + b₂) + b₃        L_rec = 1 − cos(ỹ, y)

The equation has no biases; the published decoder has them, and so has this one. The decoder is
thrown away after training.

Source: Bleeker, Yates, de Rijke, Keep the Caption Information, 2022.
"""

from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from diptych.core.errors import UsageError

_SHORTEST = 1e-12


def cosine_reconstruction_loss(
    reconstructions: Tensor, targets: Tensor, reduction: Literal["mean", "none"] = "mean"
) -> Tensor:
    """1 − cos of each reconstruction and its target (Eq. 6).

    A row shorter than 1e-12 has no direction and counts as orthogonal to everything: its loss is 1.
    A zero target (a caption that its model knows no word of) therefore adds a constant 1 to the
    mean and has no gradient; a zero reconstruction is drawn towards its target with a gradient of
    length 1.
    """
    if reduction not in ("mean", "none"):
        raise UsageError(f"reduction {reduction!r}", "one of 'mean', 'none'")
    if reconstructions.dim() != 2 or targets.dim() != 2 or len(reconstructions) != len(targets):
        raise UsageError(
            f"reconstructions have shape {tuple(reconstructions.shape)}, targets {tuple(targets.shape)}",
            "both are (n, width), one target per caption",
        )
    if reconstructions.shape[1] != targets.shape[1]:
        raise UsageError(
            f"reconstructions are {reconstructions.shape[1]} wide, targets {targets.shape[1]}",
            "build the decoder with the targets' width",
        )
    if len(targets) == 0:
        raise UsageError("no rows to compare", "give a batch of at least one caption")
    reconstructions, targets = _exact(reconstructions), _exact(targets)
    products = (reconstructions * targets).sum(dim=1)
    losses = 1 - products / (_lengths(reconstructions) * _lengths(targets))
    return losses.mean() if reduction == "mean" else losses


def _exact(rows: Tensor) -> Tensor:
    return rows.to(torch.promote_types(rows.dtype, torch.float32))


def _lengths(rows: Tensor) -> Tensor:
    """(n,) Euclidean lengths, 1 in place of 0."""
    lengths = torch.linalg.vector_norm(rows, dim=1)
    return torch.where(lengths < _SHORTEST, torch.ones_like(lengths), lengths)


class LatentTargetDecoder(nn.Module):
    """Three linear layers with biases and ReLU between them (Eq. 5).

    The published widths are 1024 → 512 → 512 → 384. Weights start Xavier-uniform, biases at zero.
    """

    def __init__(self, width: int, target_width: int, hidden: tuple[int, int] = (512, 512)) -> None:
        super().__init__()
        widths = (width, *hidden, target_width)
        if len(hidden) != 2 or min(widths) < 1:
            raise UsageError(
                f"a latent decoder of widths {' → '.join(map(str, widths))}",
                "give two hidden widths, all widths at least 1",
            )
        first, second, third = (nn.Linear(*pair) for pair in pairwise(widths))
        self.decoder: nn.Sequential = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), third)
        for layer in self.decoder:
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(self, captions: Tensor) -> Tensor:
        """(n, width) caption rows → (n, target_width) reconstructions, not normalised."""
        reconstructions: Tensor = self.decoder(captions)
        return reconstructions
