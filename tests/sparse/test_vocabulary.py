from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from tokenizers import Tokenizer, models

from diptych.core.errors import CaptionError, DataError, StorageError, UsageError
from diptych.encoders.embeddings import canonical_rows, term_fingerprint
from diptych.sparse.vocabulary import CONTINUATION, TermVocabulary, bert_tokenizer, learn_pieces, word_counts

PIECES = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *("a", "dog", "runs", "snow", "##board", "##ing", "##s", "on", ".", "red"),
]
DOG, RUNS, SNOW, BOARD, ING, S = (
    PIECES.index(term) for term in ("dog", "runs", "snow", "##board", "##ing", "##s")
)
CAPTIONS = ["A dog runs.", "Snowboarding dogs", "", "xylophone", "dog dog DOG"]


@pytest.fixture
def vocabulary():
    return TermVocabulary(bert_tokenizer(PIECES))


def of_rows(rows):
    return [rows.indices[rows.indptr[row] : rows.indptr[row + 1]].tolist() for row in range(rows.shape[0])]


def test_which_terms_a_caption_contains(vocabulary):
    rows = vocabulary.caption_terms(CAPTIONS)
    assert rows.shape == (5, len(PIECES))
    assert rows.dtype == np.float32
    assert set(rows.data) == {1.0}
    # Columns ascending; the unknown word and the empty caption have no terms, a repeated word one.
    assert of_rows(rows) == [[5, DOG, RUNS, 13], [DOG, SNOW, BOARD, ING, S], [], [], [DOG]]
    assert (canonical_rows(rows) != rows).nnz == 0
    assert canonical_rows(rows).has_canonical_format
    assert vocabulary.caption_terms([]).shape == (0, len(PIECES))
    start = "a " * 509  # only the first 512 tokens are read
    assert of_rows(vocabulary.caption_terms([start + "dog red", start + "a dog"])) == [[5, DOG], [5]]


def test_words_of_a_caption_with_their_columns(vocabulary):
    assert vocabulary.words_of("A SNOWBOARDING dog, Łódź.") == [
        *(("a", (5,)), ("snowboarding", (SNOW, BOARD, ING)), ("dog", (DOG,))),
        *((",", ()), ("łodz", ()), (".", (13,))),
    ]
    assert vocabulary.words_of("") == []
    tokenizer = bert_tokenizer(PIECES)
    tokenizer.normalizer = None  # one that leaves captions as they are
    assert TermVocabulary(tokenizer).words_of("DOG dogs") == [("DOG", ()), ("dogs", (DOG, S))]


def test_restricted_keeps_what_occurs_and_the_special_terms(vocabulary):
    small = vocabulary.restricted(["a dogs", "snow"])
    assert small.terms == (*PIECES[:5], "a", "dog", "snow", "##s")
    assert small.source_rows.tolist() == [0, 1, 2, 3, 4, 5, DOG, SNOW, S]
    assert small.special == {0, 1, 2, 3, 4}
    # Captions are cut as before: terms that are no columns any more are left out, nothing else moves in.
    assert of_rows(small.caption_terms(["snowboarding dogs", "red"])) == [[6, 7, 8], []]
    assert small.words_of("snowboarding red") == [("snowboarding", (7,)), ("red", ())]
    assert small.fingerprint != vocabulary.fingerprint
    # Restricted again, the rows are still those of the model.
    assert small.restricted(["snow"]).source_rows.tolist() == [0, 1, 2, 3, 4, SNOW]


