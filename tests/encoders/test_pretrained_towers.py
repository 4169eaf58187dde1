from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import CaptionError, UsageError
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.pretrained import PretrainedEncoder, shortened

from .tiny_pretrained import CAPTIONS, open_clip_folder, pictures

KINDS = ["clip", "siglip", "altclip", "align", "groupvit", "chinese_clip", "metaclip_2", "open_clip"]
LONG = "a dog on the left of a red cube sees two cats and a green ball on the right of a blue cube"
ENDING = "0 1 2 3 4 5"


@pytest.mark.parametrize("kind", KINDS)
def test_towers_give_the_encoders_rows(kind: str, encoders: Callable[[str], Any]) -> None:
    encoder = encoders(kind)
    towers = encoder.towers
    texts = [caption for caption in CAPTIONS if caption]
    inputs = towers.text.inputs(texts)
    pixels = np.stack([towers.image.prepare(picture, 0) for picture in pictures()])
    towers.image.eval(), towers.text.eval()
    with torch.no_grad():
        images = towers.image(torch.from_numpy(pixels)).numpy()
        rows = towers.text(*inputs.batch(np.arange(len(texts)))).numpy()
        alone = towers.text(*inputs.batch(np.array([1]))).numpy()
    np.testing.assert_allclose(images, encoder.encode_images(pictures()), atol=1e-5)
    np.testing.assert_allclose(rows, encoder.encode_texts(texts), atol=1e-5)
    np.testing.assert_allclose(alone[0], rows[1], atol=1e-5)
    assert encoder.width == rows.shape[1]


@pytest.mark.parametrize("kind", KINDS)
def test_every_weight_belongs_to_one_side(kind: str, encoders: Callable[[str], Any]) -> None:
    encoder = encoders(kind)
    towers = encoder.towers
    given = [*towers.image.named_parameters(), *towers.text.named_parameters()]
    own = dict(encoder.model.named_parameters())
    for name, parameter in given:
        assert own[name] is parameter
    assert set(own) - {name for name, _ in given} <= {"logit_scale", "logit_bias", "temperature"}
    assert all(name.startswith("vis") for name, _ in towers.image.named_parameters())


def test_weights_without_a_side_are_named(sources: Callable[[str], Path]) -> None:
    encoder = DualEncoder.load(sources("clip"), device="cpu")
    assert isinstance(encoder, PretrainedEncoder)
    encoder.model.fusion = torch.nn.Linear(2, 2)
    with pytest.raises(UsageError, match=r"has weights of neither side, e\.g\. fusion\.weight"):
        _ = encoder.towers
    del encoder.model.fusion
    encoder.model.text_projection.weight = encoder.model.visual_projection.weight
    with pytest.raises(UsageError, match="weights that both sides share"):
        _ = encoder.towers


@pytest.mark.parametrize("kind", ["clip", "siglip", "altclip", "open_clip"])
def test_endings_are_tokens_of_their_own(kind: str, encoders: Callable[[str], Any]) -> None:
    """Token for token what the library makes of the joined text; without endings nothing changes."""
    encoder = encoders(kind)
    inputs = encoder.towers.text.inputs(["ball", "a red dog", "dog"])
    rows = np.array([2, 0, 1])
    endings = ["", "1 2", "3 0"]
    tokens, lengths = inputs.batch(rows, endings)
    joined = ["dog", "ball 1 2", "a red dog 3 0"]
    assert encoder.with_endings(["dog", "ball", "a red dog"], endings) == joined
    for row, length, text in zip(tokens, lengths, joined, strict=True):
        np.testing.assert_array_equal(row[: int(length)], encoder.token_ids([text])[0])
    again = inputs.batch(rows, ["", "", ""])
    for got, expected in zip(again, inputs.batch(rows), strict=True):
        torch.testing.assert_close(got, expected, rtol=0, atol=0)
    with torch.no_grad():
        np.testing.assert_allclose(
            encoder.towers.text(tokens, lengths).numpy(), encoder.encode_texts(joined), atol=1e-5
        )


def tokens_of(encoder: PretrainedEncoder, word: str) -> list[int]:
    """The ids of a word, without the special ones."""
    ids = encoder.token_ids([word])[0].tolist()
    return ids[1:-1]


@pytest.mark.parametrize("kind", ["clip", "open_clip", "open_clip_77"])
def test_the_limit_cuts_the_text_and_not_its_ending(
    kind: str, encoders: Callable[[str], Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if kind == "open_clip_77":
        text_cfg = {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 4, "layers": 2}
        loaded = DualEncoder.load(open_clip_folder(tmp_path / "long", text_cfg=text_cfg), device="cpu")
        assert isinstance(loaded, PretrainedEncoder)
        encoder, caption, limit = loaded, " ".join([LONG] * 6), 77
    else:
        encoder, caption, limit = encoders(kind), LONG, 16
    digits = [token for word in ENDING.split() for token in tokens_of(encoder, word)]
    assert len(set(digits)) == 6
    cut_off = encoder.token_ids([f"{caption} {ENDING}"])[0].tolist()
    assert len(cut_off) == limit
    assert cut_off[-7:-1] != digits  # what happens without care

    with caplog.at_level(logging.WARNING):
        inputs = encoder.towers.text.inputs([caption, "dog"])
        for _ in range(2):
            tokens, lengths = inputs.batch(np.array([0, 1]), [ENDING, ENDING])
    first = tokens[0, : int(lengths[0])].tolist()
    start, end = encoder.token_ids(["dog"])[0][[0, -1]].tolist()
    assert len(first) <= limit
    assert first[0] == start
    assert first[-7:] == [*digits, end]
    assert tokens[1, : int(lengths[1])].tolist()[-7:] == [*digits, end]
    # As many of the caption's words as fit: one more would not.
    words = caption.split()
    kept = encoder.with_endings([caption], [ENDING])[0].removesuffix(f" {ENDING}").split()
    assert kept == words[: len(kept)]
    assert len(encoder.token_ids([" ".join(words[: len(kept) + 1]) + f" {ENDING}"])[0]) == limit
    assert encoder.token_ids([" ".join(words[: len(kept) + 1]) + f" {ENDING}"])[0].tolist()[-7:-1] != digits
    assert caplog.text.count("of 2 captions of a batch are shortened") == 1


def at_most(letters: int) -> object:
    return lambda text: len(text) <= letters


def test_an_ending_that_never_fits_is_named() -> None:
    with pytest.raises(CaptionError, match="'0 1 2' is longer"):
        shortened("a dog", "0 1 2", at_most(4))  # type: ignore[arg-type]


@given(
    st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=12).map(" ".join),
    st.integers(4, 60),
)
def test_as_much_as_fits_and_no_more(text: str, letters: int) -> None:
    result = shortened(text, "7 7", at_most(letters))  # type: ignore[arg-type]
    assert len(result) <= letters
    assert result.endswith("7 7")
    kept = result[:-3].rstrip()
    assert text.startswith(kept)
    rest = text[len(kept) :]
    if rest and text.split()[0] in kept.split():
        next_word = rest.split()[0]
        assert len(f"{kept} {next_word} 7 7") > letters
