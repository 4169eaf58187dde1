"""Reconstruction: decoders that have to give a caption back, and the multiplier of the constraint."""

from diptych.objectives.reconstruction.input import InputTargetDecoder, token_reconstruction_loss
from diptych.objectives.reconstruction.lagrange import LagrangeMultiplier
from diptych.objectives.reconstruction.latent import LatentTargetDecoder, cosine_reconstruction_loss

__all__ = [
    "InputTargetDecoder",
    "LagrangeMultiplier",
    "LatentTargetDecoder",
    "cosine_reconstruction_loss",
    "token_reconstruction_loss",
]
