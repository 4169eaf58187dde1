"""The whole model: image encoder, text half, fusion half, projections and matching head.

The lower half of BERT reads texts; the upper half, with cross-attention to the image's tokens, is BLIP's layer of
transformers (its BERT would mask the text causally, with keys as wide as the text).

Sources: Li et al., Align before Fuse, NeurIPS 2021, Section 3.1; Zeng et al., X-VLM, ICML 2022, Section 3.
"""

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import torch
import transformers
from torch import Tensor, nn
from transformers.models.blip.modeling_blip_text import BlipTextEncoder

from diptych.core.errors import StorageError, UsageError
from diptych.core.options import Options
from diptych.encoders.official.checkpoint import FOLLOWING, Checkpoint, Layout, Stage, listed
from diptych.encoders.official.inputs import (
    Configuration,
    agreed,
    canonical,
    given_heads,
    not_cut_off,
    usable,
)
from diptych.encoders.official.vision import ImageEncoder, SwinConfig, VitConfig, swin_config, vit_config

PUBLISHED_TEXT_WIDTH = 768


class TextConfig(Options):
    """The sizes of the text encoder; ``fusion_layer`` is the first layer that reads the image."""

    vocabulary: Annotated[int, "vocab_size"]
    positions: Annotated[int, "max_position_embeddings"]
    types: Annotated[int, "type_vocab_size"]
    width: Annotated[int, "hidden_size"]
    depth: Annotated[int, "num_hidden_layers"]
    heads: Annotated[int, "num_attention_heads"]
    feed_forward: Annotated[int, "intermediate_size"]
    fusion_layer: int
    image_width: int
    layer_norm_eps: float = 1e-12
    activation: Annotated[str, "hidden_act"] = "gelu"

    def layers(self, depth: int) -> dict[str, Any]:
        """Return the options of ``depth`` layers of transformers."""
        return {
            "hidden_size": self.width,
            "num_hidden_layers": depth,
            "num_attention_heads": self.heads,
            "intermediate_size": self.feed_forward,
            "hidden_act": self.activation,
            "layer_norm_eps": self.layer_norm_eps,
        }


def text_config(weights: Checkpoint, given: Mapping[str, Any] | None, *, fusion: bool = True) -> TextConfig:
    """Return the sizes of the text encoder; without ``fusion`` that of BLIP, of which every layer reads the image."""
    declared = canonical(
        given, TextConfig, "text encoder's configuration", "model_type", "position_embedding_type"
    )
    for key, known in (("model_type", "bert"), ("position_embedding_type", "absolute")):
        if declared.get(key, known) != known:
            raise UsageError(f"a text encoder of {key} {declared[key]!r}", f"only {known} is known")
    vocabulary, width = weights.shape("embeddings.word_embeddings.weight", 2)
    depth = weights.count("encoder.layer.")
    crossed = [f"encoder.layer.{layer}.crossattention.self.key.weight" in weights for layer in range(depth)]
    first = crossed.index(True) if True in crossed else depth
    if fusion and (not 0 < first < depth or not all(crossed[first:])):
        where = [layer for layer, has in enumerate(crossed) if has]
        raise StorageError(
            f"{weights.name}: of {depth} layers of the text encoder, {where or 'none'} have cross-attention",
            "they are the last ones in ALBEF and X-VLM: the file is cut off, or of another model",
        )
    if width == PUBLISHED_TEXT_WIDTH:
        published = (12, 6 if fusion else 12)
        not_cut_off(declared, "depth", (depth, depth - first), published, "text encoder", weights.name)
    config = TextConfig(
        vocabulary=vocabulary,
        positions=weights.shape("embeddings.position_embeddings.weight", 2)[0],
        types=weights.shape("embeddings.token_type_embeddings.weight", 2)[0] if fusion else 0,
        width=width,
        depth=depth,
        heads=given_heads(declared, width, "text encoder"),
        feed_forward=weights.shape("encoder.layer.0.intermediate.dense.weight", 2)[0],
        fusion_layer=first,
        image_width=weights.shape(f"encoder.layer.{first}.crossattention.self.key.weight", 2)[1],
        **{name: declared[name] for name in ("layer_norm_eps", "activation") if name in declared},
    )
    agreed(declared, config, "text encoder's", *([] if fusion else ["types", "fusion_layer"]))
    return config


class MatchingConfig(Options):
    """Everything that is needed to build the model again."""

    vision: VitConfig | SwinConfig
    text: TextConfig
    width: int
    head: Literal["linear", "mlp"]  # ALBEF's, or X-VLM's two layers with ``head_width`` between them
    head_width: int = 0
    temperature: float | None = None  # the learned one, where the checkpoint has it
    stage: Stage = "fine-tuned"
    checkpoint: str = ""
    trained_size: int  # side of the images that its tables were made for
    text_limit: int  # tokens a text is cut to


