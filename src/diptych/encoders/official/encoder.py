"""ALBEF, X-VLM and BLIP as dual encoders with a matching head, from the checkpoints of their authors.

BLIP's become the model of transformers, which has other defaults: 8 heads for the text, norms with an epsilon of 1e-5
for the image.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
import transformers
from torch import Tensor

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.files import write_json
from diptych.core.reading import read_json
from diptych.encoders.dual_encoder import CONFIG_FILE, unit_rows
from diptych.encoders.hub import saved_settings, tokenizer_content
from diptych.encoders.inputs import check_texts, load_fitting, save_tensors
from diptych.encoders.official.checkpoint import (
    LAYOUTS,
    Checkpoint,
    Stage,
    read_checkpoint,
    retrieval_weights,
    split_stage,
)
from diptych.encoders.official.inputs import (
    MEAN,
    STD,
    Configuration,
    Given,
    agreed,
    configured,
    find_tokenizer,
    squashed,
)
from diptych.encoders.official.model import (
    MatchingConfig,
    MatchingModel,
    built,
    filled,
    model_config_of,
    text_config,
)
from diptych.encoders.official.vision import position_table, vit_config
from diptych.encoders.rerank import PairInputs
from diptych.encoders.tower import pad_tokens
from diptych.encoders.two_stage import ALBEF_CLEANING, BlipEncoder, TwoStageEncoder

_WEIGHTS, _CONFIG = "model.safetensors", "config.json"
_AGAIN = "load the checkpoint and save it again"


class OfficialEncoder(TwoStageEncoder):
    """A two-stage model of its authors' checkpoint; make one with :meth:`load_published` or :meth:`open`.

    Preprocessed images and token ids are taken as NumPy arrays or as tensors on any device.
    """

    adds_contrastive: ClassVar[bool] = False
    cleaning = ALBEF_CLEANING
    text_parts: ClassVar[frozenset[str]] = frozenset(("states", "mask"))
    published_limit: ClassVar[int]  # tokens that the published evaluation cuts a text to

    def __init__(
        self, model: MatchingModel, config: MatchingConfig, name: str, *words: Any, **options: Any
    ) -> None:
        super().__init__(model, name, config.text_limit, **options)
        self.config = config
        self._pixels = squashed(config.vision.image_size)
        self._words = words  # the tokenizer that was given, and the checkpoint's folder

    @classmethod
    def load_published(
        cls,
        path: str | Path | Mapping[str, Any],
        *,
        config: Given = None,
        vision: Given = None,
        text: Given = None,
        image_size: int | None = None,
        stage: Stage = "fine-tuned",
        tokenizer: Any = None,
        device: str | None = None,
    ) -> Self:
        """Load a checkpoint of the published code: a file, a folder with one, or its weights by name.

        Layout: the image encoder under ``visual_encoder.`` (ALBEF, timm's ViT) or ``vision_encoder.`` (X-VLM, Swin),
        BERT with cross-attention in its last layers under ``text_encoder.``, ``vision_proj``, ``text_proj`` and
        ``itm_head``; by themselves or under ``model``. Momentum copies and queues are left out. Files are read with
        ``weights_only=True``.

        Source: the checkpoints that github.com/salesforce/ALBEF and github.com/zengyan-97/X-VLM link to.
        """
        found, layout = read_checkpoint(path), LAYOUTS[cls.family]
        if stage not in ("fine-tuned", "pre-training"):
            raise UsageError(f"stage {stage!r}", "known: 'fine-tuned', 'pre-training'")
        if image_size is not None and (not isinstance(image_size, int) or image_size < 1):
            raise UsageError(
                f"images of {image_size} × {image_size} pixels", "give a whole number, 1 or more"
            )
        declared = configured(found, config, vision, text)
        weights = retrieval_weights(found, layout, stage)
        fields = model_config_of(weights, layout, declared, image_size, stage)
        positions = fields["text"].positions
        limit = min(cls.published_limit, positions) if declared.text_limit is None else declared.text_limit
        if not isinstance(limit, int) or not 2 < limit <= positions:
            raise UsageError(
                f"texts of {limit!r} tokens for a text encoder of {positions} positions",
                f"choose 3 to {positions}",
            )
        sizes = MatchingConfig(**fields, stage=stage, checkpoint=found.name, text_limit=limit)
        agreed({} if declared.width is None else {"width": declared.width}, sizes, "rows' (embed_dim)")
        model = built(sizes)
        model.load_state_dict(model.weights_of(weights, layout))
        return cls(model, sizes, found.name, tokenizer, found.folder, device=device)

    @classmethod
    def open(cls, source: str, *, device: str | None = None) -> Self:
        """Load ``FILE``, ``FOLDER`` or, on purpose, ``pretraining:FILE``; or a folder that was saved."""
        stage, path = split_stage(source)
        if (path / CONFIG_FILE).is_file():
            encoder = cls._open_saved(path, device)
        else:
            encoder = cls.load_published(path, stage=stage, device=device)
        _ = encoder.tokenizer  # now, not after the images have been encoded
        return encoder

    @classmethod
    def _open_saved(cls, folder: Path, device: str | None) -> Self:
        content = read_json(folder / _CONFIG)
        family = content.pop("family", None) if isinstance(content, dict) else None
        if family != cls.family:
            raise MismatchError(
                f"{folder} holds {family or 'no known'} weights, not {cls.family}",
                f"load it with {family}:FOLDER" if family else _AGAIN,
            )
        config = MatchingConfig.read(content, str(folder / _CONFIG), StorageError, _AGAIN)
        model = built(config)
        load_fitting(model, folder / _WEIGHTS, "its config.json", _AGAIN)
        settings = saved_settings(folder)
        return cls(model, config, settings.pop("name"), None, folder, device=device, **settings)

    @cached_property
    def tokenizer(self) -> Any:
        given, folder = self._words
        return find_tokenizer(given, folder) if given is None or isinstance(given, str | Path) else given

    @property
    def width(self) -> int:
        return self.config.width

    @property
    def padding(self) -> tuple[int, int | None, bool]:
        return int(self.tokenizer.pad_token_id), None, False

    def pixel_states(self, pixels: Tensor | np.ndarray) -> Tensor:
        pixels = torch.as_tensor(pixels).to(self.device, torch.float32)
        size = self.config.vision.image_size
        if pixels.ndim != 4 or pixels.shape[1:] != (3, size, size):
            raise MismatchError(
                f"prepared images of shape {tuple(pixels.shape)}, not (n, 3, {size}, {size})",
                f"prepare them at {size} pixels, or load the checkpoint with image_size={pixels.shape[-1]}",
            )
        return self.model.image(pixels)  # type: ignore[no-any-return]

    @property
    def state_shape(self) -> tuple[int, int]:
        return self.model.image.tokens, self.config.text.image_width

    def token_states(self, tokens: Tensor | np.ndarray, mask: Tensor | np.ndarray) -> Tensor:
        """Map (n, t) token ids with their (n, t) mask or (n,) lengths → (n, t, width) states of the text half."""
        tokens, inside = self._checked(tokens, mask)
        states: Tensor = self.model.text(input_ids=tokens, attention_mask=inside.long()).last_hidden_state
        return states

    def _checked(self, tokens: Tensor | np.ndarray, mask: Tensor | np.ndarray) -> tuple[Tensor, Tensor]:
        text = self.config.text
        tokens = torch.as_tensor(tokens).to(self.device, torch.int64)
        inside = torch.as_tensor(mask).to(self.device)
        if tokens.ndim == 2 and inside.ndim == 1:
            inside = torch.arange(tokens.shape[1], device=self.device) < inside[:, None]
        if tokens.ndim != 2 or inside.shape != tokens.shape or tokens.shape[1] > text.positions:
            raise MismatchError(
                f"token ids of shape {tuple(tokens.shape)} with a mask of shape {tuple(inside.shape)}",
                f"both are (n, t), with t of at most {text.positions}",
            )
        if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < text.vocabulary:
            raise MismatchError(
                f"token ids from {int(tokens.min())} to {int(tokens.max())}, {self.name} knows "
                f"{text.vocabulary}",
                "the tokenizer is another model's: use its own",
            )
        return tokens, inside.bool()

    def pixel_features(self, pixels: Tensor | np.ndarray) -> Tensor:
        return self.model.vision_proj(self.pixel_states(pixels)[:, 0])  # type: ignore[no-any-return]

    def token_features(self, tokens: Tensor | np.ndarray, lengths: Tensor | np.ndarray) -> Tensor:
        return self.model.text_proj(self.token_states(tokens, lengths)[:, 0])  # type: ignore[no-any-return]

    @torch.inference_mode()
    def pixel_rows(self, pixels: Tensor | np.ndarray) -> np.ndarray:
        """Map (n, 3, size, size) preprocessed images → (n, d) float32 unit rows."""
        return unit_rows(self.pixel_features(pixels).float().cpu().numpy(), "image", range(len(pixels)))

    @torch.inference_mode()
    def token_rows(self, tokens: Tensor | np.ndarray, mask: Tensor | np.ndarray) -> np.ndarray:
        """Map (n, t) token ids with their mask → (n, d) float32 unit rows."""
        return unit_rows(self.token_features(tokens, mask).float().cpu().numpy(), "text", range(len(tokens)))

    @torch.inference_mode()
    def token_inputs(
        self, tokens: Tensor | np.ndarray, mask: Tensor | np.ndarray, length: int | None = None
    ) -> PairInputs:
        """Return what :meth:`match` reads of (n, t) token ids with their mask, filled to ``length`` tokens."""
        tokens, inside = self._checked(tokens, mask)
        missing = (length or tokens.shape[1]) - tokens.shape[1]
        states = self.token_states(tokens, inside).float() * inside[..., None]  # nothing reads the others
        return {
            "states": torch.nn.functional.pad(states, (0, 0, 0, missing)).cpu().numpy(),
            "mask": torch.nn.functional.pad(inside, (0, missing)).cpu().numpy(),
        }

    def text_inputs(self, texts: Sequence[str], batch_size: int = 256) -> PairInputs:
        """Return (n, limit, width) float32 ``states`` of the text half, and (n, limit) bool ``mask``."""
        texts = check_texts(texts)
        self.model.eval()
        states = np.zeros((len(texts), self.text_limit, self.config.text.width), dtype=np.float32)
        mask = np.zeros((len(texts), self.text_limit), dtype=bool)
        for start in range(0, len(texts), batch_size):
            here = slice(start, start + batch_size)
            tokens = pad_tokens(self.token_ids(texts[here], start), *self.padding)
            inputs = self.token_inputs(*tokens, self.text_limit)
            states[here], mask[here] = inputs["states"], inputs["mask"]
        return {"states": states, "mask": mask}

    def read_together(self, states: Tensor, texts: dict[str, Tensor]) -> Tensor:
        unseen = torch.where(texts["mask"], 0.0, torch.finfo(torch.float32).min)[:, None, None, :]
        found: Tensor = self.model.fusion(
            texts["states"], attention_mask=unseen, encoder_hidden_states=states
        ).last_hidden_state
        return found

    @property
    def learned_options(self) -> dict[str, float]:
        kept = self.config.temperature
        return {} if kept is None else {"temperature": kept}

    def preprocessing(self) -> dict[str, Any]:
        size, mean, std = self.config.vision.image_size, list(MEAN), list(STD)
        return {"processor": "squash", "size": size, "interpolation": "bicubic", "mean": mean, "std": std}

    def _content(self) -> list[Any]:
        sizes = [self.config.vision.model_dump(), self.config.text.model_dump(), self.config.head]
        return [*sizes, tokenizer_content(self.tokenizer), self.cleaning.describe()]

    def _about_model(self) -> dict[str, Any]:
        config, vision, text = self.config, self.config.vision, self.config.text
        trained, size, tokenizer = config.trained_size, vision.image_size, type(self.tokenizer).__name__
        tables = "its own" if trained == size else f"interpolated from {trained} to {size} pixels"
        heads = list(vision.heads) if isinstance(vision.heads, tuple) else vision.heads
        layers = text.depth - text.fusion_layer
        return {
            "model": LAYOUTS[self.family].model,
            "library": f"transformers {transformers.__version__}",
            "stage": config.stage,
            "checkpoint": {"file": config.checkpoint, "size": trained, "tables": tables},
            "text": {"tokenizer": tokenizer, "padding": "longest", "cleaning": self.cleaning.describe()},
            "matching": {"head": config.head, "layers": layers, "adds_contrastive": False},
            "heads": {"image": heads, "text": text.heads},
            "activation": {"image": vision.activation, "text": text.activation},
            "temperature": config.temperature,
        }

    def _write(self, folder: Path) -> None:
        save_tensors(self.model.state_dict(), folder / _WEIGHTS)
        write_json(folder / _CONFIG, {"family": self.family, **self.config.model_dump(mode="json")})
        self.tokenizer.save_pretrained(folder)


class AlbefEncoder(OfficialEncoder):
    """ALBEF (Li et al., NeurIPS 2021) from a checkpoint of its authors."""

    family: ClassVar[str] = "albef"
    published_limit: ClassVar[int] = 30


class XvlmEncoder(OfficialEncoder):
    """X-VLM (Zeng et al., ICML 2022) from a checkpoint of its authors; an image's first token is the others' mean."""

    family: ClassVar[str] = "xvlm"
    published_limit: ClassVar[int] = 40


# From the names of transformers to the published ones; the text encoder's are the same.
_NAMES = {
    r"vision_model\.embeddings\.class_embedding": "visual_encoder.cls_token",
    r"vision_model\.embeddings\.position_embedding": "visual_encoder.pos_embed",
    r"vision_model\.embeddings\.patch_embedding\.(\w+)": r"visual_encoder.patch_embed.proj.\1",
    r"vision_model\.encoder\.layers\.(\d+)\.self_attn\.projection\.": r"visual_encoder.blocks.\1.attn.proj.",
    r"vision_model\.encoder\.layers\.(\d+)\.self_attn\.qkv\.": r"visual_encoder.blocks.\1.attn.qkv.",
    r"vision_model\.encoder\.layers\.(\d+)\.layer_norm(\d)\.": r"visual_encoder.blocks.\1.norm\2.",
    r"vision_model\.encoder\.layers\.(\d+)\.mlp\.": r"visual_encoder.blocks.\1.mlp.",
    r"vision_model\.post_layernorm\.": r"visual_encoder.norm.",
}


def _published_name(name: str) -> str:
    for ours, theirs in _NAMES.items():
        name = re.sub(f"^{ours}", theirs, name)
    return name


def blip_state_from_official(
    checkpoint: Checkpoint, declared: Configuration, stage: Stage = "fine-tuned"
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return a checkpoint of BLIP's authors as configuration and weights of ``BlipForImageTextRetrieval``."""
    kept = retrieval_weights(checkpoint, LAYOUTS["blip"], stage)
    seen, _ = vit_config(kept.part("visual_encoder."), declared.vision, None, stage)
    read = text_config(kept.part("text_encoder."), declared.text, fusion=False)
    config = {
        "image_text_hidden_size": kept.shape("vision_proj.weight", 2)[0],
        "text_config": {
            "vocab_size": read.vocabulary,
            "encoder_hidden_size": read.image_width,
            "max_position_embeddings": read.positions,
            "is_decoder": True,
            **read.layers(read.depth),
        },
        "vision_config": {
            "image_size": seen.image_size,
            "patch_size": seen.patch_size,
            "hidden_size": seen.width,
            "intermediate_size": seen.feed_forward,
            "num_hidden_layers": seen.depth,
            "num_attention_heads": seen.heads,
            "layer_norm_eps": seen.layer_norm_eps,
            "hidden_act": seen.activation,
        },
    }
    with torch.device("meta"):
        expected = transformers.BlipForImageTextRetrieval(transformers.BlipConfig(**config)).state_dict()
    names = {name: _published_name(name) for name in expected}
    side = seen.image_size // seen.patch_size

    def fitted(name: str, value: Tensor) -> Tensor:
        return position_table(value, side) if name == "pos_embed" else value

    return config, filled(expected, names, kept, LAYOUTS["blip"], fitted)


def open_official_blip(
    source: str | Path, *, tokenizer: Any = None, device: str | None = None
) -> BlipEncoder:
    """Load ``FILE``, a folder with one, or, on purpose, ``pretraining:FILE``: every number then says so."""
    stage, path = split_stage(source)
    found = read_checkpoint(path)
    sizes, weights = blip_state_from_official(found, configured(found), stage)
    words = tokenizer or find_tokenizer(None, found.folder)
    with torch.random.fork_rng(devices=[]):
        model = transformers.BlipForImageTextRetrieval(transformers.BlipConfig(**sizes))
    model.load_state_dict(weights, strict=True)
    size = sizes["vision_config"]["image_size"]
    processor = transformers.BlipImageProcessorPil(
        size={"height": size, "width": size}, image_mean=list(MEAN), image_std=list(STD)
    )
    return BlipEncoder(model, words, processor, found.name, device=device, stage=stage)
