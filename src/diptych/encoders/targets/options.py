"""Where latent targets come from, as a recipe says it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class TargetOptions(BaseModel):
    """Which model makes the vectors.

    Attributes:
        kind: ``sentence``, a sentence-transformers model; ``lsa``, TF-IDF and a truncated SVD learned
            from the training captions, for where there is no sentence encoder; ``dual``, the text side of a
            dual encoder.
        model: of ``sentence``: a folder, or a name on the hub; of ``dual``: what ``DualEncoder.load`` takes.
        precision: of ``sentence``: ``float32``, or ``bfloat16`` arithmetic: two to three times as fast
            on processors that have it; all-MiniLM-L6-v2's rows turn by up to 2e-5 in 1 − cosine.
        width: of ``lsa``: length of a vector.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str = "sentence"
    model: str = "sentence-transformers/all-MiniLM-L6-v2"
    precision: Literal["float32", "bfloat16"] = "float32"
    width: int = Field(384, ge=2)
