"""The whole model: image encoder, text half, fusion half, projections and matching head."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn

from diptych.core.errors import StorageError
from diptych.encoders.official.bert import TextConfig, text_config, text_half
from diptych.encoders.official.fusion import Fusion, matching_head
from diptych.encoders.official.layouts import FOLLOWING, Layout, Stage, listed
from diptych.encoders.official.swin import SwinConfig, SwinImages, swin_config
from diptych.encoders.official.vit import VitConfig, VitImages, vit_config
from diptych.encoders.official.weights import Weights, usable
from diptych.encoders.text_cleaning import Cleaning

__all__ = ["MatchingConfig", "MatchingModel", "built", "described", "filled", "loaded", "model_config_of"]


class MatchingConfig(BaseModel):
    """Everything that is needed to build the model again.

    Attributes:
        vision, text: the sizes of the two encoders.
        width: of the rows that both end in.
        head: ALBEF's linear matching head, or X-VLM's two layers.
        head_width: between those two layers.
        temperature: the learned one, where the checkpoint has it.
        stage: fine-tuned for retrieval, or of pre-training.
        checkpoint: the file's name.
        trained_size: side of the pictures that its tables were made for; others are interpolated.
        text_limit: tokens a text is cut to.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    vision: VitConfig | SwinConfig
    text: TextConfig
    width: int
    head: Literal["linear", "mlp"]
    head_width: int = 0
    temperature: float | None = None
    stage: Stage = "fine-tuned"
    checkpoint: str = ""
    trained_size: int
    text_limit: int


class MatchingModel(nn.Module):
    """Both encoders and the fusion of what they give.

    Args:
        config: the sizes.
    """

    def __init__(self, config: MatchingConfig) -> None:
        super().__init__()
        text = config.text
        swin = isinstance(config.vision, SwinConfig)
        self.image = SwinImages(config.vision) if swin else VitImages(config.vision)  # type: ignore[arg-type]
        self.text = text_half(text)
        self.fusion = Fusion(
            text.depth - text.fusion_layer,
            text.width,
            text.image_width,
            text.heads,
            text.feed_forward,
            text.layer_norm_eps,
            text.activation,
        )
        self.vision_proj = nn.Linear(self.image.width, config.width)
        self.text_proj = nn.Linear(text.width, config.width)
        self.itm_head = matching_head(config.head, text.width, config.head_width)
        self._fusion_layer = text.fusion_layer

    def official_name(self, name: str, layout: Layout) -> tuple[str, int | None]:
        """What the published code calls weight ``name``, and which third of its weight it is."""
        part, _, rest = name.partition(".")
        if part == "image":
            theirs, third = self.image.names(rest.removeprefix("model."))
            return layout.vision + theirs, third
        if part == "text":
            return f"text_encoder.{rest}", None
        if part == "fusion":
            _, layer, rest = rest.split(".", 2)
            return f"text_encoder.encoder.layer.{int(layer) + self._fusion_layer}.{rest}", None
        return name, None


def model_config_of(
    state: Mapping[str, Tensor],
    layout: Layout,
    source: str,
    *,
    vision: Mapping[str, Any] | None,
    text: Mapping[str, Any] | None,
    image_size: int | None,
    default_size: int | None,
) -> dict[str, Any]:
    """The sizes of the model whose retrieval weights ``state`` are: the fields of :class:`MatchingConfig`.

    Args:
        state: by the names of a fine-tuned checkpoint, with tables that follow from sizes or without.
        layout: whose names they are.
        source: what to call the file in errors.
        vision, text: configurations, for what shapes do not tell.
        image_size: side of the pictures to take; see :func:`vit_config`.
        default_size: where neither it nor ``vision`` says one; None for the checkpoint's own.

    Raises:
        StorageError, MismatchError, UsageError: see :func:`vit_config` and :func:`text_config`.
    """
    everything = Weights(state, "", source)
    make = vit_config if layout.family == "albef" else swin_config
    seen, trained = make(Weights(state, layout.vision, source), vision, image_size, default_size)
    read = text_config(Weights(state, "text_encoder.", source), text)
    wide = seen.width * 2 ** (len(seen.depths) - 1) if isinstance(seen, SwinConfig) else seen.width
    if wide != read.image_width:
        raise StorageError(
            f"{source}: the image encoder's tokens are {wide} wide, cross-attention reads {read.image_width}",
            "its two halves are of different models: give the checkpoint as it was published",
        )
    linear = "itm_head.weight" in everything
    width = everything.shape("vision_proj.weight", 2)[0]
    return {
        "vision": seen,
        "text": read,
        "width": width,
        "head": "linear" if linear else "mlp",
        "head_width": 0 if linear else everything.shape("itm_head.0.weight", 2)[0],
        "temperature": _temperature(state, source),
        "trained_size": trained,
    }


