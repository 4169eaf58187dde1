"""Tiny random models in the layouts of transformers and open_clip, made from a seed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from diptych.core.errors import ImageError
from diptych.data.images import Patch

CAPTIONS = [
    "a dog on the left of a red cube",
    "ball",
    "the cat sees a green ball and a blue cube on the right",
    "a red dog",
    "two dogs",
    "",
]
"""Of different lengths, one of them empty."""

WORDS = "[PAD] [UNK] [CLS] [SEP] a dog dogs cat ball cube red green blue on the left right of and sees two"


@dataclass(frozen=True)
class Square:
    """A block of one colour at (left, top) = (3, 5), ``side`` pixels wide."""

    side: int = 8
    colour: int = 200

    @property
    def key(self) -> str:
        return f"square {self.side} {self.colour}"

    def patches(self, width: int, height: int) -> Sequence[Patch]:
        if 3 + self.side > width or 5 + self.side > height:
            raise ImageError(f"a square of {self.side} does not fit {width} × {height}")
        block = np.full((self.side, self.side, 3), self.colour, dtype=np.uint8)
        return [Patch(3, 5, block)] if self.side else []


def pictures(count: int = 5, seed: int = 0) -> list[Image.Image]:
    """Blocks of random colours, of different sizes."""
    generator = np.random.default_rng(seed)
    made = []
    for row in range(count):
        blocks = generator.integers(0, 256, (4, 5, 3), dtype=np.uint8)
        made.append(Image.fromarray(blocks).resize((40 + 7 * row, 36 + 3 * row), Image.Resampling.BICUBIC))
    return made


def noise(width: int, height: int, seed: int = 0) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


def clip_tokenizer(limit: int = 16) -> Any:
    """Byte-level BPE with three merges."""
    from transformers import CLIPTokenizer

    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in printable]
    symbols = [chr(byte) for byte in printable] + [chr(256 + place) for place in range(len(rest))]
    names = [*symbols, *(symbol + "</w>" for symbol in symbols), "do", "dog</w>", "re"]
    names += ["<|startoftext|>", "<|endoftext|>"]
    return CLIPTokenizer(
        vocab={name: place for place, name in enumerate(names)},
        merges=[("d", "o"), ("do", "g</w>"), ("r", "e")],
        model_max_length=limit,
    )


def word_tokenizer(begin: str, end: str, pad: str, limit: int) -> Any:
    """One token per word, with the given special tokens first; ``begin`` may be empty."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = [name for name in dict.fromkeys((begin, pad, end, "<unk>")) if name]
    names = [*special, *WORDS.split()[4:], *"xyz"]
    tokenizer = Tokenizer(models.WordLevel({name: place for place, name in enumerate(names)}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}".strip(),
        special_tokens=[(name, names.index(name)) for name in (begin, end) if name],
    )
    extra = {"bos_token": begin} if begin else {}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        eos_token=end,
        pad_token=pad,
        model_max_length=limit,
        **extra,
    )


def bert_tokenizer() -> Any:
    """WordPiece over a few words."""
    from transformers import BertTokenizer

    names = [
        *WORDS.split(),
        *"abcdefghijklmnopqrstuvwxyz",
        *(f"##{letter}" for letter in "abcdefghijklmnopqrs"),
    ]
    return BertTokenizer(vocab={name: place for place, name in enumerate(dict.fromkeys(names))})


def letter_tokenizer(limit: int) -> Any:
    """SigLIP 2's, which knows letters alone here; the library has a class of its own for it."""
    from tokenizers import processors
    from transformers import Siglip2Tokenizer

    names = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "▁", *"abcdefghijklmnopqrstuvwxyz"]
    vocabulary = {name: place for place, name in enumerate(names)}
    tokenizer = Siglip2Tokenizer(vocab=vocabulary, merges=[], model_max_length=limit, padding_side="right")
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A <eos>", special_tokens=[("<eos>", 1)]
    )
    return tokenizer


_TEXT = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
_VISION = {**_TEXT, "image_size": 32, "patch_size": 8}


