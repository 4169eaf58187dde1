"""The Qdrant engines in this process and against a server of this machine."""

from __future__ import annotations

import importlib.util
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_server import qdrant_server
from refusals import refused
from scipy.sparse import csr_array

from diptych.core.errors import DataError, MismatchError, StorageError, UsageError
from diptych.index import build_index, open_index
from diptych.index.engines.qdrant import point_id
from diptych.index.storage import Header

from .rows import bags, random_rows

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("qdrant_client") is None,
    reason="qdrant-client (the extra 'qdrant') is not installed",
)

RECORDS = [
    {"category": "shoes", "price": 20, "colours": ["red", "blue"], "maker": {"city": "Delft"}, "sold": True},
    {"category": "hats", "price": 35.5, "colours": ["red"], "maker": {"city": "Gouda"}, "sold": False},
    {"category": "shoes", "price": 50, "colours": [], "maker": {"city": "Gouda"}, "sold": True},
    {"category": "bags", "price": 20, "colours": ["black"], "maker": {"city": "Delft"}, "sold": None},
]


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("QDRANT_API_KEY", raising=False)


@pytest.fixture
def server():
    with qdrant_server() as running:
        yield running


@pytest.fixture(params=["in-process", "server"])
def where_to(request):
    """The options of each kind of place."""
    if request.param == "in-process":
        yield {}
    else:
        with qdrant_server() as running:
            yield {"url": running.url, "batch": 3}


def make_bags(rows):
    return bags(csr_array(np.asarray(rows, dtype=np.float32)))


def test_it_finds_what_exact_search_finds(where_to, make_embeddings):
    embeddings = make_embeddings(count=40, width=8)
    index, exact = build_index(embeddings, "qdrant", **where_to), build_index(embeddings)
    mine, best = index.search(embeddings.rows[:7], 5), exact.search(embeddings.rows[:7], 5)
    assert list(mine.ids) == list(best.ids)
    np.testing.assert_allclose(mine.scores, best.scores, rtol=1e-5)
    assert mine.scores.dtype == np.float32
    assert list(index.search_exact(embeddings.rows[:7], 5).ids) == list(best.ids)
    assert index.about["recall"]["value"] == 1.0
    assert index.ids == list(embeddings.ids)
    hits = index.search(embeddings.rows[:1], 100)
    assert hits.found.tolist() == [40]
    assert "fewer" in hits.note
    where_to |= {"collection": "longer"} if where_to else {}
    index = build_index(make_embeddings([[3, 0], [0, 0.5]]), "qdrant", **where_to)  # rows are not scaled
    assert list(index.search([[2, 4]], 2)) == [[("image-0", 6.0), ("image-1", 2.0)]]


def test_upserts_deletions_and_their_order(where_to, make_embeddings):
    index = build_index(make_embeddings(np.eye(4)), "qdrant", **where_to)
    with pytest.raises(UsageError, match=r"'image-2' is already in the index \(1 of 2 are\)"):
        index.add(["new", "image-2"], np.ones((2, 4)))
    assert "new" not in index
    index.add(["new", "image-2"], [[0, 9, 0, 0], [0, 9, 0, 0]], replace=True)
    assert len(index) == 5
    assert index.ids == ["image-0", "image-1", "image-3", "new", "image-2"]
    # The new ones are equal and come by insertion, the first item of that direction is older and weaker.
    assert index.search([[0, 1, 0, 0]], 3).ids == [["new", "image-2", "image-1"]]
    refused(UsageError, r"'nobody' is not in the index \(1 of 2 are not\)", index.delete, ["new", "nobody"])
    index.delete(["new", "image-0"])
    assert "new" not in index
    assert "image-2" in index
    assert 7 not in index
    assert len(index) == 3
    assert index.about["recall"]["changes"] == 4


values = st.one_of(st.integers(0, 3), st.sampled_from(["red", "blue"]), st.booleans())
fields = st.sampled_from(["a", "b"])
bounds = st.dictionaries(st.sampled_from(["gt", "gte", "lt", "lte"]), st.integers(0, 3), min_size=1)


