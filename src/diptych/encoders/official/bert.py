"""The text encoder's sizes: BERT whose lower half reads texts, whose upper half reads them with pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import transformers

from diptych.core.errors import StorageError, UsageError
from diptych.core.options import Options
from diptych.encoders.official.weights import (
    Weights,
    agreed,
    agreed_sizes,
    canonical,
    given_heads,
    not_cut_off,
)

_ALIASES = {
    "vocabulary": ("vocab_size",),
    "width": ("hidden_size",),
    "depth": ("num_hidden_layers",),
    "fusion_layer": (),
    "heads": ("num_attention_heads",),
    "feed_forward": ("intermediate_size",),
    "positions": ("max_position_embeddings",),
    "types": ("type_vocab_size",),
    "layer_norm_eps": (),
    "activation": ("hidden_act",),
    "position_kind": ("position_embedding_type",),
    "kind": ("model_type",),
}
_NO_EFFECT = (
    # X-VLM's own file says the width of ALBEF's pictures and is put right when the model is made.
    *("encoder_width", "architectures", "pad_token_id", "bos_token_id", "eos_token_id"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout", "initializer_range"),
    *("add_cross_attention", "is_decoder", "gradient_checkpointing", "use_cache", "chunk_size_feed_forward"),
    *("transformers_version", "tie_word_embeddings", "fp16", "cross_attention_freq"),
)

_BASE = 768
"""Width of the published text encoders."""


class TextConfig(Options):
    """The sizes of the text encoder.

    Attributes:
        vocabulary, positions, types: rows of its three tables of embeddings.
        width, depth, heads, feed_forward: of its layers.
        fusion_layer: the first that reads the picture.
        image_width: of the picture's tokens.
        layer_norm_eps, activation: what no shape tells.
    """

    vocabulary: int
    positions: int
    types: int
    width: int
    depth: int
    heads: int
    feed_forward: int
    fusion_layer: int
    image_width: int
    layer_norm_eps: float = 1e-12
    activation: str = "gelu"


def text_config(weights: Weights, given: Mapping[str, Any] | None) -> TextConfig:
    """The sizes that the weights and ``given`` say."""
    said = canonical(given, _ALIASES, "text encoder's configuration", _NO_EFFECT)
    if said.get("kind", "bert") != "bert":
        raise UsageError(f"a text encoder of type {said['kind']!r}", "BERT alone is known")
    kind = said.get("position_kind", "absolute")
    if kind != "absolute":
        raise UsageError(f"position embeddings {kind!r} in the text encoder", "absolute ones are known")
    vocabulary, width = weights.shape("embeddings.word_embeddings.weight", 2)
    depth = weights.count("encoder.layer.")
    crossed = [f"encoder.layer.{layer}.crossattention.self.key.weight" in weights for layer in range(depth)]
    first = crossed.index(True) if True in crossed else depth
    if not 0 < first < depth or not all(crossed[first:]):
        where = [layer for layer, has in enumerate(crossed) if has]
        raise StorageError(
            f"{weights.source}: of {depth} layers of the text encoder, {where or 'none'} have cross-attention",
            "they are the last ones in ALBEF and X-VLM: the file is cut off, or of another model",
        )
    if width == _BASE:
        not_cut_off(said, "depth", (depth, depth - first), (12, 6), "text encoder", weights.source)
    layer = f"encoder.layer.{first}.crossattention.self.key.weight"
    agreed(said, "fusion_layer", first, "first layer with cross-attention")
    sizes = agreed_sizes(
        said,
        "text encoder",
        vocabulary=vocabulary,
        positions=weights.shape("embeddings.position_embeddings.weight", 2)[0],
        types=weights.shape("embeddings.token_type_embeddings.weight", 2)[0],
        width=width,
        depth=depth,
        feed_forward=weights.shape("encoder.layer.0.intermediate.dense.weight", 2)[0],
    )
    return TextConfig(
        **sizes,
        fusion_layer=first,
        heads=given_heads(said, width, "text encoder"),
        image_width=weights.shape(layer, 2)[1],
        layer_norm_eps=said.get("layer_norm_eps", 1e-12),
        activation=said.get("activation", "gelu"),
    )


def text_half(config: TextConfig) -> Any:
    """The layers below :attr:`TextConfig.fusion_layer` with the embeddings, as transformers' BERT."""
    return transformers.BertModel(
        transformers.BertConfig(
            vocab_size=config.vocabulary,
            hidden_size=config.width,
            num_hidden_layers=config.fusion_layer,
            num_attention_heads=config.heads,
            intermediate_size=config.feed_forward,
            hidden_act=config.activation,
            max_position_embeddings=config.positions,
            type_vocab_size=config.types,
            layer_norm_eps=config.layer_norm_eps,
        ),
        add_pooling_layer=False,
    )
