"""X-VLM: a Swin Transformer, and a BERT whose upper half reads the picture."""

from __future__ import annotations

from typing import ClassVar

from diptych.encoders.official.encoder import OfficialEncoder


class XvlmEncoder(OfficialEncoder):
    """X-VLM (Zeng et al., ICML 2022) from a checkpoint of its authors.

    The first token of a picture is the mean of the others, which the matching head reads with them.

    >>> encoder = XvlmEncoder.from_checkpoint("itr_coco.th")  # doctest: +SKIP
    >>> encoder.encode_texts(["two dogs on a beach"])  # doctest: +SKIP
    """

    family: ClassVar[str] = "xvlm"
    published_limit: ClassVar[int] = 40