def fulfils(value, wanted):
    """What a condition means, written down a second time."""
    if isinstance(value, list):
        return any(fulfils(entry, wanted) for entry in value)
    if isinstance(wanted, list):
        return any(fulfils(value, entry) for entry in wanted)
    if isinstance(wanted, dict):
        if isinstance(value, bool | str):
            return False
        said = {
            "gt": lambda bound: value > bound,
            "gte": lambda bound: value >= bound,
            "lt": lambda bound: value < bound,
            "lte": lambda bound: value <= bound,
        }
        return all(said[name](bound) for name, bound in wanted.items())
    return type(value) is type(wanted) and value == wanted


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    records=st.lists(
        st.dictionaries(fields, st.one_of(values, st.lists(values, max_size=3))), min_size=1, max_size=6
    ),
    where=st.dictionaries(
        fields, st.one_of(values, st.lists(values, min_size=1, max_size=3), bounds), min_size=1
    ),
)
def test_any_condition_lets_through_what_it_says(make_embeddings, records, where):
    index = build_index(make_embeddings(np.ones((len(records), 2))), "qdrant", records=records)
    wanted = {
        f"image-{row}"
        for row, record in enumerate(records)
        if all(field in record and fulfils(record[field], value) for field, value in where.items())
    }
    known = {field for record in records for field, value in record.items() if value != []}
    if not wanted and not where.keys() <= known:
        refused(UsageError, "has a field", index.search, np.ones((1, 2)), 6, where=where)
    else:
        assert set(index.search(np.ones((1, 2)), 6, where=where).ids[0]) == wanted


def test_metadata_is_kept_replaced_and_restricts_on_a_server(server, make_embeddings, tmp_path):
    index = build_index(make_embeddings(np.eye(4) + 1), "qdrant", records=RECORDS, url=server.url)
    fields = {
        body["field_name"]: body["field_schema"]
        for method, path, body in server.requests
        if path.endswith("/index")
    }
    # "maker" is no simple value; that "sold" is unknown once does not matter.
    assert fields == {
        "diptych.dense.source": "keyword",
        "category": "keyword",
        "price": "float",
        "colours": "keyword",
        "sold": "bool",
    }
    assert [index.records[f"image-{row}"] for row in range(4)] == RECORDS
    assert sorted(map(str, index.records.values())) == sorted(map(str, RECORDS))
    for where, found in (({"category": "hats"}, 1), ({"maker.city": "Gouda"}, 2), ({"category": "coats"}, 0)):
        assert index.search(np.ones((1, 4)), 4, where=where).found.tolist() == [found]
    index.add(["image-1"], np.ones((1, 4)), replace=True, records=[{"category": "shoes"}])
    assert index.records["image-1"] == {"category": "shoes"}
    assert index.search(np.ones((1, 4)), 4, where={"category": "shoes"}).found.tolist() == [3]


def test_conditions_and_metadata_that_are_none(make_embeddings):
    index = build_index(make_embeddings(np.eye(4)), "qdrant", records=RECORDS)
    for where, said in (
        *((where, "holds no condition") for where in ({}, "shoes")),
        ({"category": []}, "lets nothing through"),
        ({"category": None}, "can be no item's value"),
        ({"price": float("nan")}, "can be no item's value"),
        *(({"price": wrong}, "is no range") for wrong in ({"above": 3}, {"gte": "3"}, {})),
        ({"": 1}, "is not the name of a field"),
        ({"categroy": "shoes"}, r"no item of .* has a field 'categroy' \(fields of one.*: category, colours"),
    ):
        refused(UsageError, said, index.search, np.eye(4), 1, where=where)
    for records, said in (
        ([{}], "metadata of 1 items given for 2"),
        ([{}, {"diptych": 1}], "'image-1' has a field 'diptych'"),
        ([{"x": {1, 2}}, {}], "'image-0' is not JSON"),
        ([{"x": float("nan")}, {}], "'image-0' is not JSON"),
    ):
        refused(DataError, said, build_index, make_embeddings(np.eye(2)), "qdrant", records=records)


def test_an_index_of_this_process_ends_with_it(make_embeddings, tmp_path):
    index = build_index(make_embeddings(np.eye(4) + 1), "qdrant", records=RECORDS)
    refused(UsageError, "ends with it .name a server with the option url", index.save, tmp_path / "index")
    assert not (tmp_path / "index").exists()
    index.delete(["image-0"])
    copy = index.rebuild()
    assert list(copy.search(np.eye(4), 4)) == list(index.search(np.eye(4), 4))
    assert copy.records == index.records


