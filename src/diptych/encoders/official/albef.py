"""ALBEF: a ViT, and a BERT whose upper half reads the picture."""

from __future__ import annotations

from typing import ClassVar

from diptych.encoders.official.encoder import OfficialEncoder


class AlbefEncoder(OfficialEncoder):
    """ALBEF (Li et al., NeurIPS 2021) from a checkpoint of its authors.

    >>> encoder = AlbefEncoder.from_checkpoint("flickr30k.pth")  # doctest: +SKIP
    >>> encoder.encode_texts(["two dogs on a beach"])  # doctest: +SKIP
    """

    family: ClassVar[str] = "albef"
    published_limit: ClassVar[int] = 30
