"""Maps by descent: InfoNCE of the pairs' rows, from the identity, with a penalty on leaving it.

    L(A_x, A_y) = InfoNCE(cos(x A_x, y A_y) / τ) + λ (‖A_x − I‖² + ‖A_y − I‖²)

All pairs are one batch and the descent is deterministic (L-BFGS), so there is neither a learning rate nor
a seed. In the space that the rows span the problem is the same and small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from diptych.encoders.adapted import LinearMap, LinearMaps
from diptych.objectives.infonce import infonce
from diptych.training.adaptation.span import Span

# What λ is chosen from, the strongest pull first.
STRENGTHS = (10.0, 1.0, 0.1, 0.01, 0.001)

# λ of few pairs that the encoder confuses all.
USUAL_STRENGTH = 0.1

_TEMPERATURE = 0.1
_STEPS = 60


@dataclass(frozen=True, eq=False)
class ContrastivePairs:
    """Rows of some pairs, in the space they span.

    Attributes:
        span: of the rows.
        images, texts: (n, q) and (m, q) float64.
        positives: (n, m) boolean.
    """

    span: Span
    images: Tensor
    texts: Tensor
    positives: Tensor

    @classmethod
    def of(cls, images: np.ndarray, texts: np.ndarray, positives: np.ndarray) -> ContrastivePairs:
        span = Span.of(images, texts)
        rows = [torch.from_numpy(span.coordinates(side)) for side in (images, texts)]
        return cls(span, rows[0], rows[1], torch.from_numpy(positives))

    def maps(self, strength: float) -> LinearMaps:
        width = self.images.shape[1]
        # What is learned is the difference from the identity.
        changes = [torch.zeros(width, width, dtype=torch.float64, requires_grad=True) for _ in range(2)]
        optimizer = torch.optim.LBFGS(changes, max_iter=_STEPS, line_search_fn="strong_wolfe")

        def closure() -> Tensor:
            optimizer.zero_grad()
            sides = zip((self.images, self.texts), changes, strict=True)
            images, texts = (nn.functional.normalize(rows + rows @ change, dim=1) for rows, change in sides)
            loss = infonce(images @ texts.T, self.positives, _TEMPERATURE)
            loss = loss + strength * sum(change.square().sum() for change in changes)
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        optimizer.step(closure)  # type: ignore[no-untyped-call]
        found = [change.detach().numpy() + np.eye(width) for change in changes]
        mean = np.zeros(len(self.span.basis))
        image, text = (LinearMap.of(self.span.whole(matrix, 1.0), mean) for matrix in found)
        return LinearMaps(image, text)
