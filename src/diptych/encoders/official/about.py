"""What has to be printed beside every number of ALBEF and X-VLM."""

from __future__ import annotations

from typing import Any

from diptych.encoders.official.layouts import Layout
from diptych.encoders.official.model import MatchingConfig
from diptych.encoders.text_cleaning import Cleaning

__all__ = ["about"]


def about(config: MatchingConfig, layout: Layout, cleaning: Cleaning, tokenizer: Any) -> dict[str, Any]:
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
