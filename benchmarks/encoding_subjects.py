"""What encoding is measured on: pictures in files, captions, and encoders of random weights."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from diptych.data.collection import Collection
from diptych.data.images import FolderSource
from diptych.data.loading import read_ahead

__all__ = ["CLIP_SHAPES", "captions_like_flickr", "clip", "mobilenet", "pictures", "pictures_are"]

_GIVEN = "DIPTYCH_BENCH_PICTURES"
_ENDINGS = {".jpg", ".jpeg", ".png", ".webp"}
_WORDS = 4096
_DRAWN = 256

CLIP_SHAPES: dict[str, dict[str, Any]] = {
    "ViT-B/32": {},
    "ViT-L/14": {
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "patch_size": 14,
    },
}
"""What differs from transformers' default vision tower, which is that of ViT-B/32."""


def pictures_are() -> str:
    """A phrase for the table."""
    given = os.environ.get(_GIVEN)
    return f"pictures of ${_GIVEN}" if given else "generated JPEG pictures of 500 × 375 pixels"


def pictures(count: int, folder: Path) -> Collection:
    """``count`` pictures without captions: those of ``$DIPTYCH_BENCH_PICTURES``, or generated into ``folder``.

    Where there are fewer, or more than 256 are to be generated, they come again under other ids.
    """
    given = os.environ.get(_GIVEN)
    root = Path(given) if given else folder
    if given:
        names = sorted(file.name for file in root.iterdir() if file.suffix.lower() in _ENDINGS)
    else:
        names = [f"{row}.jpg" for row in range(min(count, _DRAWN))]
        list(read_ahead(lambda row: _draw(row).save(root / names[row], quality=88), range(len(names))))
    return Collection(
        name="benchmark",
        image_ids=[f"{row}" for row in range(count)],
        captions=[],
        caption_ids=[],
        caption_image=np.empty(0, dtype=np.int64),
        splits=["test"] * count,
        source=FolderSource(root, names),
        source_rows=np.arange(count) % len(names),
    )


def _draw(seed: int) -> Image.Image:
    """Soft patches of colour with the noise of a camera, about 60 kB as a JPEG."""
    random = np.random.default_rng(seed)
    patches = Image.fromarray(random.integers(0, 256, (24, 32, 3), dtype=np.uint8))
    smooth = np.asarray(patches.resize((500, 375), Image.Resampling.BICUBIC), dtype=np.float32)
    noisy = smooth + random.normal(0, 8, smooth.shape)
    return Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))


def captions_like_flickr(count: int, seed: int = 0) -> list[str]:
    """Sentences as long as Flickr8k's: 11.8 words on average, 3.9 the spread, 3 to 38."""
    random = np.random.default_rng(seed)
    lengths = np.clip(np.rint(random.normal(11.8, 3.9, count)), 3, 38).astype(int)
    return [" ".join(f"w{word}" for word in random.integers(0, _WORDS, length)) for length in lengths]


def clip(shape: str) -> Any:
    """A CLIP of random weights behind a tokenizer of whole words; 224 pixels."""
    import torch
    import transformers as library
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    from diptych.encoders.huggingface import HuggingFaceEncoder

    torch.manual_seed(0)
    names = ["<begin>", "<end>", "<unknown>", *(f"w{word}" for word in range(_WORDS))]
    words = Tokenizer(models.WordLevel({name: place for place, name in enumerate(names)}, "<unknown>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(
        single="<begin> $A <end>", special_tokens=[("<begin>", 0), ("<end>", 1)]
    )
    tokenizer = library.PreTrainedTokenizerFast(
        tokenizer_object=words,
        bos_token="<begin>",
        eos_token="<end>",
        pad_token="<end>",
        unk_token="<unknown>",
        model_max_length=77,
    )
    text = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    config = library.CLIPConfig(text_config=text, vision_config=CLIP_SHAPES[shape])
    model = library.CLIPModel(config)
    processor = library.CLIPImageProcessorPil()
    return HuggingFaceEncoder(model, tokenizer, processor, f"random CLIP {shape}", device="cpu")


def mobilenet() -> Any:
    """A two-tower encoder with a MobileNetV2 of random weights; 224 pixels."""
    import torch

    from diptych.data.vocabulary import Vocabulary
    from diptych.encoders.two_tower import ModelConfig, TwoTowerEncoder, TwoTowerModel

    torch.manual_seed(0)
    config = ModelConfig.model_validate(
        {"width": 512, "image": {"backbone": "mobilenetv2_100"}, "text": {"min_count": 1}}
    )
    vocabulary = Vocabulary.build([f"w{word}" for word in range(_WORDS)], 1)
    encoder = TwoTowerEncoder(TwoTowerModel(config, vocabulary), vocabulary)
    encoder.to(torch.device("cpu"))
    encoder.model.eval()
    return encoder