def test_an_index_on_a_server_is_saved_as_where_it_is(server, make_embeddings, tmp_path, monkeypatch):
    server.key = "secret"
    monkeypatch.setenv("QDRANT_SHOP_KEY", "secret\n")  # as read from a file
    options = {"url": server.url, "collection": "shop", "key_variable": "QDRANT_SHOP_KEY"}
    index = build_index(make_embeddings(np.eye(4)), "qdrant", **options)
    folder = index.save(tmp_path / "index")
    assert [path.name for path in folder.iterdir()] == ["index.json"]
    assert "secret" not in (folder / "index.json").read_text()
    assert open_index(folder).search(np.eye(4), 1).ids == [[f"image-{row}"] for row in range(4)]
    index.add(["new"], np.ones((1, 4)))
    refused(StorageError, "4 items expected, got 5", open_index, folder)
    index.save(folder)
    assert len(open_index(folder)) == 5
    server.store.delete_collection("shop")
    refused(StorageError, r"there is no Qdrant collection 'shop' at http.*build it again", open_index, folder)


def test_opening_checks_whose_items_they_are(server, make_embeddings, tmp_path):
    folder = build_index(make_embeddings(np.eye(4)), "qdrant", url=server.url).save(tmp_path / "index")
    header = Header.open(folder)
    replace(header, encoder="encoder-b").write_header(folder)
    refused(MismatchError, "items of encoder encoder-a, the saved index is of encoder-b", open_index, folder)
    replace(header, width=5).write_header(folder)
    refused(MismatchError, "vectors of width 4 compared by Dot, these are of width 5", open_index, folder)
    folder = build_index(make_bags(np.eye(3)), "qdrant-sparse", url=server.url, collection="bags").save(
        tmp_path / "bags"
    )
    header = Header.open(folder)
    header.about["vocabulary"] = "0123456789abcdef"
    header.write_header(folder)
    with pytest.raises(MismatchError, match="items of vocabulary .* the saved index is of 0123456789abcdef"):
        open_index(folder)


def test_a_build_that_was_killed_goes_on_where_it_stopped(server, make_embeddings):
    embeddings = make_embeddings(count=20, width=4)
    server.upserts_left = 4  # the first says what the index is of
    with pytest.raises(StorageError, match=r"answered 500: Service internal error: disk is full .*resumes"):
        build_index(embeddings, "qdrant", url=server.url, batch=4)
    assert server.store.count("diptych").count == 12 + 1
    server.upserts_left = None

    def sent(**options):
        before = len(server.requests)
        index = build_index(embeddings, "qdrant", url=server.url, **options)
        assert index.ids == list(embeddings.ids)
        puts = [body for method, path, body in server.requests[before:] if path.endswith("/points")]
        return [len(body["points"]) for body in puts if "points" in body and len(body["points"][0]["vector"])]

    assert sent(batch=4) == [4, 4]  # of five blocks, three were there
    assert sent(batch=4) == []  # whole already
    assert sent(records=[{"a": row % 2} for row in range(20)]) == [20]  # other metadata is other content
    assert server.store.count("diptych").count == 20 + 1


def test_a_collection_of_others_is_not_changed(server, make_embeddings):
    from qdrant_client import models

    DENSE = models.VectorParams(size=4, distance=models.Distance.DOT)

    def build_refused(said, embeddings, engine="qdrant", **options):
        refused(MismatchError, said, build_index, embeddings, engine, url=server.url, **options)

    build_index(make_embeddings(np.eye(4)), "qdrant", url=server.url)
    writes = server.count("PUT", "/points")
    build_refused(
        "vectors of width 4 compared by Dot, these are of width 3.*replace=True", make_embeddings(np.eye(3))
    )
    other = replace(make_embeddings(np.eye(4), ids=list("abcd")), data="data-b")
    build_refused(r"already holds 4 items of other embeddings \(encoder encoder-a", other)
    assert server.count("PUT", "/points") == writes
    index = build_index(other, "qdrant", url=server.url, replace=True)
    assert index.ids == list("abcd")
    assert index.options["replace"] is False
    build_index(make_bags(np.eye(3)), "qdrant-sparse", url=server.url, collection="bags")
    build_refused("holds no dense vectors, these are of width 4", other, collection="bags")
    server.store.create_collection("foreign", {"dense": DENSE})
    build_refused(
        r"holds sparse vectors \[\], plain", make_bags(np.eye(3)), "qdrant-sparse", collection="foreign"
    )
    point = {"id": 1, "vector": {"dense": [1.0] * 4}}
    server.store.upsert("foreign", [models.PointStruct(**point)])
    build_refused("holds 1 points that diptych did not write", other, collection="foreign")


