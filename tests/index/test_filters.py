"""Metadata of items: kept with the index, and searches restricted by it, on every local engine."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fulfilling import conditions, entries_of, lets_through, records
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from diptych.core.errors import DataError, StorageError, UnknownNameError, UsageError
from diptych.data.records import RecordTable
from diptych.index import build_index, open_index

RECORDS = [
    {"category": "hats", "price": 10, "maker": {"city": "Gouda"}},
    {"category": "shoes", "price": 12.5, "colours": ["red", "blue"]},
    {"category": "shoes", "price": 30, "colours": ["blue"], "sold": True},
    {"category": "coats", "price": 40, "sold": False},
]
LOCAL = ["exact", "hnsw", "inverted", "impacts", "cascade"]
SPARSE = LOCAL[2:]


@pytest.fixture(params=LOCAL)
def build(request, make_embeddings, make_bags):
    def make(rows=None, records=None, **more):
        embeddings = (make_bags if request.param in SPARSE else make_embeddings)(rows, **more)
        return build_index(embeddings, request.param, records=records)

    return make


@settings(max_examples=150, deadline=None)
@given(st.lists(records, min_size=1, max_size=6), st.lists(records, max_size=3), conditions)
def test_any_condition_lets_through_what_it_says(stored, added, where):
    table = RecordTable([json.dumps(record) for record in stored])
    for _ in range(2):  # as built, then with more at the end of columns that were read already
        expected = [row for row, record in enumerate(stored) if lets_through(record, where)]
        if all(any(entries_of(record, field) for record in stored) for field in where):
            assert np.flatnonzero(table.mask(where)).tolist() == expected
        else:
            refused(UsageError, "no item has a field", table.mask, where)
        stored = stored + added
        table.append(map(json.dumps, added))


def test_searches_are_restricted_as_items_come_and_go(build, tmp_path):
    index = build(np.eye(4) + 1, RECORDS)
    query = [[5, 6, 7, 8]]

    def found(where, of=None, k=9):
        return (of or index).search(query, k, where=where).ids[0]

    assert found({"category": "shoes"}) == ["image-2", "image-1"]
    assert found({"category": "shoes"}, k=1) == ["image-2"]
    assert found({"category": ["hats", "coats"], "price": {"lt": 40}}) == ["image-0"]
    assert found({"colours": "blue", "sold": True}) == ["image-2"]
    assert found({"maker.city": "Gouda"}) == ["image-0"]
    assert found({"category": "coats", "sold": True}) == []
    exact = index.engine_name != "impacts"
    if exact:
        hits = index.search_exact(query, 9, where={"price": {"gte": 30}})
        assert hits.ids == [["image-3", "image-2"]]
        assert hits.requested == 9
    index.delete(["image-2"])
    assert found({"category": "shoes"}) == ["image-1"]
    if index.engine().can_add:
        index.add(["new", "plain"], np.ones((2, 4)), records=[{"category": "shoes", "season": 1}, {}])
        assert found({"category": "shoes"}) == ["image-1", "new"]
        assert found({"season": 1}) == ["new"]
        index.add(["image-0"], np.ones((1, 4)), replace=True)  # without metadata, as it was given
        refused(UsageError, "no item has a field 'shape'", found, {"shape": 1})
        assert found({"category": "hats"}) == []
        assert dict(index.records["new"]) == {"category": "shoes", "season": 1}
        assert index.rebuild().search(query, 9, where={"season": 1}).ids == [["new"]]
    opened = open_index(index.save(tmp_path / "index"))
    for one in (index, opened):
        assert found({"category": "coats"}, one) == ["image-3"]
        assert dict(one.records) == {name: one.records[name] for name in one.ids}
        assert one.records["image-3"] == RECORDS[3]
    again = open_index(opened.save(tmp_path / "index"))
    assert dict(again.records) == dict(opened.records)


def test_filtered_search_finds_what_a_small_index_of_these_items_finds(build, make_embeddings, make_bags):
    count, rng = 3000, np.random.default_rng(3)
    groups = rng.choice(4, count, p=[0.001, 0.049, 0.25, 0.7]).tolist()
    index = build(records=[{"group": group} for group in groups], count=count)
    queries = index._take(np.arange(20)) if index.engine_name != "impacts" else make_bags(count=20).rows
    for group in range(4):
        names = [f"image-{row}" for row in range(count) if groups[row] == group]
        hits = index.search(queries, 10, where={"group": group})
        assert {name for ids in hits.ids for name in ids} <= set(names)
        if index.engine_name in ("exact", "inverted"):
            few = type(index).build(
                index._embedded(names, index._take(np.flatnonzero(np.equal(groups, group))))
            )
            alone = few.search(queries, 10)
            assert list(hits.ids) == list(alone.ids)
            np.testing.assert_array_equal(hits.scores, alone.scores)
        elif index.engine_name == "hnsw":
            truth = index.search_exact(queries, 10, where={"group": group})
            assert hits.found.tolist() == truth.found.tolist()
            shared = [len(set(one) & set(two)) for one, two in zip(hits.ids, truth.ids, strict=True)]
            assert sum(shared) >= 0.97 * truth.found.sum()


def test_what_is_refused(build, make_bags, tmp_path):
    index = build(np.eye(4) + 1, RECORDS)
    query = np.ones((1, 4))
    for where, said in (
        *((where, "holds no condition") for where in ({}, "shoes")),
        ({"category": []}, "lets nothing through"),
        ({"category": None}, "can be no item's value"),
        ({"price": float("nan")}, "can be no item's value"),
        *(({"price": wrong}, "is no range") for wrong in ({"above": 3}, {"gte": "3"}, {})),
        ({"": 1}, "is not the name of a field"),
        ({"categroy": 1}, r"no item has a field 'categroy' \(fields of the items: category, colours, maker"),
    ):
        refused(UsageError, said, index.search, query, 1, where=where)
    for metadata, said in (
        ([{}], "metadata of 1 items given for 4"),
        ([{}, {"x": {1}}, {}, {}], "'image-1' is not JSON"),
        ([{"x": float("nan")}, {}, {}, {}], "'image-0' is not JSON"),
        ([{"x": "\ud800"}, {}, {}, {}], "'image-0' is not JSON"),
    ):
        refused(DataError, said, build, np.eye(4), metadata)
    bare = build(np.eye(4) + 1)
    refused(UsageError, "have no metadata", bare.search, query, 1, where={"a": 1})
    assert dict(bare.records) == {name: {} for name in bare.ids}
    folder = index.save(tmp_path / "index")
    line = (folder / "records.utf8").read_bytes()
    (folder / "records.utf8").write_bytes(b"[" + line[1:])
    opened = open_index(folder)  # not read yet
    refused(StorageError, "metadata", opened.search, query, 1, where={"price": 10})


def test_an_engine_without_metadata_refuses_it(make_bags):
    pytest.importorskip("seismic", reason="the extra 'engines' is not installed")
    bags = make_bags(count=20)
    refused(UnknownNameError, "records", build_index, bags, "seismic", records=[{}] * 20)
    index = build_index(bags, "seismic")
    refused(UnknownNameError, "where", index.search, bags.rows[:1], 1, where={"a": 1})
    refused(UnknownNameError, "where", index.search_exact, bags.rows[:1], 1, where={"a": 1})
