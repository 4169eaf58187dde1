"""A classifier of pictures from timm, whole: its network, its last layer, and what it sees.

Weights are a file, or those that timm fetches; a tensor too many or too few is an error, never a random
layer.
"""

from __future__ import annotations

import math
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field

from diptych.core.errors import MismatchError, UnknownNameError, UsageError
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.data.overlay import split_overlay
from diptych.encoders.hub import LOADING_ERRORS, loading_failure
from diptych.encoders.inputs import as_picture
from diptych.encoders.preprocessing import Preprocessing
from diptych.encoders.pretrained import pick_device
from diptych.encoders.tensors import load_tensors


class ClassifierConfig(BaseModel):
    """Which network, and where its weights are.

    Attributes:
        network: a timm model name (``timm.list_models()``).
        network_options: keyword arguments for ``timm.create_model``, e.g. ``{"pad_type": "same"}``.
        weights: a safetensors file of the network's whole state dict, its classifier included; timm's
            pretrained ones, from its hub or cache, when not given.
        preprocessing: what the network sees; as timm describes the network when not given. Weights of
            another source may want another one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    network: str
    network_options: dict[str, Any] = Field(default_factory=dict)
    weights: str | None = None
    preprocessing: Preprocessing | None = None


class Classifier:
    """Pictures to one number per class; open one with :meth:`open`.

    Args:
        network: (n, 3, size, size) → (n, classes).
    """

    def __init__(self, network: torch.nn.Module, config: ClassifierConfig) -> None:
        if config.preprocessing is None:
            config = config.model_copy(update={"preprocessing": _as_timm_says(network, config.network)})
        assert config.preprocessing is not None
        self.network = network.eval().requires_grad_(False).to(memory_format=torch.channels_last)
        self.config = config
        self.preprocessing = config.preprocessing

    @classmethod
    def open(cls, config: ClassifierConfig, folder: Path, device: str | None = None) -> Classifier:
        """Make the network and load its weights."""
        import timm

        if not timm.is_model(config.network):
            raise UnknownNameError("timm network", config.network, timm.list_models(f"{config.network[:4]}*"))
        pretrained = config.weights is None
        try:
            network = timm.create_model(config.network, pretrained=pretrained, **config.network_options)
        except LOADING_ERRORS as error:
            fix = "name a file of weights (weights), and check network_options"
            raise loading_failure(config.network, None, error, fix) from error
        if config.weights is not None:
            _load(network, folder / Path(config.weights).expanduser())
        return cls(network.to(pick_device(device)), config)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.network.parameters()).device

    @cached_property
    def classes(self) -> int:
        """How many numbers there are per picture."""
        size = self.preprocessing.size
        return int(self.logits(np.zeros((1, 3, size, size), dtype=np.float32)).shape[1])

    @cached_property
    def fingerprint(self) -> str:
        weights = {name: value.cpu().numpy() for name, value in self.network.state_dict().items()}
        options = [self.config.network, self.config.network_options]
        return fingerprint(options, self.preprocessing.model_dump(mode="json"), fingerprint_arrays(weights))

    def prepare(self, item: Any, position: int | str) -> np.ndarray:
        """A picture, with its overlay where it has one, as (3, size, size) float32; ``position`` is what
        errors call it.
        """
        picture, overlay = split_overlay(item)
        return self.preprocessing(as_picture(picture, position), overlay)

    @torch.inference_mode()
    def logits(self, pictures: np.ndarray) -> np.ndarray:
        """(n, 3, size, size) → (n, classes) float32, before the soft-max."""
        inputs = torch.from_numpy(pictures).to(self.device, memory_format=torch.channels_last)
        found: np.ndarray = self.network(inputs).float().cpu().numpy()
        return found


def _as_timm_says(network: torch.nn.Module, name: str) -> Preprocessing:
    """timm's evaluation preprocessing of a network."""
    from timm.data import resolve_data_config

    said = resolve_data_config({}, model=network)
    _, height, width = said["input_size"]
    if (
        height != width
        or said["crop_mode"] != "center"
        or said["interpolation"] not in ("bilinear", "bicubic")
    ):
        raise UsageError(
            f"timm prepares pictures for {name} by {said['interpolation']} interpolation and a "
            f"{said['crop_mode']} crop of {height} × {width} pixels",
            "say what it sees: preprocessing with size, resize, interpolation, mean and std",
        )
    return Preprocessing(
        size=height,
        resize=math.floor(height / said["crop_pct"]),
        interpolation=said["interpolation"],
        mean=said["mean"],
        std=said["std"],
    )


def _load(network: torch.nn.Module, path: Path) -> None:
    """Load a state dict whose names and shapes are the network's."""
    state = load_tensors(path, "check the path under weights")
    wanted = network.state_dict()
    missing, surplus = sorted(set(wanted) - set(state)), sorted(set(state) - set(wanted))
    other = sorted(name for name in set(state) & set(wanted) if state[name].shape != wanted[name].shape)
    if missing or surplus or other:
        example = (missing or surplus or other)[0]
        raise MismatchError(
            f"{path} does not fit the network: {len(missing)} tensors missing, {len(surplus)} unknown, "
            f"{len(other)} of another shape (e.g. {example})",
            "check network and network_options; the weights have to include the classifier",
        )
    network.load_state_dict({name: value.to(wanted[name].dtype) for name, value in state.items()})