def transformers_model(kind: str, seed: int = 0, limit: int = 16) -> tuple[Any, Any, Any]:
    """A model of one kind with its tokenizer and image processor; ``limit`` is CLIP's, in tokens."""
    import torch
    import transformers as library

    torch.manual_seed(seed)
    crop = {"height": 32, "width": 32}
    processor = library.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=crop)
    if kind in ("clip", "groupvit", "metaclip_2"):
        tokenizer = clip_tokenizer(limit)
        ids = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
        text = {
            **_TEXT,
            **ids,
            "pad_token_id": tokenizer.pad_token_id,
            "vocab_size": len(tokenizer),
            "max_position_embeddings": limit,
        }
        vision: dict[str, Any] = {**_VISION}
        if kind == "groupvit":
            stages = {"depths": [2, 1, 1], "num_group_tokens": [4, 2, 0], "num_output_groups": [4, 2, 2]}
            vision |= {**stages, "num_hidden_layers": 4}
        names = {"clip": "CLIP", "groupvit": "GroupViT", "metaclip_2": "MetaClip2"}
        options = {"projection_dim": 24}
        if kind == "groupvit":
            options["projection_intermediate_dim"] = 48
    elif kind == "siglip":
        tokenizer = word_tokenizer("", "</s>", "</s>", 12)
        ids = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id}
        text = {**_TEXT, **ids, "vocab_size": len(tokenizer), "max_position_embeddings": 12}
        vision, names, options = {**_VISION}, {"siglip": "Siglip"}, {}
        processor = library.SiglipImageProcessorPil(size=crop)
    elif kind == "altclip":
        tokenizer = word_tokenizer("<s>", "</s>", "<pad>", 77)
        text = {**_TEXT, "vocab_size": len(tokenizer), "max_position_embeddings": 18, "project_dim": 20}
        vision, names, options = {**_VISION}, {"altclip": "AltCLIP"}, {"projection_dim": 24}
    elif kind == "align":
        tokenizer = bert_tokenizer()
        text = {**_TEXT, "vocab_size": len(tokenizer), "max_position_embeddings": 80}
        vision = {
            "image_size": 32,
            "kernel_sizes": [3, 3],
            "in_channels": [32, 16],
            "out_channels": [16, 24],
            "hidden_dim": 24,
            "width_coefficient": 1.0,
            "strides": [1, 2],
            "num_block_repeats": [1, 1],
            "expand_ratios": [1, 6],
            "depthwise_padding": [],
        }
        names, options = {"align": "Align"}, {"projection_dim": 24}
        processor = library.EfficientNetImageProcessorPil(size=crop)
    elif kind == "chinese_clip":
        tokenizer = bert_tokenizer()
        text = {**_TEXT, "vocab_size": len(tokenizer), "max_position_embeddings": 16}
        vision, names, options = {**_VISION}, {"chinese_clip": "ChineseCLIP"}, {"projection_dim": 24}
        processor = library.ChineseCLIPImageProcessorPil(size=crop, do_center_crop=False)
    elif kind == "siglip2":
        tokenizer = letter_tokenizer(64)
        ids = {"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0}
        text = {**_TEXT, **ids, "vocab_size": len(tokenizer), "max_position_embeddings": 64}
        vision = {**_TEXT, "patch_size": 8, "num_patches": 16}
        names, options = {"siglip2": "Siglip2"}, {}
        processor = library.Siglip2ImageProcessorPil(patch_size=8, max_num_patches=16)
    elif kind == "blip":
        tokenizer = bert_tokenizer()
        # Two more than the tokenizer has: [DEC] and [ENC], which the library's checkpoints do not name.
        text = {
            **_TEXT,
            "vocab_size": len(tokenizer) + 2,
            "max_position_embeddings": 40,
            "encoder_hidden_size": 24,
            "bos_token_id": len(tokenizer),
            "pad_token_id": tokenizer.pad_token_id,
            "sep_token_id": tokenizer.sep_token_id,
        }
        vision = {**_VISION, "hidden_size": 24}
        options = {"image_text_hidden_size": 20}
        processor = library.BlipImageProcessorPil(size=crop)
        names = {"blip": "Blip"}
    else:
        raise ValueError(kind)
    config = getattr(library, f"{names[kind]}Config")(text_config=text, vision_config=vision, **options)
    task = "ForImageTextRetrieval" if kind == "blip" else "Model"
    model = getattr(library, f"{names[kind]}{task}")(config).eval()
    with torch.no_grad():
        # Larger weights than an untrained model has, so that different inputs give different rows.
        for name, weight in model.named_parameters():
            if weight.ndim > 1:
                weight.normal_(0.0, 0.2 if "embed" not in name else 0.5)
    return model, tokenizer, processor


def transformers_folder(kind: str, folder: Path, seed: int = 0, limit: int = 16) -> Path:
    """The files of such a model."""
    for part in transformers_model(kind, seed, limit):
        part.save_pretrained(folder)
    return folder


OPEN_CLIP_CONFIG: dict[str, Any] = {
    "embed_dim": 24,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "head_width": 8, "patch_size": 8},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 4, "layers": 2},
}


def open_clip_folder(folder: Path, seed: int = 0, **changes: Any) -> Path:
    """The files of a tiny open_clip model; ``changes`` go into its configuration."""
    import open_clip
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(seed)
    config = {**OPEN_CLIP_CONFIG, **changes}
    kind = open_clip.CustomTextCLIP if config.get("custom_text") else open_clip.CLIP
    model = kind(**{key: value for key, value in config.items() if key != "custom_text"})
    folder.mkdir(parents=True, exist_ok=True)
    save_file(model.state_dict(), folder / "open_clip_model.safetensors")
    statistics = {"mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4]}
    content = {"model_cfg": config, "preprocess_cfg": statistics}
    (folder / "open_clip_config.json").write_text(json.dumps(content))
    return folder
