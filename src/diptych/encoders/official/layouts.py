"""What a checkpoint is, told by the names of its weights, and which of them retrieval needs.

The published loaders take any file and leave what does not fit random (``strict=False``): a pre-training
checkpoint that is evaluated directly has a random text encoder and a recall near chance. Here a file is
what its names say, and what is asked for has to be that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from torch import Tensor

from diptych.core.errors import MismatchError, StorageError

Stage: TypeAlias = Literal["fine-tuned", "pre-training"]
"""Whether a checkpoint was fine-tuned for retrieval, or is what fine-tuning starts from."""

_DROPPED = re.compile(r"\w+_m\.|(image|text|idx)_queue$|(queue_ptr|ptr_queue)$")
"""Momentum copies and queues."""

FOLLOWING = re.compile(r".*\.(position_ids|relative_position_index|attn_mask)$")
"""Tables that follow from the sizes: they are made, not read."""

_PRE_TRAINING_HEADS = re.compile(r"text_encoder\.cls\.|(bbox|mlm|mim)_head\.|text_decoder\.")
"""What only pre-training uses."""


@dataclass(frozen=True)
class Layout:
    """The names of one model.

    Attributes:
        model: what papers call it.
        family: what ``DualEncoder.load`` calls it.
        vision: before the names of the image encoder.
        pre_training: before names that only a checkpoint of pre-training has.
    """

    model: str
    family: str
    vision: str
    pre_training: str

    @property
    def named(self) -> str:
        """The model with its article."""
        return f"a {self.model}" if self.model == "BLIP" else f"an {self.model}"


LAYOUTS = {
    "albef": Layout("ALBEF", "albef", "visual_encoder.", "text_encoder.bert."),
    "xvlm": Layout("X-VLM", "xvlm", "vision_encoder.", "text_encoder.bert."),
    "blip": Layout("BLIP", "blip", "visual_encoder.", "text_decoder."),
}
"""By family."""


def looks_like(names: Mapping[str, object]) -> str:
    """What a file with these weights is: ``"albef"``, ``"xvlm"``, ``"blip"``, ``"clip"``, ``"blip of
    transformers"``, ``"vit"``, ``"swin"``, ``"bert"``, or ``""``."""

    def some(pattern: str) -> bool:
        return any(re.match(pattern, name) for name in names)

    swin = r"(patch_embed\.norm|layers\.\d+\.blocks)\."
    if some("visual_encoder\\."):
        blip = some(r"text_decoder\.|text_encoder\.encoder\.layer\.0\.crossattention\.")
        return "blip" if blip else "albef"
    if some("vision_encoder\\."):
        return "xvlm" if some(r"vision_encoder\." + swin) else ""
    if some("vision_model\\.") and some(r"text_encoder\."):
        return "blip of transformers"
    if "logit_scale" in names or some(r"visual\.|vision_model\."):
        return "clip"
    if some(swin):
        return "swin"
    if some(r"blocks\.\d+\.attn\.qkv"):
        return "vit"
    return "bert" if some(r"(bert\.)?embeddings\.word_embeddings\.") else ""


_ADVICE = {
    "albef": ("an ALBEF checkpoint", "load it with albef:FILE"),
    "xvlm": ("an X-VLM checkpoint", "load it with xvlm:FILE"),
    "blip": ("a BLIP checkpoint in its authors' layout", "load it with blip:FILE"),
    "blip of transformers": ("a BLIP model of transformers", "load its folder with blip:FOLDER"),
    "clip": ("a CLIP-like model", "load its folder, or with open_clip:ARCHITECTURE/FILE"),
    "vit": ("an image encoder (ViT) alone", "give the checkpoint of the whole model"),
    "swin": ("an image encoder (Swin) alone", "give the checkpoint of the whole model"),
    "bert": ("a text encoder (BERT) alone", "give the checkpoint of the whole model"),
}


def advice(found: str, file: str | Path = "FILE") -> tuple[str, str]:
    """What a checkpoint is that :func:`looks_like` says ``found`` of, and how to load ``file``."""
    what, fix = _ADVICE.get(found, ("none that is known", "only checkpoints of ALBEF, X-VLM and BLIP are"))
    return what, fix.replace("FILE", str(file))


def is_pre_training(names: Mapping[str, object], family: str) -> bool:
    """Whether a checkpoint of ``family`` is one that fine-tuning starts from."""
    return any(name.startswith(LAYOUTS[family].pre_training) for name in names)


def listed(names: list[str], most: int = 3) -> str:
    """How many names, and the first of them."""
    return f"{len(names)} ({', '.join(names[:most])}{', …' if len(names) > most else ''})"


def retrieval_weights(
    state: Mapping[str, Tensor], layout: Layout, stage: Stage, source: str
) -> dict[str, Tensor]:
    """The weights that retrieval uses and what follows from them, by the names of a fine-tuned checkpoint."""
    found = looks_like(state)
    if found != layout.family:
        what, fix = advice(found)
        if not found:
            what = f"{what}, with {listed(sorted(state))}"
        raise MismatchError(f"{source} is not {layout.named} checkpoint: it looks like {what}", fix)
    parts = (layout.vision, "text_encoder.", "vision_proj.", "text_proj.", "itm_head.")
    missing = [part for part in parts if not any(name.startswith(part) for name in state)]
    if missing:
        raise StorageError(
            f"{source} lacks what retrieval needs: {', '.join(f'{part}*' for part in missing)}",
            "it is of another task, or cut off: give the checkpoint that was fine-tuned for retrieval",
        )
    pre_training = is_pre_training(state, layout.family)
    if pre_training and stage == "fine-tuned":
        raise MismatchError(
            f"{source} is {layout.named} checkpoint of pre-training (it holds {layout.pre_training}*), "
            "not one fine-tuned for retrieval",
            f"on purpose, load it with {layout.family}:pretraining:FILE or stage='pre-training': "
            "every number then says so",
        )
    if not pre_training and stage == "pre-training":
        raise MismatchError(
            f"{source} is a fine-tuned {layout.model} checkpoint (it holds no {layout.pre_training}*), "
            "not one of pre-training",
            f"load it with {layout.family}:FILE or stage='fine-tuned'",
        )
    kept = {name: value for name, value in state.items() if not _DROPPED.match(name)}
    if pre_training:
        kept = {
            name.replace("text_encoder.bert.", "text_encoder.", 1): value
            for name, value in kept.items()
            if not _PRE_TRAINING_HEADS.match(name)
        }
    return kept
