"""How each CLIP-like model of transformers wants its texts, one declaration per model type.

Wrong padding is a silent error: SigLIP reads its sentence off the last position and was trained on
texts padded to the full length without a mask, so that shorter padding gives other rows, not an
error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from diptych.core.errors import MismatchError

_ENCODE_TOKEN = "[ENC]"


@dataclass(frozen=True)
class TextRule:
    """Padding and length of the texts of one model type.

    Attributes:
        padding: ``"longest"`` of the batch, or always ``"max_length"``.
        limit: tokens the model was trained with, where its configuration does not say so.
        mask: whether the model takes the attention mask.
        reserved: position rows that no token uses (RoBERTa numbers positions from pad id + 1).
    """

    padding: Literal["longest", "max_length"]
    limit: int | None = None
    mask: bool = True
    reserved: int = 0


TEXT_RULES: dict[str, TextRule] = {
    "clip": TextRule("longest"),
    "groupvit": TextRule("longest"),
    "metaclip_2": TextRule("longest"),
    "chinese_clip": TextRule("longest"),
    "altclip": TextRule("longest", reserved=2),
    "align": TextRule("max_length", limit=64),
    "siglip": TextRule("max_length", mask=False),
    "siglip2": TextRule("max_length", limit=64, mask=False),
}
"""By ``model_type`` of ``config.json``; these are the models the adapter knows."""


def encode_token(tokenizer: Any, vocabulary: int, name: str) -> int:
    """The id of [ENC], which stands first where BLIP reads a text with a picture.

    It is the tokenizer's, else the model's last row, which the published code added last.
    """
    known = tokenizer.get_vocab()
    if _ENCODE_TOKEN in known:
        return int(known[_ENCODE_TOKEN])
    if max(known.values()) >= vocabulary - 1:
        raise MismatchError(
            f"the tokenizer of {name} has {max(known.values()) + 1:,} tokens without {_ENCODE_TOKEN}, the model "
            f"{vocabulary:,}: none is left for it",
            "the tokenizer files are another model's: use its own",
        )
    return vocabulary - 1
