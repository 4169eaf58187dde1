"""What is trained: the model and whatever the objective learns, under the names stages refer to."""

from __future__ import annotations

import fnmatch

import torch
from torch import Tensor, nn

from diptych.core.errors import RecipeError
from diptych.encoders.two_tower import TwoTowerModel
from diptych.objectives import OBJECTIVES
from diptych.training.recipe import Recipe, Stage

__all__ = ["Trainee", "make_optimizer"]


class Trainee(nn.Module):
    """Towers and objective as one module: parameters ``image.*``, ``text.*``, ``objective.*``."""

    def __init__(self, model: TwoTowerModel, recipe: Recipe) -> None:
        super().__init__()
        self.image = model.image
        self.text = model.text
        options = {key: value for key, value in recipe.objective.items() if key != "name"}
        self.objective = OBJECTIVES.get(recipe.objective["name"])(**options)

    def forward(self, images: Tensor, tokens: Tensor, lengths: Tensor, cached: bool) -> tuple[Tensor, Tensor]:
        """Unit rows of images (b, d) and captions (c, d)."""
        return (self.image.project(images) if cached else self.image(images)), self.text(tokens, lengths)

    def begin(self, stage: Stage) -> None:
        """Freeze and unfreeze as the stage says.

        Raises:
            RecipeError: a pattern that fits no parameter.
        """
        names = [name for name, _ in self.named_parameters()]
        for pattern in stage.train:
            # The objective may have nothing to learn; every other pattern must mean something.
            if not pattern.startswith("objective.") and not fnmatch.filter(names, pattern):
                raise RecipeError(
                    f"stage trains {pattern!r}, which fits no parameter",
                    f"parameters begin with: {', '.join(sorted({name.split('.')[0] for name in names}))}",
                )
        for name, parameter in self.named_parameters():
            parameter.requires_grad = any(fnmatch.fnmatch(name, pattern) for pattern in stage.train)

    def trains_backbone(self, stage: Stage) -> bool:
        """Whether the stage trains any of the backbone; freezes and unfreezes on the way."""
        self.begin(stage)
        return any(parameter.requires_grad for parameter in self.image.backbone.parameters())


def make_optimizer(trainee: Trainee, recipe: Recipe, stage: Stage) -> torch.optim.Optimizer:
    """Adam or AdamW over what the stage trains, the backbone with its own share of the learning rate."""
    options = recipe.optimizer
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in trainee.named_parameters():
        if not parameter.requires_grad:
            continue
        scale = stage.backbone_scale if name.startswith("image.backbone.") else 1.0
        matrix = parameter.ndim >= 2 and name != "text.embed.weight"
        decay = options.weight_decay if matrix and options.name == "adamw" else 0.0
        groups.setdefault((scale, decay), []).append(parameter)
    kind = torch.optim.AdamW if options.name == "adamw" else torch.optim.Adam
    return kind(
        [
            {"params": parameters, "weight_decay": decay, "scale": scale, "lr": stage.learning_rate * scale}
            for (scale, decay), parameters in groups.items()
        ],
        lr=stage.learning_rate,
        betas=options.betas,
    )