def test_saved_and_loaded(vocabulary, tmp_path):
    for number, saved in enumerate((vocabulary, vocabulary.restricted(["Snowboarding dogs"]))):
        folder = tmp_path / str(number)
        folder.mkdir()
        saved.save(folder)
        loaded = TermVocabulary.load(folder)
        assert loaded.terms == saved.terms
        assert loaded.source_rows.tolist() == saved.source_rows.tolist()
        assert loaded.fingerprint == saved.fingerprint == term_fingerprint(saved.terms)
        assert of_rows(loaded.caption_terms(CAPTIONS)) == of_rows(saved.caption_terms(CAPTIONS))
        assert loaded.words_of("Snowboarding Dogs") == saved.words_of("Snowboarding Dogs")
        (folder / "terms.json").unlink()  # a folder without has all of the tokenizer's
        assert TermVocabulary.load(folder).terms == tuple(PIECES)


def test_a_corrupt_folder(tmp_path):
    whole = "\n".join([*PIECES, "dog"]).encode()
    no_terms = r"terms\.json is not a list of terms that tokenizer\.json has"
    terms = b'["dog", "unicorn"]', b'{"dog": 1}', b"[5]", b'["a", "a"]'
    for number, (name, content, message) in enumerate(
        (
            *(
                ("tokenizer.json", one, r"tokenizer\.json is not")
                for one in (b"{", b"[]", b'{"model": {}}', b"")
            ),
            *(("terms.json", one, no_terms) for one in terms),
            ("vocab.txt", b"dog\n[UNK]\n", r"lacks \[CLS\], \[SEP\]"),
            ("vocab.txt", whole, "has a term twice"),
            ("vocab.txt", b"\xff\xfe\x00", "not UTF-8"),
            ("other.txt", b"", r"neither tokenizer\.json nor vocab\.txt"),
        )
    ):
        (folder := tmp_path / str(number)).mkdir()
        if name == "terms.json":
            TermVocabulary(bert_tokenizer(PIECES)).save(folder)
        (folder / name).write_bytes(content)
        if name.endswith(".json"):
            refused(StorageError, message, TermVocabulary.load, folder)
        if name != "terms.json":
            refused(StorageError, message, TermVocabulary.pretrained, folder)


def test_what_has_no_terms(vocabulary, monkeypatch):
    import transformers

    refused(UsageError, "BPE tokenizer, terms need WordPiece", TermVocabulary, Tokenizer(models.BPE()))
    assert vocabulary.caption_terms("a dog").shape[0] == 1
    refused(CaptionError, "text 1 is a NoneType", vocabulary.caption_terms, ["a", None])
    for captions in ([], ["", " "], ["abc"]):
        refused(DataError, "no letter occurs 2 times", TermVocabulary.learned, captions, 100, 2)
    fix = refused(UsageError, "no/thing could not be loaded", TermVocabulary.pretrained, "no/thing").fix
    assert "hf download" in fix
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda name, **options: object())
    refused(UsageError, "cannot be saved as", TermVocabulary.pretrained, "some/characters")


def test_a_models_folder_with_a_tokenizer(vocabulary, tmp_path):
    from transformers import BertTokenizer

    tokenizer = BertTokenizer(vocab={piece: place for place, piece in enumerate(PIECES)})
    tokenizer.save_pretrained(tmp_path)
    read = TermVocabulary.pretrained(tmp_path)
    assert read.terms == tuple(PIECES)
    assert read.special == vocabulary.special
    assert of_rows(read.caption_terms(CAPTIONS)) == of_rows(vocabulary.caption_terms(CAPTIONS))
    # The ids are those that transformers gives, each once.
    given = [sorted(set(ids) - read.special) for ids in tokenizer(CAPTIONS)["input_ids"]]
    assert of_rows(read.caption_terms(CAPTIONS)) == given


def test_a_models_folder_with_a_vocab_txt(vocabulary, tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    read = TermVocabulary.pretrained(tmp_path)
    assert read.fingerprint == vocabulary.fingerprint
    assert of_rows(read.caption_terms(CAPTIONS)) == of_rows(vocabulary.caption_terms(CAPTIONS))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False}), encoding="utf-8")
    cased = TermVocabulary.pretrained(str(tmp_path))
    assert of_rows(cased.caption_terms(["DOG dog", "DOG"])) == [[DOG], []]


