"""Dual encoders: towers trained here, pretrained families, embeddings and the feature store."""

from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import Embeddings

__all__ = ["DualEncoder", "Embeddings"]
