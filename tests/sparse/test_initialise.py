from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.sparse.initialise import read_head, starting_weights, term_vectors
from diptych.sparse.options import HeadOptions
from diptych.sparse.vocabulary import TermVocabulary
from diptych.sparse.wordpiece import bert_tokenizer

from .tiny_masked import PIECES, WIDTH, masked_folder, masked_model

CAPTIONS = ["a dog runs.", "dogs on snow", "a red dog", "a dog on red snow"]


@pytest.fixture
def vocabulary() -> TermVocabulary:
    return TermVocabulary(bert_tokenizer(PIECES))


def parts(kind: str) -> dict[str, np.ndarray]:
    """The head's weights as the layouts name them."""
    state = {name: weight.numpy() for name, weight in masked_model(kind).state_dict().items()}
    if kind == "bert":
        norm, output = "cls.predictions.transform.LayerNorm", "cls.predictions"
        embeddings = state["bert.embeddings.word_embeddings.weight"]
    else:
        norm, output = "vocab_layer_norm", "vocab_projector"
        embeddings = state["distilbert.embeddings.word_embeddings.weight"]
    found = {"embeddings": embeddings, "bias": state[f"{output}.bias"]}
    return found | {"weight": state[f"{norm}.weight"], "shift": state[f"{norm}.bias"]}


@pytest.mark.parametrize("kind", ["bert", "distilbert"])
def test_a_masked_language_models_own_head(kind: str, tmp_path: Path) -> None:
    folder = masked_folder(kind, tmp_path)
    vocabulary = TermVocabulary.pretrained(folder)
    start = starting_weights(vocabulary, HeadOptions(width=99), [], 0, folder)
    expected = parts(kind)
    assert start.width == WIDTH
    assert start.start == "mlm"
    np.testing.assert_array_equal(start.projector, expected["embeddings"])
    assert start.bias is not None
    assert start.norm_weight is not None
    assert start.norm_bias is not None
    np.testing.assert_array_equal(start.bias, expected["bias"])
    np.testing.assert_array_equal(start.norm_weight, expected["weight"])
    np.testing.assert_array_equal(start.norm_bias, expected["shift"])


def test_a_restricted_vocabulary_takes_its_rows(tmp_path: Path) -> None:
    folder = masked_folder("distilbert", tmp_path)
    vocabulary = TermVocabulary.pretrained(folder).restricted(CAPTIONS)
    start = starting_weights(vocabulary, HeadOptions(), CAPTIONS, 0, str(folder))
    expected = parts("distilbert")
    rows = [PIECES.index(term) for term in vocabulary.terms]
    assert len(rows) < len(PIECES)
    np.testing.assert_array_equal(start.projector, expected["embeddings"][rows])
    np.testing.assert_array_equal(start.bias, expected["bias"][rows])
    plain = starting_weights(vocabulary, HeadOptions(bias=False), CAPTIONS, 0, folder)
    assert plain.bias is None
    assert plain.norm_bias is not None


def test_a_model_without_its_head_gives_its_embeddings(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = masked_model("bert")
    masked_folder("bert", tmp_path)
    model.bert.save_pretrained(tmp_path)
    vocabulary = TermVocabulary.pretrained(tmp_path)
    start = starting_weights(vocabulary, HeadOptions(), [], 0, tmp_path)
    np.testing.assert_array_equal(start.projector, parts("bert")["embeddings"])
    assert start.norm_weight is None
    assert start.norm_bias is None
    assert start.bias is not None
    assert not start.bias.any()
    assert "saved without its head" in caplog.text


def test_a_vocabulary_of_another_model(vocabulary: TermVocabulary, tmp_path: Path) -> None:
    masked_model("bert", terms=9).save_pretrained(tmp_path)
    with pytest.raises(MismatchError, match=r"a term at row 14 of .* which has 9 rows"):
        starting_weights(vocabulary, HeadOptions(), [], 0, tmp_path)


def test_a_model_of_another_kind(tmp_path: Path) -> None:
    masked_folder("bert", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": "gpt2"}))
    with pytest.raises(UsageError, match="is a 'gpt2' model"):
        read_head(tmp_path)


def test_a_models_weights_are_missing_or_damaged(tmp_path: Path) -> None:
    masked_folder("distilbert", tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(StorageError, match="cannot be read"):
        read_head(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(StorageError, match="holds no weights"):
        read_head(tmp_path)


def test_weights_without_the_embeddings_are_not_made_up(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    masked_folder("bert", tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    kept = {name: weight for name, weight in state.items() if weight.shape != (len(PIECES), WIDTH)}
    assert len(kept) < len(state)
    save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(StorageError, match="lacks the embeddings"):
        read_head(tmp_path)


def test_a_name_that_is_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    def refuse(name: str, **options: object) -> None:
        raise OSError(f"{name} is not a local folder and is not a valid model identifier")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", refuse)
    with pytest.raises(UsageError, match="somebody/nothing could not be loaded"):
        read_head("somebody/nothing")


def test_co_occurrence_is_what_starts_without_a_model(vocabulary: TermVocabulary) -> None:
    start = starting_weights(vocabulary, HeadOptions(width=6), CAPTIONS, 3)
    assert start.start == "cooccurrence"
    assert start.norm_weight is start.norm_bias is None
    assert start.bias is not None
    assert start.bias.shape == (len(PIECES),)
    np.testing.assert_array_equal(start.projector, term_vectors(vocabulary.caption_terms(CAPTIONS), 6, 3))
    assert starting_weights(vocabulary, HeadOptions(bias=False), CAPTIONS, 3).bias is None


def test_a_random_start_is_drawn_as_berts_is(vocabulary: TermVocabulary) -> None:
    options = HeadOptions(width=400, start="random")
    start = starting_weights(vocabulary, options, CAPTIONS, 1)
    assert start.projector.shape == (len(PIECES), 400)
    assert start.projector.dtype == np.float32
    assert start.projector.std() == pytest.approx(0.02, rel=0.05)
    assert abs(start.projector.mean()) < 0.002
    np.testing.assert_array_equal(start.projector, starting_weights(vocabulary, options, [], 1).projector)
    assert not np.array_equal(start.projector, starting_weights(vocabulary, options, [], 2).projector)


def test_mlm_needs_a_model(vocabulary: TermVocabulary) -> None:
    options: Any = HeadOptions(start="mlm")
    with pytest.raises(UsageError, match="needs a masked language model"):
        starting_weights(vocabulary, options, CAPTIONS, 0)