def test_learned_reads_every_word_of_its_captions():
    captions = ["Two dogs run.", "two dogs jump", "A dog runs", "café café"] * 2
    learned = TermVocabulary.learned(captions, 100, 1)
    assert learned.terms[:5] == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    assert learned.special == {0, 1, 2, 3, 4}
    for caption in captions:
        words = learned.words_of(caption)
        assert all(len(columns) == 1 for _, columns in words)
    assert [word for word, _ in learned.words_of("Café run.")] == ["cafe", "run", "."]
    # A new word is made of pieces and letters.
    (new,) = learned.words_of("Runo")
    assert new[0] == "runo"
    assert "".join(learned.terms[column].removeprefix("##") for column in new[1]) == "runo"
    assert len(new[1]) > 1
    assert TermVocabulary.learned(captions[::-1], 100, 1).terms == learned.terms


def test_a_vocabulary_of_words(vocabulary, tmp_path):
    captions = ["A dog runs.", "the dog, a red ball", "Dogs run on the snow!", "n dogs; red snow", "3 dogs"]
    words = TermVocabulary.of_words(captions, 9, 2)
    assert words.terms == ("dogs", "dog", "red", "snow")  # most frequent first, then by the alphabet
    assert words.special == set()
    assert of_rows(words.caption_terms([*captions[:2], "snowy dogs", ""])) == [[1], [1, 2], [0], []]
    assert words.words_of("a red dogma") == [("a", ()), ("red", (2,)), ("dogma", ())]
    assert TermVocabulary.of_words(captions, 2, 1).terms == ("dogs", "dog")
    words.save(tmp_path)
    assert TermVocabulary.load(tmp_path).terms == words.terms
    vocabulary._tokenizer.save(str(tmp_path / "tokenizer.json"))
    of_model = TermVocabulary.of_words(captions, 1, 1, tmp_path)  # of a model every word that it has
    assert of_model.terms == ("dog", "runs", "snow", "red")
    assert of_model.source_rows.tolist() == [DOG, RUNS, SNOW, PIECES.index("red")]
    refused(DataError, "no word occurs 5 times in 5 captions", TermVocabulary.of_words, captions, 9, 5)


def slow_pieces(counts, merges):
    """Every piece that a word is made of after so many joins, pairs counted anew each time."""
    words = {
        word: [letter if place == 0 else CONTINUATION + letter for place, letter in enumerate(word)]
        for word in counts
    }
    letters = {piece for word in words.values() for piece in word}
    for _ in range(merges):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, split in words.items():
            for left, right in pairwise(split):
                pairs[left, right] += counts[word]
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        for split in words.values():
            place = 0
            while place < len(split) - 1:
                if (split[place], split[place + 1]) == best:
                    split[place : place + 2] = [best[0] + best[1].removeprefix(CONTINUATION)]
                place += 1
    return letters | {piece for word in words.values() for piece in word}


def test_frequent_pairs_become_words_and_pieces_in_between_give_their_place_up():
    counts = {"a": 2, "cafe": 2, "-": 1, "dog": 1, ",": 1, "!": 1}  # lower case, no accents, marks apart
    assert word_counts(["A Café-dog, a cafe!", ""]) == Counter(counts)
    # "do" and "dog" are made on the way; nothing but "dog" and "dogs" is left in use.
    assert learn_pieces({"dog": 5, "dogs": 3, "cat": 1}, 8, 2) == ["dog", "dogs", "d", "##g", "##o", "##s"]


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=7), st.integers(1, 5), min_size=1, max_size=8),
    st.integers(6, 24),
)
def test_agrees_with_counting_pairs_anew_each_time(counts, size):
    found = set(learn_pieces(counts, size, 1))
    assert len(found) <= size
    known = []
    for merges in range(40):
        known.append(slow_pieces(counts, merges))
        if len(known[-1]) >= size:
            break
    assert found in known
