"""From a published checkpoint, or a folder that was saved of one, to the model."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.files import read_json, write_json
from diptych.encoders.official.bert import TextConfig
from diptych.encoders.official.checkpoint import Checkpoint
from diptych.encoders.official.configuration import Configuration
from diptych.encoders.official.layouts import Layout, Stage, retrieval_weights
from diptych.encoders.official.model import (
    MatchingConfig,
    MatchingModel,
    built,
    filled,
    loaded,
    model_config_of,
)
from diptych.encoders.official.weights import agreed
from diptych.encoders.tensors import load_tensors, save_tensors

__all__ = ["from_weights", "open_saved", "save_model"]

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

    Raises:
        UsageError: an impossible size, limit or number of heads.
        MismatchError: a checkpoint of another model or stage, or a configuration of another.
        StorageError: weights that are missing, too many, or of strange shapes.
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
    """Write weights and configuration into ``folder``.

    Raises:
        OSError: the write failed.
    """
    save_tensors(model.state_dict(), folder / _WEIGHTS)
    write_json(folder / _CONFIG, {"family": layout.family, **config.model_dump(mode="json")})


def open_saved(folder: Path, layout: Layout) -> tuple[MatchingModel, MatchingConfig]:
    """Read what :func:`save_model` wrote.

    Raises:
        MismatchError: it is of the other model.
        StorageError: files are missing, damaged, or do not fit each other.
    """
    content = read_json(folder / _CONFIG)
    family = content.pop("family", None) if isinstance(content, dict) else None
    if family != layout.family:
        raise MismatchError(
            f"{folder} holds {family or 'no known'} weights, not {layout.family}",
            f"load it with {family}:FOLDER" if family else "save the encoder again",
        )
    try:
        config = MatchingConfig(**content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise StorageError(f"{folder / _CONFIG}: {where}: {first['msg']}", "save the encoder again") from None
    weights = load_tensors(folder / _WEIGHTS, "save the encoder again")
    return loaded(built(config), weights, str(folder)), config
