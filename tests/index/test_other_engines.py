"""That the contract carries engines unlike ours: sparse, with ragged lists, that cannot add or delete."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.core.errors import UsageError
from diptych.core.files import write_json
from diptych.core.reading import read_json
from diptych.index import ENGINES, Engine, Hits, Index, Recall, build_index, open_index


class PostingLists(Index):
    """Which item has which term with which weight; drops all but the heaviest posting of a term."""

    engine_name = "toy-posting-lists"

    def __init__(self, ids, postings, **said):
        super().__init__(**said)
        self.ids, self.postings = ids, postings

    @classmethod
    def _build(cls, embeddings, options, about):
        dense = embeddings.rows.toarray()
        postings = [
            sorted(((float(-row[term]), slot) for slot, row in enumerate(dense) if row[term]))
            for term in range(embeddings.width)
        ]
        return cls(
            list(embeddings.ids),
            postings,
            encoder=embeddings.encoder,
            width=embeddings.width,
            options=options,
            about=about,
        )

    def _lists(self, queries, k, depth):
        found = []
        for query in queries.toarray():
            scores = {}
            for term in np.flatnonzero(query).tolist():
                for weight, slot in self.postings[term][:depth]:
                    scores[slot] = scores.get(slot, 0) - weight * float(query[term])
            found.append(sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:k])
        table = np.full((len(found), max(map(len, found))), -np.inf, dtype=np.float32)
        for row, pairs in enumerate(found):
            table[row, : len(pairs)] = [score for _, score in pairs]
        return Hits([[self.ids[slot] for slot, _ in pairs] for pairs in found], table, k)

    def _search(self, queries, k, options):
        return self._lists(queries, k, depth=1)

    def _search_exact(self, queries, k):
        return self._lists(queries, k, depth=None)

    def _write(self, folder):
        write_json(folder / "postings.json", [self.ids, self.postings])

    @classmethod
    def _read(cls, folder, header):
        ids, postings = read_json(folder / "postings.json")
        return cls(
            ids,
            postings,
            encoder=header.encoder,
            width=header.width,
            options=header.options,
            about=header.about,
        )

    def _add(self, ids, vectors):
        raise NotImplementedError

    def _delete(self, ids):
        raise NotImplementedError

    def __len__(self):
        return len(self.ids)

    def __contains__(self, item_id):
        return item_id in self.ids

    def rebuild(self, *, sample=None, **options):
        raise NotImplementedError


@pytest.fixture
def index(make_bags, monkeypatch):
    declared = Engine(
        name="toy-posting-lists",
        description="posting lists",
        index=PostingLists,
        approximate=True,
        vectors="sparse",
        can_add=False,
        can_delete=False,
    )
    ENGINES.names()  # discover the real ones first
    monkeypatch.setattr(ENGINES, "_members", {**ENGINES._members, declared.name: declared})
    rows = [[1, 0, 0, 0], [3, 1, 0, 0], [0, 0, 2, 0]]
    return build_index(make_bags(rows), declared.name, sample=np.eye(4)[:3])


def test_lists_of_different_lengths_are_not_padded(index):
    hits = index.search_exact([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], 5)
    assert list(hits) == [[("image-1", 4.0), ("image-0", 1.0)], [("image-2", 2.0)], []]
    assert hits.found.tolist() == [2, 1, 0]
    assert "3 of 3 queries have fewer (the fewest: 0)" in hits.note


def test_its_recall_is_measured_on_what_there_is_to_find(index):
    # Term 0 has two items of which it finds one; terms 1 and 2 have one item each.
    assert Recall(**index.about["recall"]).value == pytest.approx((1 / 2 + 1 + 1) / 3)


def test_what_it_cannot_do_is_refused(index):
    with pytest.raises(UsageError, match="the toy-posting-lists engine cannot add items"):
        index.add(["new"], np.ones((1, 4)))
    with pytest.raises(UsageError, match="the toy-posting-lists engine cannot delete items"):
        index.delete(["image-0"])


def test_it_is_saved_and_opened_by_its_name(index, tmp_path):
    opened = open_index(index.save(tmp_path / "index"))
    assert type(opened) is PostingLists
    assert list(opened.search(np.eye(4), 2)) == list(index.search(np.eye(4), 2))
