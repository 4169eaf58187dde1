"""A decoder beside the objective, as a second loss or as a constraint on it.

    dual loss    L_con + β L_rec                        (Bleeker et al. 2022, Eq. 7)
    constraint   L_con + λ (L_rec / η − 1), λ ascends   (Eq. 9)

The decoder is trained with the towers and plays no part in retrieval.
"""

from __future__ import annotations

from torch import Tensor, nn

from diptych.core.errors import RecipeError
from diptych.objectives.reconstruction import (
    InputTargetDecoder,
    LagrangeMultiplier,
    LatentTargetDecoder,
    cosine_reconstruction_loss,
)
from diptych.training.examples import Loaded
from diptych.training.sections import Reconstruction


class Reconstructor(nn.Module):
    """Decoder, its loss, and its weight beside the objective.

    Args:
        target_width: length of a latent target; None where there are none.
        words: size of the vocabulary; None where the caption tower takes no words.
    """

    def __init__(
        self, options: Reconstruction, width: int, target_width: int | None, words: int | None
    ) -> None:
        super().__init__()
        self.options = options
        if options.kind == "latent":
            if target_width is None:
                raise RecipeError("latent targets are wanted, but there are none", "pass the target width")
            self.decoder: LatentTargetDecoder | InputTargetDecoder = LatentTargetDecoder(
                width, target_width, options.hidden
            )
        else:
            if words is None:
                raise RecipeError(
                    "reconstruction.kind 'input' decodes words, and this caption tower takes none",
                    "use kind = 'latent', or model.text.kind = 'gru'",
                )
            self.decoder = InputTargetDecoder(words, width, options.word_width)
        self.multiplier: LagrangeMultiplier | None = None
        if options.constraint is not None:
            self.multiplier = LagrangeMultiplier(**options.constraint.model_dump())

    def losses(self, rows: Tensor, batch: Loaded) -> Tensor:
        """(c,) reconstruction loss of each caption, from its (c, width) embedding."""
        if isinstance(self.decoder, InputTargetDecoder):
            compat = self.options.compat
            return self.decoder.loss(rows, batch.tokens, batch.lengths, compat, reduction="none")
        return cosine_reconstruction_loss(self.decoder(rows), batch.targets, reduction="none")

    @property
    def weight(self) -> float:
        """How much a unit of reconstruction loss adds to the whole: β, or λ / η."""
        if self.multiplier is None:
            return self.options.beta
        return self.multiplier.value / self.multiplier.bound

    def total(self, contrastive: float, reconstruction: float) -> float:
        """The whole loss, of two numbers."""
        if self.multiplier is None:
            return contrastive + self.options.beta * reconstruction
        return contrastive + self.multiplier.value * (reconstruction / self.multiplier.bound - 1.0)

    def logged(self, reconstruction: float) -> dict[str, float]:
        """What a step's line in the metrics says, of the weights that the step was made with."""
        logged = {"reconstruction": reconstruction}
        return logged if self.multiplier is None else {**logged, **self.multiplier.logged()}

    def after_step(self, reconstruction: float) -> None:
        """Let the multiplier climb by this step's reconstruction loss."""
        if self.multiplier is not None:
            self.multiplier.ascend(reconstruction)
