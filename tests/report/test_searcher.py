"""A searcher of an index: own terms and their rarity, captions, what is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from refusals import refused
from scipy.sparse import csr_array

from diptych.core.errors import MismatchError, UsageError
from diptych.data import read_collection
from diptych.encoders.embeddings import SparseEmbeddings, term_fingerprint
from diptych.index import build_index, open_index
from diptych.report.searcher import CollectionCaptions, OwnTerms, Searcher, query_type

TERMS = ["red", "green", "star", "cross"]
ROWS = np.array([[1, 0, 2, 0], [1, 1, 0, 0], [3, 0, 0, 1], [0, 0, 1, 2]], dtype=np.float32)


class Words:
    """A vocabulary whose terms are whole words."""

    fingerprint = term_fingerprint(TERMS)

    def caption_terms(self, texts):
        return csr_array(
            [[float(term in text.split()) for term in TERMS] for text in texts], dtype=np.float32
        )


@pytest.fixture
def bags():
    ids = [f"image-{row}" for row in range(len(ROWS))]
    return SparseEmbeddings(ids, csr_array(ROWS), TERMS, "head-a", "data-a", "image", {})


@pytest.mark.parametrize("engine", ["inverted", "cascade"])
def test_own_terms_weigh_by_their_rarity(bags, engine):
    """Rows are summed by BM25's log(1 + (n − df + ½) / (df + ½)), worked out by hand."""
    index = build_index(bags, engine)
    (found,) = Searcher(index, OwnTerms(Words(), index)).find("a red star")
    rarity = {"red": np.log(1 + 1.5 / 3.5), "star": np.log(1 + 2.5 / 2.5)}
    scores = ROWS @ np.array([rarity["red"], 0, rarity["star"], 0])
    assert [hit.name for hit in found.hits] == [f"image-{row}" for row in np.argsort(-scores, kind="stable")]
    np.testing.assert_allclose([hit.score for hit in found.hits], np.sort(scores)[::-1], rtol=1e-6)


def test_another_vocabulary_and_engines_that_count_no_terms_are_refused(bags):
    other = build_index(replace(bags, terms=TERMS[::-1]))
    refused(MismatchError, "another vocabulary", OwnTerms, Words(), other)
    refused(UsageError, "does not count terms", OwnTerms, Words(), build_index(bags, "impacts"))


def test_captions_are_kept_and_the_nearest_is_shown(bags, tmp_path):
    captions = {
        "image-0": ["a green cross", "a red star", "nothing"],
        "image-3": ["odd \ud800\n"],
        "other": [],
    }
    index = build_index(bags)
    index.captions = captions
    opened = open_index(index.save(tmp_path / "index"))
    captions = {name: captions.get(name, []) for name in index.ids}  # those of the items
    assert len(opened.captions) == len(index)
    assert "other" not in opened.captions
    for one in (opened, open_index(opened.save(tmp_path / "copy")), opened.rebuild()):
        assert dict(one.captions) == captions
    (found,) = Searcher(opened, OwnTerms(Words(), opened)).find("star", k=3, least=0.5)
    assert [(hit.name, hit.text) for hit in found.hits] == [
        ("image-0", "a red star"),
        ("image-3", "odd \ud800\n"),
    ]
    assert [row[2].text for row in found.table().rows] == ["image-0", "image-3"]


def test_vectors_need_no_encoder_and_sentences_do(bags, tmp_path):
    searcher = Searcher(build_index(bags))
    np.save(tmp_path / "rows.npy", ROWS[:2])
    found = searcher.find(str(tmp_path / "rows.npy"), k=1)
    assert [one.query[-3:] for one in found] == ["[0]", "[1]"]
    assert [one.hits[0].name for one in found] == ["image-0", "image-2"]
    refused(UsageError, "no encoder for the query 'star'", searcher.find, "star")
    refused(MismatchError, "width 3", searcher.find, str(_saved(tmp_path / "wide.npy", np.ones(3))))
    assert [query_type(one) for one in ("a.PNG", "b.npy", "two dogs", "end.")] == [
        "image",
        "vectors",
        "text",
        "text",
    ]


def _saved(path, rows):
    np.save(path, rows)
    return path


def test_captions_of_a_collection_are_those_of_each_image_or_each_caption_itself(scenes_folder):
    collection = read_collection(scenes_folder)
    of_images, of_texts = (CollectionCaptions(collection, kind) for kind in ("image", "text"))
    assert list(of_images) == list(collection.image_ids)
    assert of_images[collection.image_ids[3]] == list(collection.captions_of(3))
    assert len(of_texts) == collection.n_captions
    assert of_texts[collection.caption_ids[7]] == [collection.captions[7]]
