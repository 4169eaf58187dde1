"""Latent targets: what a caption means, as a vector that another model made."""

from diptych.encoders.targets.contract import (
    TargetModel,
    TargetOptions,
    make_target_model,
    open_target_model,
    targets_of,
)

__all__ = ["TargetModel", "TargetOptions", "make_target_model", "open_target_model", "targets_of"]
