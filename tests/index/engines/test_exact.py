from __future__ import annotations

import numpy as np

from diptych.index import build_index, open_index
from diptych.index.engines.exact import ExactIndex


def is_mapped(array):
    while array is not None and not isinstance(array, np.memmap):
        array = array.base
    return array is not None


def test_built_rows_are_not_copied_and_saved_ones_are_mapped(make_embeddings, tmp_path):
    embeddings = make_embeddings(count=50)
    index = ExactIndex.build(embeddings)
    _, block = next(index._rows().blocks())
    assert np.shares_memory(block, embeddings.rows)
    folder = index.save(tmp_path / "index")
    for saved in (index, open_index(folder)):
        _, block = next(saved._rows().blocks())
        assert is_mapped(block)


def test_saving_drops_tombstones(make_embeddings, tmp_path):
    index = ExactIndex.build(make_embeddings(np.eye(4)))
    index.delete(["image-1"])
    assert index.tombstones == 1
    index.save(tmp_path / "index")
    assert index.tombstones == 0
    assert index.ids == ["image-0", "image-2", "image-3"]
    assert np.load(tmp_path / "index" / "rows.npy").shape == (3, 4)
    assert index.search(np.eye(4)[1:2] + np.eye(4)[3:], 1).ids == [["image-3"]]


def test_against_a_sorted_product(make_embeddings):
    embeddings = make_embeddings(count=3000, width=40)
    queries = embeddings.rows[::300] + 0.1
    hits = build_index(embeddings).search(queries, 25)
    product = queries.astype(float) @ embeddings.rows.T.astype(float)
    order = np.argsort(-product, axis=1)[:, :25]
    assert [list(ids) for ids in hits.ids] == [[f"image-{row}" for row in best] for best in order.tolist()]
    np.testing.assert_allclose(hits.scores, np.take_along_axis(product, order, 1), rtol=1e-5, atol=1e-6)