def test_a_server_that_is_down(make_embeddings, tmp_path):
    with qdrant_server() as server:
        index = build_index(make_embeddings(np.eye(4)), "qdrant", url=server.url)
        index.save(tmp_path / "index")
        address = server.url
    for call in (
        lambda: build_index(make_embeddings(np.eye(4)), "qdrant", url=address),
        lambda: index.search(np.eye(4), 1),
        lambda: index.add(["new"], np.ones((1, 4))),
        lambda: open_index(tmp_path / "index"),
    ):
        refused(StorageError, f"no Qdrant server answers at {address}.*start the server", call)


def test_a_server_that_does_not_answer(server, make_embeddings):
    server.awake.clear()
    said = r"did not answer within 1 s \(pass a longer timeout"
    rows = make_embeddings(np.eye(4))
    refused(StorageError, said, build_index, rows, "qdrant", url=server.url, timeout=1)


def test_keys_refused_or_none_are_not_shown_and_no_other_secret_is_sent(
    server, make_embeddings, tmp_path, monkeypatch
):
    embeddings = make_embeddings(np.eye(4))
    folder = build_index(embeddings, "qdrant", url=server.url, collection="mine").save(tmp_path / "index")
    monkeypatch.setenv("CLOUD_SECRET", "secret")
    header = Header.open(folder)
    header.options["key_variable"] = "CLOUD_SECRET"  # as somebody else's index may name it
    header.write_header(folder)
    refused(UsageError, "key_variable='CLOUD_SECRET': only variables named QDRANT_", open_index, folder)
    server.key = "right"
    for key, error, said in (
        ("", StorageError, r"\(401: Must provide an API key\); .* QDRANT_API_KEY is not set"),
        ("wrong", StorageError, r"refuses the key \(403: Forbidden\); .* QDRANT_API_KEY is set"),
        ("wro\nng", UsageError, "QDRANT_API_KEY holds characters that no key can have"),
        ("wrong\u00e9", UsageError, "QDRANT_API_KEY holds characters that no key can have"),
    ):
        if key:
            monkeypatch.setenv("QDRANT_API_KEY", key)
        found = refused(error, said, build_index, embeddings, "qdrant", url=server.url)
        assert "wro" not in str(found)
    assert not server.store.collection_exists("diptych")


def test_a_collection_that_vanished_or_is_shared(server, make_embeddings):
    from qdrant_client import models

    index = build_index(make_embeddings(np.eye(4)), "qdrant", url=server.url)
    point = models.PointStruct(id=1, vector={"dense": [9.0, 0, 0, 0]}, payload={"other": 1})
    server.store.upsert("diptych", [point])
    refused(StorageError, "holds points that diptych did not write", index.search, np.eye(4), 1)
    assert index.refresh() == 4
    server.store.delete_collection("diptych")
    refused(StorageError, r"no Qdrant collection 'diptych' .*\(404: Not found", index.search, np.eye(4), 1)


def test_addresses_that_are_none(make_embeddings):
    none = ("host:6333", "ftp://host", "user:secret@host:6333", "https://host:port")
    more = ("https://user:secret@host:6333", "https://host:6333?key=secret")
    for url in (*none, *more):
        said = "is not the address of a server"
        said = said if url in none else "the url of the server at host holds more than an address"
        error = refused(UsageError, said, build_index, make_embeddings(np.eye(4)), "qdrant", url=url)
        assert "secret" not in str(error)


