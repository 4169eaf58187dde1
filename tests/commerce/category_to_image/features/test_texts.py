"""Encoders of texts by name, and their rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from tiny_catalogue import tiny_catalogue

from diptych.commerce.category_to_image.features import learning_texts
from diptych.commerce.category_to_image.features.maker import make_text_encoder, text_rows
from diptych.core.errors import UsageError
from diptych.encoders.targets import TargetModel

from ....encoders.targets.tiny_sentence import sentence_folder

TEXTS = ["red dress", "red ring", "blue dress", "blue coat", "green coat", "grey belt", "a grey ring", "red"]


class Lengths(TargetModel):
    """(length of the text, 1), and a count of what was asked."""

    kind: ClassVar[str] = "lengths"
    width = 2
    fingerprint = "fedcba9876543210"

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def describe(self) -> dict[str, Any]:
        return {}

    def _rows(self, texts: list[str]) -> np.ndarray:
        self.seen.update(texts)
        return np.array([[len(text), 1.0] for text in texts])

    def _write(self, folder: Path) -> dict[str, Any]:
        return {}


def test_rows_of_texts(tmp_path: Path) -> None:
    model = Lengths()
    texts = ["ab", "", "abc", "ab", "  ", "abcd"]
    rows = text_rows(model, texts, tmp_path, "titles")
    assert isinstance(rows, np.memmap)
    assert rows.dtype == np.float32
    for text, row in zip(texts, rows, strict=True):
        expected = [len(text), 1] / np.hypot(len(text), 1) if text.strip() else [0, 0]
        np.testing.assert_allclose(row, expected, atol=1e-6)
    assert model.seen == {"ab": 1, "abc": 1, "abcd": 1}
    assert np.array_equal(text_rows(model, texts[::-1], tmp_path, "titles"), rows[::-1])
    assert model.seen.total() == 3
    assert text_rows(model, [], tmp_path, "titles").shape == (0, 2)


def test_width_is_lowered_and_said(tmp_path: Path) -> None:
    wide = make_text_encoder("lsa", TEXTS, root=tmp_path)
    assert wide.width < len(TEXTS)
    assert wide.describe()["asked_width"] == 256
    narrow = make_text_encoder("lsa:3", TEXTS, root=tmp_path)
    assert narrow.width == 3
    assert "asked_width" not in narrow.describe()


def test_lsa_is_learned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from diptych.encoders.targets.kinds.lsa import LatentSemanticAnalysis

    first = make_text_encoder("lsa:3", TEXTS, root=tmp_path)
    monkeypatch.delattr(LatentSemanticAnalysis, "learn")
    again = make_text_encoder("lsa:3", [*TEXTS, " "], root=tmp_path)
    assert again.fingerprint == first.fingerprint
    with pytest.raises(AttributeError):
        make_text_encoder("lsa:3", TEXTS[:-1], root=tmp_path)


def test_a_damaged_model_is_learned_again(tmp_path: Path) -> None:
    first = make_text_encoder("lsa:3", TEXTS, root=tmp_path)
    (weights,) = tmp_path.rglob("lsa.safetensors")
    weights.write_bytes(weights.read_bytes()[:40])
    assert make_text_encoder("lsa:3", TEXTS, root=tmp_path).fingerprint == first.fingerprint


@pytest.mark.parametrize(
    ("source", "texts", "message"),
    [
        ("lsa", [], "lsa without texts"),
        ("lsa", ["", "  "], "lsa without texts"),
        ("lsa:many", TEXTS, "lsa of width 'many'"),
        ("lsa:0", TEXTS, "lsa of width '0'"),
        ("lsa", ["red"], "width"),
        ("nowhere", TEXTS, "neither a folder nor a name"),
    ],
)
def test_what_cannot_be_made(source: str, texts: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        make_text_encoder(source, texts, root=tmp_path)


def test_a_sentence_encoder(tmp_path: Path) -> None:
    folder = sentence_folder(tmp_path / "sentence")
    model = make_text_encoder(f"sentence:{folder}", root=tmp_path)
    assert (model.kind, model.width) == ("sentence", 24)
    rows = text_rows(model, ["a red dog", "", "two dogs"], tmp_path, "titles")
    np.testing.assert_allclose(rows[[0, 2]], model.encode(["a red dog", "two dogs"]), atol=1e-5)
    assert not rows[1].any()  # and not what the encoder makes of nothing


def test_what_is_learned_from(tmp_path: Path) -> None:
    texts = learning_texts(tiny_catalogue(tmp_path))
    assert texts[0] == "Red dresse no. 0. colour: red. material: cotton"
    assert texts[10].startswith("colour: green")  # has no title
    assert "Accessories" in texts
    assert len(texts) == 24 + 10  # "Clothing" and "Accessories" stand twice in the tree
