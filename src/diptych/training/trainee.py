"""The trained module: towers, objective and decoder, under the names that stages refer to."""

import fnmatch
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

import torch
from timm.optim import AdamP
from torch import Tensor, nn

from diptych.core.errors import RecipeError
from diptych.encoders.dual_encoder import Towers
from diptych.objectives import Objective
from diptych.objectives.reconstruction import (
    InputTargetDecoder,
    LagrangeMultiplier,
    LatentTargetDecoder,
    cosine_reconstruction_loss,
)
from diptych.training.examples import Loaded
from diptych.training.recipe import Recipe
from diptych.training.sections import DEFAULT_TRAINED, Reconstruction, Stage

if TYPE_CHECKING:
    from diptych.encoders.dual_encoder import ImageSide, TextSide


class Reconstructor(nn.Module):
    """Decoder, its loss, and its weight next to the objective.

    Args:
        target_width: length of a latent target, where there are any.
        words: size of the vocabulary, where the caption tower takes words.
    """

    def __init__(self, options: Reconstruction, width: int, target_width: int = 0, words: int = 0) -> None:
        super().__init__()
        self.options = options
        self.decoder: LatentTargetDecoder | InputTargetDecoder
        if options.kind == "latent":
            self.decoder = LatentTargetDecoder(width, target_width, options.hidden)
        else:
            self.decoder = InputTargetDecoder(words, width, options.word_width)
        self.multiplier: LagrangeMultiplier | None = None
        if options.constraint is not None:
            self.multiplier = LagrangeMultiplier(**options.constraint.model_dump())

    def losses(self, rows: Tensor, batch: Loaded) -> Tensor:
        """Return (c,) reconstruction loss of each caption, from its (c, width) embedding."""
        if isinstance(self.decoder, InputTargetDecoder):
            compat = self.options.compat
            return self.decoder.loss(rows, batch.tokens, batch.lengths, compat, reduction="none")
        return cosine_reconstruction_loss(self.decoder(rows), batch.targets, reduction="none")

    @property
    def weight(self) -> float:
        """Return the weight of the reconstruction loss in the whole: β, or λ / η."""
        if self.multiplier is None:
            return self.options.beta
        return self.multiplier.value / self.multiplier.bound

    def total(self, contrastive: float, reconstruction: float) -> float:
        if self.multiplier is None:
            return contrastive + self.options.beta * reconstruction
        return contrastive + self.multiplier.value * (reconstruction / self.multiplier.bound - 1.0)

    def logged(self, reconstruction: float) -> dict[str, float]:
        """Return the values of a step's line in the metrics, of the weights that the step was made with."""
        logged = {"reconstruction": reconstruction}
        return logged if self.multiplier is None else {**logged, **self.multiplier.logged()}

    def after_step(self, reconstruction: float) -> None:
        if self.multiplier is not None:
            self.multiplier.ascend(reconstruction)


# How names of word embeddings end: the tower's, a decoder's, other libraries'.
_WORDS = ("embed.weight", "token_embedding.weight", "word_embeddings.weight")


class Trainee(nn.Module):
    """Everything that learns: parameters ``image.*``, ``text.*``, ``objective.*``, ``reconstruction.*``."""

    def __init__(
        self,
        model: Towers,
        objective: Objective,
        reconstruction: Reconstructor | None = None,
    ) -> None:
        super().__init__()
        self.image: ImageSide = model.image
        self.text: TextSide = model.text
        self.objective = objective
        self.reconstruction = reconstruction

    def forward(self, images: Tensor, tokens: Tensor, lengths: Tensor, cached: bool) -> tuple[Tensor, Tensor]:
        """Return unit rows of images (b, d) and captions (c, d)."""
        return (self.image.project(images) if cached else self.image(images)), self.text(tokens, lengths)

    @torch.no_grad()
    def learned(self, option: str) -> float | None:
        """Return the objective's temperature or bias, learned or fixed; None where it has none."""
        value = getattr(self.objective, option, None)
        return float(value.detach()) if isinstance(value, Tensor) else value

    def train(self, mode: bool = True) -> Self:
        """Set training mode for what is trained: a frozen batch norm keeps its statistics."""
        super().train(mode)
        for part in self.modules():
            if mode and isinstance(part, nn.modules.batchnorm._BatchNorm):
                own = list(part.parameters())
                if own and not any(parameter.requires_grad for parameter in own):
                    part.eval()
        return self

    def begin(self, stage: Stage) -> None:
        names = [name for name, _ in self.named_parameters()]
        for pattern in stage.train:
            # The default names parts that a model need not have; what a user wrote must fit something.
            if pattern not in DEFAULT_TRAINED and not fnmatch.filter(names, pattern):
                raise RecipeError(
                    f"stage trains {pattern!r}, which fits no parameter",
                    f"parameters begin with: {', '.join(sorted({name.split('.')[0] for name in names}))}",
                )
        for name, parameter in self.named_parameters():
            parameter.requires_grad = any(fnmatch.fnmatch(name, pattern) for pattern in stage.train)
        if not any(parameter.requires_grad for parameter in self.parameters()):
            raise RecipeError(f"stage trains {', '.join(stage.train)}: no parameter at all", "add a pattern")

    def trains_backbone(self, stage: Stage) -> bool:
        """Return whether the stage trains any of the backbone; freezes and unfreezes on the way."""
        self.begin(stage)
        return any(parameter.requires_grad for parameter in self.image.backbone.parameters())


_KINDS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adamp": AdamP,
}


def make_optimizer(trainee: Trainee, recipe: Recipe, stage: Stage) -> torch.optim.Optimizer:
    """Return the recipe's optimizer over what the stage trains, each part with its share of the learning rate."""
    options = recipe.optimizer
    trained = {name: value for name, value in trainee.named_parameters() if value.requires_grad}
    for pattern in stage.scales:
        if not fnmatch.filter(list(trained), pattern):
            raise RecipeError(
                f"stage scales the learning rate of {pattern!r}, which fits nothing it trains",
                "take the pattern out of scales, or add it to train",
            )
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in trained.items():
        scale = next(
            (share for pattern, share in stage.scales.items() if fnmatch.fnmatch(name, pattern)), 1.0
        )
        matrix = parameter.ndim >= 2 and not name.endswith(_WORDS)
        decay = options.weight_decay if matrix else 0.0
        groups.setdefault((scale, decay), []).append(parameter)
    return _KINDS[options.name](
        [
            {"params": parameters, "weight_decay": decay, "scale": scale, "lr": stage.learning_rate * scale}
            for (scale, decay), parameters in groups.items()
        ],
        lr=stage.learning_rate,
        betas=options.betas,
    )
