"""Rankers that need no training: BM25 over titles, a sentence encoder, CLIP; a kind per file of :mod:`kinds`."""

from diptych.commerce.category_to_image.rankers.declaration import RANKERS, RankerKind, make_ranker

__all__ = ["RANKERS", "RankerKind", "make_ranker"]