def test_what_the_server_is_asked_for(server, make_embeddings):
    index = build_index(
        make_embeddings(np.eye(4)),
        "qdrant",
        url=server.url,
        m=7,
        ef_construction=9,
        shards=3,
        write_consistency=2,
    )
    created = next(
        body for method, path, body in server.requests if (method, path) == ("PUT", "/collections/diptych")
    )
    graph = {"m": 7, "ef_construct": 9}
    assert created["vectors"] == {"dense": {"size": 4, "distance": "Dot", "hnsw_config": graph}}
    assert created["sparse_vectors"] == {"terms": {}}
    assert (created["shard_number"], created["replication_factor"]) == (3, 1)
    assert created["write_consistency_factor"] == 2
    index.search(np.eye(4), 2, ef_search=33)
    assert server.requests[-1][2]["searches"][0]["params"] == {"exact": False, "hnsw_ef": 33}
    index.search_exact(np.eye(4), 2)
    assert server.requests[-1][2]["searches"][0]["params"] == {"exact": True, "hnsw_ef": 128}
    assert point_id("image-1") == "c94e545d-4dbd-54d1-90a8-b1720e5fa4de"
    assert len({point_id(str(number)) for number in range(100)}) == 100


def test_rebuilding_on_a_server_copies(server, make_embeddings):
    index = build_index(make_embeddings(np.eye(4)), "qdrant", records=RECORDS, url=server.url)
    index.delete(["image-1"])
    refused(UsageError, r"cannot be rebuilt into itself \(.*pass collection=NAME", index.rebuild)
    copy = index.rebuild(collection="copy")
    assert copy.ids == ["image-0", "image-2", "image-3"]
    assert copy.records == index.records
    assert list(copy.search(np.eye(4), 3)) == list(index.search(np.eye(4), 3))


def test_bags_share_a_term_or_are_not_found(where_to, tmp_path):
    bags = make_bags([[1, 0, 2], [0, 3, 0], [0, 0, 0], [0, 1, 1]])
    index = build_index(bags, "qdrant-sparse", **where_to)
    hits = index.search(csr_array(np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0]], dtype=np.float32)), 10)
    assert list(hits) == [[("image-1", 3.0), ("image-0", 2.0), ("image-3", 2.0)], [], [("image-0", 1.0)]]
    assert "recall" not in index.about
    index.add(["late"], csr_array(np.array([[5, 0, 0]], dtype=np.float32)), replace=True)
    index.delete(["image-3"])
    opened = open_index(index.save(tmp_path / "index")) if where_to else index.rebuild()
    assert opened.terms == tuple(bags.terms)
    assert opened.ids == ["image-0", "image-1", "image-2", "late"]
    assert list(opened.search(bags.rows, 4)) == list(index.search(bags.rows, 4))


@pytest.fixture
def shared(server, make_embeddings):
    """A dense and a sparse index of the same four items in one collection."""
    where = {"url": server.url, "collection": "shop", "batch": 3}
    captions = {f"image-{row}": [f"caption {row}"] for row in range(4)}
    dense = build_index(make_embeddings(np.eye(4)), "qdrant", records=RECORDS, captions=captions, **where)
    items = make_bags([[1, 0, 2], [0, 3, 0], [0, 0, 0], [0, 1, 1]])
    terms = build_index(items, "qdrant-sparse", records=RECORDS, captions=captions, **where)
    return dense, terms


def test_dense_vectors_and_terms_share_a_point_and_its_metadata(server, shared):
    dense, terms = shared
    assert server.store.count("shop").count == 4 + 2
    (point,) = server.store.retrieve("shop", [point_id("image-1")], with_vectors=True)
    assert sorted(point.payload) == ["category", "colours", "diptych", "maker", "price", "sold"]
    assert sorted(point.payload["diptych"]) == ["captions", "dense", "id", "terms"]
    assert (point.vector["dense"], point.vector["terms"].values) == ([0, 1, 0, 0], [3])
    query = csr_array(np.array([[0, 1, 1]], dtype=np.float32))
    assert terms.search(query, 9, where={"category": "shoes"}).ids == [["image-0"]]
    assert dense.search([[4, 3, 2, 1]], 9, where={"category": "shoes"}).ids == [["image-0", "image-2"]]
    assert (len(dense), len(terms), dense.ids) == (4, 4, terms.ids)
    assert dense.records == terms.records


