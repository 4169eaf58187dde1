from __future__ import annotations

import json

import numpy as np
import pytest

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.encoders.sparse_embeddings import term_fingerprint
from diptych.index import ENGINES, build_index, open_index
from diptych.index.storage import Header


def test_the_exact_engine_of_each_kind_is_the_default(make_embeddings, make_bags):
    assert build_index(make_embeddings()).engine_name == "exact"
    assert build_index(make_bags()).engine_name == "inverted"


def test_the_wrong_kind_is_refused_and_suitable_engines_are_named(make_embeddings, make_bags):
    with pytest.raises(
        UsageError, match=r"inverted engine indexes sparse vectors, these are dense \(200 of.*exact"
    ):
        build_index(make_embeddings(), "inverted")
    for name in ("exact", "hnsw"):
        with pytest.raises(UsageError, match=f"the {name} engine indexes dense.*cascade, impacts, inverted"):
            build_index(make_bags(), name)


def test_terms_travel_with_the_index(make_bags, tmp_path):
    bags = make_bags(width=12)
    for name in ("inverted", "impacts", "cascade"):
        index = build_index(bags, name)
        opened = open_index(index.save(tmp_path / name))
        for one in (index, opened):
            assert one.terms == tuple(bags.terms)
            assert one.about["vocabulary"] == bags.vocabulary == term_fingerprint(bags.terms)
            one.check_vocabulary(bags.vocabulary)


def test_a_rebuilt_index_has_the_terms(make_bags):
    index = build_index(make_bags()).rebuild()
    assert index.terms[3] == "term-3"
    index.check_vocabulary(make_bags().vocabulary)


def test_another_vocabulary_is_refused(make_bags):
    index = build_index(make_bags(width=5))
    query = np.ones((1, 5))
    assert index.search(query, 1, vocabulary=index.about["vocabulary"]).found.tolist() == [1]
    for call in (
        lambda: index.check_vocabulary("other"),
        lambda: index.search(query, 1, vocabulary="other"),
        lambda: index.search_exact(query, 1, vocabulary="other"),
        lambda: index.add(["new"], query, vocabulary="other"),
    ):
        with pytest.raises(MismatchError, match=r"an index opened with another vocabulary: .* over other"):
            call()
    assert "new" not in index


def test_a_dense_index_has_no_vocabulary(make_embeddings):
    index = build_index(make_embeddings())
    assert index.terms == ()
    with pytest.raises(UsageError, match="exact engine holds dense vectors, which have no vocabulary"):
        index.search(np.ones((1, 16)), 1, vocabulary="any")


def test_terms_that_are_not_those_of_the_header(make_bags, tmp_path):
    folder = build_index(make_bags(width=3)).save(tmp_path / "index")
    terms = json.loads((folder / "terms.json").read_text())
    header = Header.open(folder)
    header.about["vocabulary"] = term_fingerprint([*terms[:2], "another"])
    header.write_header(folder)
    with pytest.raises(StorageError, match=r"terms.json: the 3 terms of vocabulary"):
        open_index(folder)


def test_every_sparse_engine_says_so():
    sparse = {engine.name for engine in ENGINES if engine.vectors == "sparse"}
    assert {"inverted", "impacts", "cascade"} <= sparse
    assert not sparse & {"exact", "hnsw"}