def _temperature(state: Mapping[str, Tensor], source: str) -> float | None:
    kept = state.get("temp")
    if kept is None or kept.is_meta:
        return None
    if kept.numel() != 1 or not 0 < float(kept) < math.inf:
        raise StorageError(f"{source} has the temperature {kept.tolist()}", "it is damaged, or diverged")
    return float(kept)


def built(config: MatchingConfig) -> MatchingModel:
    """The model with random weights, made without touching the global random state."""
    with torch.random.fork_rng(devices=[]):
        return MatchingModel(config).eval()


def filled(
    model: MatchingModel, state: Mapping[str, Tensor], layout: Layout, source: str
) -> dict[str, Tensor]:
    """The weights of ``model`` out of a checkpoint: each by its name, none missing, none left over.

    Args:
        model: whose weights are wanted.
        state: retrieval weights, by the names of a fine-tuned checkpoint.
        layout: whose names they are.
        source: what to call the file in errors.

    Returns:
        float32 weights by the names of ``model``.

    Raises:
        StorageError: weights are missing, too many, of another shape or no finite numbers.
    """
    wanted = {name: (model.official_name(name, layout), value) for name, value in model.state_dict().items()}
    names = {theirs for (theirs, _), _ in wanted.values()}
    missing = sorted(names - state.keys())
    strange = sorted(name for name in state.keys() - names - {"temp"} if not FOLLOWING.match(name))
    if missing or strange:
        raise StorageError(
            f"{source} does not hold the weights of {layout.model}: "
            f"missing {listed(missing)}, unexpected {listed(strange)}",
            "it is damaged, cut off, or a checkpoint of another task: compare it with the published one",
        )
    found: dict[str, Tensor] = {}
    for name, ((theirs, third), value) in wanted.items():
        given = usable(state[theirs], theirs, source)
        if third is not None:
            given = given.chunk(3)[third] if len(given) == 3 * len(value) else given
        elif name.startswith("image."):
            given = model.image.fitted(theirs.removeprefix(layout.vision), given)
        if given.shape != value.shape:
            raise StorageError(
                f"{source}: {theirs} has the shape {tuple(state[theirs].shape)}, not one of "
                f"{layout.named} whose other weights are of this size (wanted {tuple(value.shape)})",
                "it is damaged or of another model",
            )
        found[name] = given
    return found


def loaded(model: MatchingModel, weights: Mapping[str, Tensor], source: str) -> MatchingModel:
    """``model`` with the weights that were saved of one like it.

    Raises:
        StorageError: weights are missing, too many, or of another shape.
    """
    try:
        model.load_state_dict(weights, strict=True)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise StorageError(
            f"{source} does not fit its config.json: {reason}", "save the encoder again"
        ) from error
    return model


def described(config: MatchingConfig, layout: Layout, cleaning: Cleaning, tokenizer: Any) -> dict[str, Any]:
    """Model, stage, checkpoint, how its tables were fitted, cleaning of texts and activation, JSON-able."""
    import transformers

    trained, size = config.trained_size, config.vision.image_size
    return {
        "model": layout.model,
        "library": f"transformers {transformers.__version__}",
        "stage": config.stage,
        "checkpoint": {
            "file": config.checkpoint,
            "size": trained,
            "tables": "its own" if trained == size else f"interpolated from {trained} to {size} pixels",
        },
        "text": {
            "tokenizer": type(tokenizer).__name__,
            "padding": "longest",
            "cleaning": cleaning.describe(),
        },
        "matching": {
            "head": config.head,
            "layers": config.text.depth - config.text.fusion_layer,
            "adds_contrastive": False,
        },
        "heads": {"image": config.vision.heads, "text": config.text.heads},
        "activation": {"image": config.vision.activation, "text": config.text.activation},
        "temperature": config.temperature,
    }