def test_a_change_of_one_index_leaves_the_other_as_it_is(server, shared, make_embeddings):
    dense, terms = shared
    terms.delete(["image-0", "image-2"])
    assert (terms.ids, dense.ids) == (["image-1", "image-3"], [f"image-{row}" for row in range(4)])
    assert "image-0" not in terms
    bags = csr_array(np.array([[0, 0, 0], [5, 0, 0], [6, 0, 0]], dtype=np.float32))
    terms.add(["image-1", "new", "image-0"], bags, replace=True, records=[{"category": "x"}, {}, {}])
    assert terms.ids == ["image-3", "image-1", "new", "image-0"]
    assert dense.search(np.eye(4), 1).ids == [[f"image-{row}"] for row in range(4)]
    assert dense.records["image-1"]["category"] == "x"
    assert dense.records["image-1"]["price"] == 35.5
    one = csr_array(np.array([[1, 1, 1]], dtype=np.float32))
    assert list(terms.search(one, 9)) == [[("image-0", 6.0), ("new", 5.0), ("image-3", 2.0)]]
    dense.add(["new"], np.ones((1, 4)))
    assert terms.search(one, 2).ids == [["image-0", "new"]]
    dense.delete(["new", "image-2"])
    terms.delete(["new"])
    assert {point.payload["diptych"].get("id") for point in server.store.scroll("shop")[0]} == {
        None,
        "image-0",
        "image-1",
        "image-3",
    }


def test_an_address_is_enough_to_open_an_index(server, shared, monkeypatch):
    dense, terms = shared
    dense.about["origin"] = {"model": "runs/a"}
    dense.save(Path(tempfile.mkdtemp()) / "index")
    address = f"qdrant:{server.url}/shop"
    query = csr_array(np.array([[0, 1, 1]], dtype=np.float32))
    for name, built, queries in (
        ("", dense, np.eye(4)),
        ("/dense", dense, np.eye(4)),
        ("/terms", terms, query),
    ):
        opened = open_index(address + name)
        assert list(opened.search(queries, 3)) == list(built.search(queries, 3))
        assert (opened.encoder, opened.width, opened.about) == (built.encoder, built.width, built.about)
        assert (opened.terms, opened.options) == (built.terms, {**built.options})
        opened.prefetch(["image-0", "image-1"])
        before = len(server.requests)
        assert [opened.captions[hit] for hit in ("image-1", "image-0")] == [["caption 1"], ["caption 0"]]
        assert len(server.requests) == before  # what was read ahead is not read again
        assert open_index(address + name).records["image-1"] == opened.records["image-1"] == RECORDS[1]
        assert opened.captions.get("nobody") is None
        assert sorted(opened.captions) == sorted(built.ids)
    opened = open_index(str(Path(address)))  # with one slash, as a path has it
    opened.add(["new"], np.ones((1, 4)))
    assert open_index(address).ids == [*dense.ids]
    server.key = "secret"
    refused(StorageError, "QDRANT_API_KEY is not set", open_index, address)
    monkeypatch.setenv("QDRANT_API_KEY", "secret")
    assert len(open_index(address)) == 5


def test_clients_of_one_collection_see_each_others_changes(server, shared):
    address = f"qdrant:{server.url}/shop"
    one, two = open_index(address), open_index(address)
    one.add(["new"], np.ones((1, 4)), records=[{"category": "hats"}], captions=[["a hat"]])
    assert (two.refresh(), len(two), two.captions["new"]) == (5, 5, ["a hat"])
    assert two.search(np.ones((1, 4)), 1, where={"category": "hats"}).ids == [["new"]]
    two.delete(["new"])
    assert (one.refresh(), len(one), "new" in one) == (4, 4, False)


def test_vectors_are_given_back(shared):
    dense, terms = shared
    assert dense.vectors(["image-2", "image-0"]).tolist() == [[0, 0, 1, 0], [1, 0, 0, 0]]
    assert terms.vectors(["image-2", "image-1"]).toarray().tolist() == [[0, 0, 0], [0, 3, 0]]