class MatchingModel(nn.Module):
    """Both encoders and the fusion of what they give."""

    def __init__(self, config: MatchingConfig) -> None:
        super().__init__()
        text, vision = config.text, config.vision
        self.image: ImageEncoder = ImageEncoder(vision)
        self.text = transformers.BertModel(
            transformers.BertConfig(
                vocab_size=text.vocabulary,
                max_position_embeddings=text.positions,
                type_vocab_size=text.types,
                **text.layers(text.fusion_layer),
            ),
            add_pooling_layer=False,
        )
        layers = text.layers(text.depth - text.fusion_layer)
        self.fusion: BlipTextEncoder = BlipTextEncoder(
            transformers.BlipTextConfig(encoder_hidden_size=text.image_width, is_decoder=True, **layers)
        )
        self.vision_proj: nn.Linear = nn.Linear(vision.last_width, config.width)
        self.text_proj: nn.Linear = nn.Linear(text.width, config.width)
        self.itm_head: nn.Module = nn.Linear(text.width, 2)  # "do not belong together", "do"
        if config.head == "mlp":
            between = config.head_width
            self.itm_head = nn.Sequential(
                nn.Linear(text.width, between), nn.LayerNorm(between), nn.GELU(), nn.Linear(between, 2)
            )
        self._fusion_layer = text.fusion_layer

    def official_name(self, name: str, layout: Layout) -> str:
        """Return what the published code calls weight ``name``."""
        part, _, rest = name.partition(".")
        if part == "image":
            return layout.vision + self.image.official_name(rest.removeprefix("model."))
        if part == "fusion":
            _, layer, rest = rest.split(".", 2)
            return f"text_encoder.encoder.layer.{int(layer) + self._fusion_layer}.{rest}"
        return f"text_encoder.{rest}" if part == "text" else name

    def weights_of(self, checkpoint: Checkpoint, layout: Layout) -> dict[str, Tensor]:
        """Return its weights out of a checkpoint, tables of positions interpolated."""
        expected = self.state_dict()
        names = {name: self.official_name(name, layout) for name in expected}
        return filled(expected, names, checkpoint, layout, self.image.fitted)


def model_config_of(
    checkpoint: Checkpoint, layout: Layout, declared: Configuration, image_size: int | None, stage: Stage
) -> dict[str, Any]:
    """Return the sizes of the model whose retrieval weights these are: fields of :class:`MatchingConfig`."""
    source, images = checkpoint.name, checkpoint.part(layout.vision)
    config_of: Any = vit_config if layout.family == "albef" else swin_config
    seen, trained = config_of(images, declared.vision, image_size, stage)
    read = text_config(checkpoint.part("text_encoder."), declared.text)
    if seen.last_width != read.image_width:
        raise StorageError(
            f"{source}: the image encoder's tokens are {seen.last_width} wide, cross-attention reads "
            f"{read.image_width}",
            "its two halves are of different models: give the checkpoint as it was published",
        )
    linear = "itm_head.weight" in checkpoint
    temperature = checkpoint.state.get("temp")
    if temperature is not None and not (temperature.numel() == 1 and 0 < float(temperature) < math.inf):
        raise StorageError(
            f"{source} has the temperature {temperature.tolist()}", "it is corrupt, or diverged"
        )
    return {
        "vision": seen,
        "text": read,
        "width": checkpoint.shape("vision_proj.weight", 2)[0],
        "head": "linear" if linear else "mlp",
        "head_width": 0 if linear else checkpoint.shape("itm_head.0.weight", 2)[0],
        "temperature": None if temperature is None else float(temperature),
        "trained_size": trained,
    }


def filled(
    expected: Mapping[str, Tensor],
    names: Mapping[str, str],
    checkpoint: Checkpoint,
    layout: Layout,
    fitted: Callable[[str, Tensor], Tensor],
) -> dict[str, Tensor]:
    """Return the ``expected`` weights out of a checkpoint, each by its published name, none missing, none left over."""
    state, source, wanted = checkpoint.state, checkpoint.name, set(names.values())
    missing = sorted(wanted - state.keys())
    strange = sorted(name for name in state.keys() - wanted - {"temp"} if not FOLLOWING.match(name))
    if missing or strange:
        raise StorageError(
            f"{source} does not hold the weights of {layout.model}: "
            f"missing {listed(missing)}, unexpected {listed(strange)}",
            "it is corrupt, cut off, or a checkpoint of another task: compare it with the published one",
        )
    found: dict[str, Tensor] = {}
    for name, theirs in names.items():
        found[name] = fitted(theirs.removeprefix(layout.vision), usable(state[theirs], theirs, source))
        if found[name].shape != expected[name].shape:
            raise StorageError(
                f"{source}: {theirs} has the shape {tuple(state[theirs].shape)}, not one of "
                f"{layout.model} whose other weights are of this size (expected {tuple(expected[name].shape)})",
                "it is corrupt or of another model",
            )
    return found


def built(config: MatchingConfig) -> MatchingModel:
    """Return the model with random weights; the global random state stays as it is."""
    with torch.random.fork_rng(devices=[]):
        return MatchingModel(config).eval()
