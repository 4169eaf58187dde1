from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diptych.core.errors import DataError, StorageError
from diptych.sparse.measures import StaticEmbedding, semantic_at
from diptych.sparse.vocabulary import TermVocabulary
from diptych.sparse.wordpiece import SPECIAL_TERMS, bert_tokenizer

PIECES = [*SPECIAL_TERMS, "dog", "mo", "##ped", "skate", "##board", "red"]
TABLE = {"dog": [1, 0, 0], "moped": [0, 2, 0], "mo": [0, 0, 3], "red": [1, 1, 0]}


@pytest.fixture
def vocabulary() -> TermVocabulary:
    return TermVocabulary(bert_tokenizer(PIECES))


@pytest.fixture
def words(tmp_path: Path) -> StaticEmbedding:
    np.savez(tmp_path / "glove.npz", words=np.array(list(TABLE)), vectors=np.array(list(TABLE.values())))
    return StaticEmbedding.open(str(tmp_path / "glove.npz"))


def test_terms_that_begin_a_word_have_its_vector(words: StaticEmbedding, vocabulary: TermVocabulary) -> None:
    vectors = words.of_terms(vocabulary.terms, vocabulary.special)
    known = {vocabulary.terms[row]: vectors[row].tolist() for row in np.flatnonzero(vectors.any(axis=1))}
    assert known == {"dog": [1, 0, 0], "mo": [0, 0, 3], "red": [1, 1, 0]}
    assert words.name.startswith("word vectors glove.npz ")


def test_captions_say_words_not_pieces(words: StaticEmbedding, vocabulary: TermVocabulary) -> None:
    said = words.of_captions(["A red moped", "a dog dog on a skateboard", ""], vocabulary)
    rows = said.rows.toarray()
    text = [{said.words[column] for column in np.flatnonzero(row)} for row in rows]
    assert {"red", "moped"} <= text[0]
    assert {"dog", "skateboard"} <= text[1]
    assert text[2] == set()
    assert rows.max() == 1
    place = {word: number for number, word in enumerate(said.words)}
    assert said.vectors[place["moped"]].tolist() == [0, 2, 0]
    assert said.vectors[place["skateboard"]].tolist() == [0, 0, 0]  # this file knows no pieces
    spoken = int(rows.sum())
    known = sum(row[place[word]] for row in rows for word in ("red", "moped", "dog"))
    assert said.unknown == pytest.approx(1 - known / spoken)


def test_pieces_make_words_where_pieces_have_vectors(vocabulary: TermVocabulary) -> None:
    table = {"skate": 0, "##board": 1, "mo": 2}
    model = StaticEmbedding(
        "model", table, np.array([[1, 0], [3, 2], [5, 5]], dtype=np.float32), of_pieces=True
    )
    word = model.of_word("skateboard", ["skate", "##board"])
    assert word is not None
    assert word.tolist() == [2, 1]
    assert model.of_word("moped", ["mo", "##ped"]) is None  # one piece is not known
    assert model.of_word("?", []) is None
    assert not model.of_terms(["##board"]).any()


def test_a_piece_counts_where_the_caption_has_its_word(
    words: StaticEmbedding, vocabulary: TermVocabulary
) -> None:
    column = {term: number for number, term in enumerate(vocabulary.terms)}
    weights = np.zeros((2, len(vocabulary)), dtype=np.float32)
    weights[:, [column["##ped"], column["##board"], column["dog"]]] = [3, 2, 1]
    from scipy.sparse import csr_array

    captions = ["red moped", "skateboard"]
    found = semantic_at(
        csr_array(weights),
        vocabulary.caption_terms(captions),
        words.of_terms(vocabulary.terms, vocabulary.special),
        3,
        words=words.of_captions(captions, vocabulary),
    )
    # ##ped is the moped's, ##board nobody's, a dog is 45° from red; ##board is the skateboard's alone
    assert found == pytest.approx([(1 + 0 + np.sqrt(0.5)) / 3, 1 / 3])


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(
        StorageError,
        match=r"gone\.npz does not exist \(check the path.*word vectors",
    ):
        StaticEmbedding.open(str(tmp_path / "gone.npz"))
    with pytest.raises(DataError, match="must be finite rows"):
        StaticEmbedding("broken", {"a": 0}, np.array([[np.nan]], dtype=np.float32))


def test_no_captions_and_no_words(words: StaticEmbedding, vocabulary: TermVocabulary) -> None:
    said = words.of_captions([""], vocabulary)
    assert said.rows.shape == (1, 0)
    assert said.unknown == 0
    assert said.vectors.shape == (0, 3)


def test_the_input_embeddings_of_a_model(tmp_path: Path, vocabulary: TermVocabulary) -> None:
    import torch
    from transformers import DistilBertConfig, DistilBertForMaskedLM

    torch.manual_seed(0)
    config = DistilBertConfig(vocab_size=len(PIECES), dim=8, n_layers=1, n_heads=2, hidden_dim=8)
    model = DistilBertForMaskedLM(config)
    model.save_pretrained(tmp_path / "tiny")
    (tmp_path / "tiny" / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    found = StaticEmbedding.open(str(tmp_path / "tiny"))
    inputs = model.get_input_embeddings().weight.detach().numpy()
    assert found.name.startswith("input embeddings of tiny ")
    vectors = found.of_terms(vocabulary.terms, vocabulary.special)
    for column, term in enumerate(vocabulary.terms):
        without = column in vocabulary.special or term.startswith("##")
        wanted = np.zeros(8) if without else inputs[PIECES.index(term)]
        assert np.array_equal(vectors[column], wanted), term
    said = found.of_captions(["moped"], vocabulary)
    assert said.words == ["moped"]
    pieces = inputs[[PIECES.index("mo"), PIECES.index("##ped")]]
    assert said.vectors[0] == pytest.approx(pieces.mean(axis=0))