def test_addresses_that_hold_no_index(server, make_embeddings):
    address = f"qdrant:{server.url}/shop"
    for wrong in ("qdrant:", "qdrant:shop", f"qdrant:{server.url}", "qdrant:ftp://host/shop"):
        refused(UsageError, "is no address of an index", open_index, wrong)
    refused(StorageError, "no Qdrant collection 'shop'", open_index, address)
    index = build_index(make_bags(np.eye(3)), "qdrant-sparse", url=server.url, collection="shop")
    refused(StorageError, "holds no index of dense .it holds terms", open_index, f"{address}/dense")
    assert open_index(address).terms == index.terms
    number = next(p.id for p in server.store.scroll("shop")[0] if "index" in p.payload["diptych"])
    view = server.store.retrieve("shop", [number])[0].payload["diptych"]["index"]
    for change, said in (
        ({"terms": ["a", "b", "c"]}, "other terms than its index was built of"),
        ({"terms": 3}, "cannot be read"),
        ({"options": {"speed": 1}}, "cannot be read"),
        ({"about": None}, "cannot be read"),
        ({"width": 4}, "other terms"),
    ):
        payload = {"diptych": {"index": view | change}}
        server.store.overwrite_payload("shop", payload, [number])
        refused(StorageError, said, open_index, address)


@pytest.mark.parametrize("items", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_items_are_found_as_by_the_embedded_engines(server, make_embeddings, items):
    where = {"url": server.url, "collection": "shop", "batch": 1000}
    for embeddings, engine in (
        (make_embeddings(count=items, width=8), "qdrant"),
        (bags(random_rows(items, 40)), "qdrant-sparse"),
    ):
        build_index(embeddings, engine, sample=embeddings.rows[:2], **where)
        opened = open_index(f"qdrant:{server.url}/shop/{'terms' if 'sparse' in engine else 'dense'}")
        mine, best = (one.search(embeddings.rows[:5], 10) for one in (opened, build_index(embeddings)))
        assert mine.ids == best.ids
        np.testing.assert_allclose(mine.scores, best.scores, rtol=1e-5)


@pytest.mark.skipif(
    importlib.util.find_spec("qdrant_edge") is None,
    reason="qdrant-edge-py, Qdrant's engine, is not installed",
)
@pytest.mark.parametrize("items", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_the_same_on_the_engine_of_qdrant_itself(monkeypatch, make_embeddings, items):
    """What is written and asked means there what it means on the client's stand-in."""
    from qdrant_edge_client import EdgeClient

    client = EdgeClient()
    monkeypatch.setattr("qdrant_client.QdrantClient", lambda **_: client)
    where = {"url": "http://localhost:1", "collection": "shop"}
    records = [{"category": ["shoes", "hats"][row % 2], "price": row} for row in range(items)]
    made = make_embeddings(count=items, width=16), bags(random_rows(items, 60))
    dense, terms = (
        build_index(one, engine, records=records, **where)
        for one, engine in zip(made, ("qdrant", "qdrant-sparse"), strict=True)
    )
    local = [build_index(one, records=records) for one in made]
    conditions = ({}, {"where": {"category": "hats", "price": {"gte": 100}}}, {"where": {"price": [1, 5, 7]}})
    for index, expected, one in zip((dense, terms), local, made, strict=True):
        for how in conditions:
            mine, best = (each.search_exact(one.rows[:20], 10, **how) for each in (index, expected))
            assert mine.ids == best.ids
            np.testing.assert_allclose(mine.scores, best.scores, rtol=1e-5)
    assert dense.search(made[0].rows[:20], 1).ids == [[name] for name in made[0].ids[:20]]
    terms.delete(["image-0", "image-1"])
    terms.add(["image-2", "new"], csr_array(np.eye(2, 60, 1, dtype=np.float32)[::-1]), replace=True)
    dense.delete(["image-3"])
    assert (len(terms), len(dense)) == (items - 1, items - 1)
    assert [name in terms for name in ("image-0", "image-2", "image-3", "new")] == [False, True, True, True]
    assert [name in dense for name in ("image-0", "image-2", "image-3", "new")] == [True, True, False, False]
    opened = open_index("qdrant:http://localhost:1/shop/terms")
    assert (opened.terms, opened.about, len(opened)) == (terms.terms, terms.about, items - 1)
    assert opened.vectors(["new"]).toarray().tolist() == np.eye(2, 60, 1)[:1].tolist()
