"""The whole model: image encoder, text half, fusion half, projections and matching head."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers.activations import ACT2FN

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.files import write_json
from diptych.core.options import Options
from diptych.core.reading import read_json
from diptych.encoders.inputs import load_tensors, save_tensors
from diptych.encoders.official.bert import TextConfig, text_config, text_half
from diptych.encoders.official.checkpoint import (
    FOLLOWING,
    Checkpoint,
    Layout,
    Stage,
    listed,
    retrieval_weights,
)
from diptych.encoders.official.inputs import Configuration
from diptych.encoders.official.swin import SwinConfig, SwinImages, swin_config
from diptych.encoders.official.vit import VitConfig, VitImages, vit_config
from diptych.encoders.official.weights import Weights, agreed, usable
from diptych.encoders.text_cleaning import Cleaning

# The half of BERT that reads a text and a picture together, and the matching head on top.
#
# Each layer is BERT's, with cross-attention to the picture's tokens between self-attention and feed-forward.
# Transformers' own BERT cannot be used for it: with cross-attention it masks the text causally, and its keys
# and values are as wide as the text, which X-VLM's pictures are not.
#
# Sources: Li et al., Align before Fuse, NeurIPS 2021, Section 3.1; Zeng et al., X-VLM, ICML 2022, Section 3.


class _Attention(nn.Module):
    """Attention with its output projection, residual and norm; the names are BERT's."""

    def __init__(self, width: int, context_width: int, heads: int, eps: float) -> None:
        super().__init__()
        self.heads = heads
        self.self = nn.ModuleDict(
            {
                "query": nn.Linear(width, width),
                "key": nn.Linear(context_width, width),
                "value": nn.Linear(context_width, width),
            }
        )
        self.output = nn.ModuleDict(
            {"dense": nn.Linear(width, width), "LayerNorm": nn.LayerNorm(width, eps=eps)}
        )

    def forward(self, states: Tensor, context: Tensor, rows: Tensor | None, mask: Tensor | None) -> Tensor:
        """Attend from (n, t, width) states to (m, …) context; ``rows`` are (n,) which item each looks at."""

        def split(name: str, values: Tensor) -> Tensor:
            values = self.self[name](values)
            return values.view(*values.shape[:2], self.heads, values.shape[2] // self.heads).transpose(1, 2)

        query, key, value = split("query", states), split("key", context), split("value", context)
        if rows is not None and len(context) == 1:
            key, value = key.expand(len(states), -1, -1, -1), value.expand(len(states), -1, -1, -1)
        elif rows is not None:
            key, value = key[rows], value[rows]
        read = scaled_dot_product_attention(query, key, value, attn_mask=mask).transpose(1, 2).flatten(2)
        joined: Tensor = self.output["LayerNorm"](self.output["dense"](read) + states)
        return joined


class FusionLayer(nn.Module):
    """One layer."""

    def __init__(
        self, width: int, image_width: int, heads: int, feed_forward: int, eps: float, activation: str
    ) -> None:
        super().__init__()
        self.attention = _Attention(width, width, heads, eps)
        self.crossattention = _Attention(width, image_width, heads, eps)
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(width, feed_forward)})
        self.output = nn.ModuleDict(
            {"dense": nn.Linear(feed_forward, width), "LayerNorm": nn.LayerNorm(width, eps=eps)}
        )
        self._activation: Callable[[Tensor], Tensor] = ACT2FN[activation]

    def forward(self, texts: Tensor, mask: Tensor, images: Tensor, rows: Tensor) -> Tensor:
        """As :meth:`Fusion.forward`, with (n, 1, 1, t) ``mask``."""
        states = self.attention(texts, texts, None, mask)
        states = self.crossattention(states, images, rows, None)
        between = self._activation(self.intermediate["dense"](states))
        joined: Tensor = self.output["LayerNorm"](self.output["dense"](between) + states)
        return joined


class Fusion(nn.Module):
    """All layers."""

    def __init__(
        self,
        depth: int,
        width: int,
        image_width: int,
        heads: int,
        feed_forward: int,
        eps: float,
        activation: str,
    ) -> None:
        super().__init__()
        self.layer = nn.ModuleList(
            FusionLayer(width, image_width, heads, feed_forward, eps, activation) for _ in range(depth)
        )

    def forward(self, texts: Tensor, mask: Tensor, images: Tensor, rows: Tensor) -> Tensor:
        """Read pairs: text i with image ``rows[i]``."""
        keys = mask[:, None, None, :]
        for layer in self.layer:
            texts = layer(texts, keys, images, rows)
        return texts


def matching_head(kind: Literal["linear", "mlp"], width: int, between: int) -> nn.Module:
    """Two scores of a fused state: "they do not belong together", "they do"."""
    if kind == "linear":
        return nn.Linear(width, 2)
    return nn.Sequential(nn.Linear(width, between), nn.LayerNorm(between), nn.GELU(), nn.Linear(between, 2))


class MatchingConfig(Options):
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
    """Both encoders and the fusion of what they give."""

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
    """The sizes of the model whose retrieval weights ``state`` are: the fields of :class:`MatchingConfig`."""
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
    """The weights of ``model`` out of a checkpoint: each by its name, none missing, none left over."""
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


def described(config: MatchingConfig, layout: Layout, cleaning: Cleaning, tokenizer: Any) -> dict[str, Any]:
    """Model, stage, checkpoint, how its tables were fitted, cleaning of texts and activation, JSON-able."""
    import transformers

    trained, size, heads = config.trained_size, config.vision.image_size, config.vision.heads
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
        "heads": {"image": list(heads) if isinstance(heads, tuple) else heads, "text": config.text.heads},
        "activation": {"image": config.vision.activation, "text": config.text.activation},
        "temperature": config.temperature,
    }


_WEIGHTS, _CONFIG = "model.safetensors", "config.json"

_PRE_TRAINED_SIZE = 384
"""For which pictures weights of pre-training are fitted unless another size is asked for: the published
retrieval recipes' own."""


def from_weights(
    checkpoint: Checkpoint,
    layout: Layout,
    stage: Stage,
    *,
    said: Configuration,
    image_size: int | None,
    text_limit: int | None,
    published_limit: int,
) -> tuple[MatchingModel, MatchingConfig]:
    """Build the model that a checkpoint holds, its tables fitted to the pictures asked for.

    Sizes are taken from the weights, and what ``said`` says of them is only compared.
    """
    source = checkpoint.name
    if stage not in ("fine-tuned", "pre-training"):
        raise UsageError(f"stage {stage!r}", "known: 'fine-tuned', 'pre-training'")
    if image_size is not None and (not isinstance(image_size, int) or image_size < 1):
        raise UsageError(f"pictures of {image_size} × {image_size} pixels", "give a whole number, 1 or more")
    state = retrieval_weights(checkpoint.state, layout, stage, source)
    fields = model_config_of(
        state,
        layout,
        source,
        vision=said.vision,
        text=said.text,
        image_size=image_size,
        default_size=_PRE_TRAINED_SIZE if stage == "pre-training" else None,
    )
    agreed({"width": said.width}, "width", fields["width"], "width of the rows (embed_dim)")
    limit = _limit(text_limit if text_limit is not None else said.text_limit, published_limit, fields["text"])
    config = MatchingConfig(**fields, stage=stage, checkpoint=source, text_limit=limit)
    model = built(config)
    model.load_state_dict(filled(model, state, layout, source), strict=True)
    return model, config


def _limit(asked: int | None, published: int, text: TextConfig) -> int:
    """Tokens a text is cut to: as asked, else as published where the model has so many positions."""
    if asked is None:
        return min(published, text.positions)
    if not isinstance(asked, int) or not 2 < asked <= text.positions:
        raise UsageError(
            f"texts of {asked!r} tokens for a text encoder of {text.positions} positions",
            f"choose 3 to {text.positions}",
        )
    return asked


def save_model(model: MatchingModel, config: MatchingConfig, layout: Layout, folder: Path) -> None:
    """Write weights and configuration into ``folder``."""
    save_tensors(model.state_dict(), folder / _WEIGHTS)
    write_json(folder / _CONFIG, {"family": layout.family, **config.model_dump(mode="json")})


def open_saved(folder: Path, layout: Layout) -> tuple[MatchingModel, MatchingConfig]:
    """Read what :func:`save_model` wrote."""
    content = read_json(folder / _CONFIG)
    family = content.pop("family", None) if isinstance(content, dict) else None
    if family != layout.family:
        raise MismatchError(
            f"{folder} holds {family or 'no known'} weights, not {layout.family}",
            f"load it with {family}:FOLDER" if family else "save the encoder again",
        )
    config = MatchingConfig.read(content, str(folder / _CONFIG), StorageError, "save the encoder again")
    model = built(config)
    try:
        model.load_state_dict(load_tensors(folder / _WEIGHTS, "save the encoder again"), strict=True)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise StorageError(
            f"{folder} does not fit its config.json: {reason}", "save the encoder again"
        ) from error
    return model, config
