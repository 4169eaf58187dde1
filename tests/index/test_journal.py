"""Changes of a saved index: durable, atomic, seen by other processes, compacted; kills, full disks, corruption."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from crash import crash_everywhere
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import refused

from benchmarks import journal_kills
from diptych.core.errors import StorageError, UsageError
from diptych.core.locking import locked_in_place
from diptych.index import StoredIndex, build_index, open_index
from diptych.index.journal import JOURNAL

ENGINES = ["exact", "hnsw", "inverted", "cascade"]
SPARSE = ENGINES[2:]


@pytest.fixture(params=ENGINES)
def build(request, make_embeddings, make_bags):
    def make(folder, rows=None, *, records=None, **more):
        embeddings = (make_bags if request.param in SPARSE else make_embeddings)(rows, **more)
        return build_index(embeddings, request.param, records=records).save(folder / "index")

    return make


@pytest.fixture
def folder(make_embeddings, tmp_path):
    return build_index(make_embeddings(np.eye(4)), records=[{"n": n} for n in range(4)]).save(
        tmp_path / "index"
    )


names = st.sampled_from(list("abcdefgh"))
rows = st.lists(st.integers(0, 3), min_size=4, max_size=4)
items = st.dictionaries(names, rows, min_size=1, max_size=3)
steps = st.one_of(
    st.tuples(st.sampled_from(["add", "replace"]), items),
    st.tuples(st.just("delete"), st.sets(names, min_size=1, max_size=3)),
    st.tuples(st.sampled_from(["other writes", "compact"]), st.none()),
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(items, st.lists(steps, max_size=8), rows)
def test_any_history_of_two_writers_equals_a_dict(build, tmp_path_factory, start, path, query):
    folder = build(
        tmp_path_factory.mktemp("history"),
        list(start.values()),
        ids=list(start),
        records=[{"of": str(row)} for row in start.values()],
    )
    model, writer, other = dict(start), StoredIndex(folder), StoredIndex(folder)
    seen = {writer.fingerprint}
    for step, what in path:
        if step == "other writes":
            writer, other = other, writer
        elif step == "compact":
            writer.compact()
        elif step == "delete" and not what <= model.keys():
            refused(UsageError, "not in the index", writer.delete, sorted(what))
        elif step == "delete":
            writer.delete(sorted(what))
            model = {name: row for name, row in model.items() if name not in what}
        elif step == "add" and what.keys() & model.keys():
            refused(UsageError, "already in the index", writer.add, list(what), list(what.values()))
        else:
            texts = [{"of": str(row)} for row in what.values()], [[name, "two"] for name in what]
            given = {"records": texts[0], "captions": texts[1], "replace": step == "replace"}
            writer.add(list(what), list(what.values()), **given)
            model = {name: row for name, row in model.items() if name not in what} | what
        if step in ("add", "replace", "delete"):
            if writer.fingerprint not in seen:
                other.refresh()
                assert not other.refresh()
            seen.add(writer.fingerprint)
    other.refresh()
    assert other.fingerprint == writer.fingerprint == StoredIndex(folder).fingerprint
    for index in (writer.index, other.index, open_index(folder)):
        assert index.ids == list(model)
        assert {name: record["of"] for name, record in index.records.items()} == {
            name: str(row) for name, row in model.items()
        }
        found = dict(next(iter(index.search([query], len(model) + 1))))
        scores = {name: float(np.dot(row, query)) for name, row in model.items()}
        assert found == {
            name: score
            for name, score in scores.items()
            if score or writer.index.engine_name in ("exact", "hnsw")
        }


def test_captions_of_added_items(folder):
    stored = StoredIndex(folder)
    stored.index.captions = {"image-0": ["a"], "image-1": ["b"]}
    stored.index.save(folder)
    stored = StoredIndex(folder)
    stored.add(["new", "image-1"], np.ones((2, 4)), captions=[["one", "two"], []], replace=True)
    stored.delete(["image-3"])
    for _ in range(2):
        captions = open_index(folder).captions
        assert list(captions.items()) == list(dict(captions).items())
        found = [("image-0", ["a"]), ("image-2", []), ("new", ["one", "two"]), ("image-1", [])]
        assert list(captions.items()) == found
        assert captions.get("image-3") is None
        stored.compact()
    assert not (folder / JOURNAL).exists()


def test_an_index_that_is_replaced_is_opened_anew(folder, make_embeddings):
    reader, writer = StoredIndex(folder), StoredIndex(folder)
    before, record = reader.index, reader.index.records
    writer.add(["new"], np.ones((1, 4)), records=[{"n": 9}])
    writer.delete(["image-0"])
    assert writer.compact()
    assert not writer.compact()
    assert record["image-2"] == {"n": 2}  # of the files as they were
    assert reader.refresh()
    assert reader.index is not before
    assert reader.index.ids == ["image-1", "image-2", "image-3", "new"]
    assert reader.index.records["new"] == {"n": 9}
    build_index(make_embeddings(np.eye(4)[:2])).save(folder)
    assert reader.refresh()
    assert len(reader.index) == 2
    writer.add(["last"], np.ones((1, 4)))
    assert writer.index.ids == ["image-0", "image-1", "last"]


def test_what_a_kill_cut_is_not_counted_and_removed(folder):
    stored = StoredIndex(folder)
    stored.add(["one"], np.ones((1, 4)))
    first = (folder / JOURNAL).read_bytes()
    stored.add(["two"], np.ones((1, 4)), records=[{"n": 7}])
    whole = (folder / JOURNAL).read_bytes()
    for cut in [*range(len(first), len(whole), 7), len(whole) - 1]:
        (folder / JOURNAL).write_bytes(whole[:cut])
        assert open_index(folder).ids[4:] == ["one"]
    for tail in (
        bytes(200),
        whole[len(first) : -1] + b"x",
    ):  # as a file system may leave it after a power cut
        (folder / JOURNAL).write_bytes(first + tail)
        assert open_index(folder).ids[4:] == ["one"]
    StoredIndex(folder).add(["three"], np.ones((1, 4)))
    assert open_index(folder).ids[4:] == ["one", "three"]
    assert stored.refresh()  # which has seen what was taken back
    assert stored.index.ids[4:] == ["one", "three"]


def test_corruption_before_the_end_is_refused(folder):
    stored = StoredIndex(folder)
    for name in ("one", "two"):
        stored.add([name], np.ones((1, 4)))
    whole = (folder / JOURNAL).read_bytes()
    for place in range(0, len(whole) // 2, 5):
        (folder / JOURNAL).write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        refused(StorageError, "changes.journal is corrupt at byte 0", open_index, folder)
    (folder / JOURNAL).write_bytes(whole)
    of_another = folder.with_name("another")
    build = open_index(folder)
    build.save(of_another)
    (of_another / JOURNAL).write_bytes(whole)
    refused(StorageError, "is corrupt at byte 0", open_index, of_another)


def test_frames_that_no_index_writes(folder):
    """Digests are no secret: a journal from elsewhere may hold anything."""
    head = b'{"kind": "add", "records": null, "captions": null, "ids": ["x"]}\n'
    for payload in (
        b"",
        b"\xff\xff\xff\xff",
        b"{}\n",
        b"[]\n",
        b"no line",
        head,
        head + np.full(4, np.nan, "<f4").tobytes(),
        head + bytes(20),
        b'{"kind": "delete", "ids": ["nobody"]}\n',
        b"[" * 100_000 + b"\n",
    ):
        stored = StoredIndex(folder)
        stored._journal.append(payload)
        refused(StorageError, "changes.journal", open_index, folder)
        (folder / JOURNAL).unlink()
    assert len(open_index(folder)) == 4


def test_a_full_disk_refuses_a_change_and_the_next_one_works(build, tmp_path):
    folder = build(tmp_path, np.eye(4))
    stored = StoredIndex(folder)
    stored.add(["one"], np.ones((1, 4)))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((folder / JOURNAL).stat().st_size + 100, hard))
    try:
        refused(StorageError, "cannot write", stored.add, ["two"], np.ones((1, 4)), captions=[["x" * 500]])
        assert stored.index.ids == open_index(folder).ids == [*(f"image-{n}" for n in range(4)), "one"]
        refused(StorageError, "cannot", stored.add, ["many"], np.ones((1, 4)), captions=[["x" * 5000]])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    stored.add(["three"], np.ones((1, 4)))
    assert open_index(folder).ids[4:] == ["one", "three"]


@pytest.mark.parametrize("act", ["add", "delete", "compact"])
def test_a_crash_at_any_call_leaves_the_old_or_the_new(act, make_embeddings, tmp_path):
    embeddings = make_embeddings(np.eye(4))

    def begin(place: Path) -> None:
        StoredIndex(build_index(embeddings).save(place / "index")).add(["one"], np.ones((1, 4)))

    def change(place: Path) -> None:
        stored = StoredIndex(place / "index")
        {
            "add": lambda: stored.add(["two", "image-1"], 2 * np.ones((2, 4)), replace=True),
            "delete": lambda: stored.delete(["image-1", "one"]),
            "compact": stored.compact,
        }[act]()

    before = [*(f"image-{n}" for n in range(4)), "one"]
    after = {
        "add": ["image-0", "image-2", "image-3", "one", "two", "image-1"],
        "delete": ["image-0", "image-2", "image-3"],
        "compact": before,
    }[act]

    def check(place: Path) -> None:
        assert open_index(place / "index").ids in (before, after)
        change_again = StoredIndex(place / "index")
        change_again.add(["last"], np.ones((1, 4)))
        assert open_index(place / "index").ids in ([*before, "last"], [*after, "last"])
        assert [path.name for path in place.iterdir()] == ["index"]

    assert crash_everywhere(begin, change, check, tmp_path, 4 if act == "compact" else 1) >= (
        2 if act != "compact" else 10
    )


def test_two_writers_that_are_killed_lose_nothing_acknowledged(tmp_path):
    folder = journal_kills.build(tmp_path / "index")
    for name, acknowledged in (("one", 12), ("two", 40)):
        found, problem = journal_kills.trial(folder, name, 1000, 8, acknowledged)
        assert not problem
        assert acknowledged <= found < 2000


def test_a_lock_is_of_the_folder_that_has_the_name(tmp_path):
    folder, replaced = tmp_path / "index", tmp_path / "replaced"
    folder.mkdir()
    code = f"""
from diptych.core.locking import locked_in_place
print("waits", flush=True)
with locked_in_place({str(folder)!r}): pass
"""
    with locked_in_place(folder):
        waiting = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert waiting.stdout.readline() == "waits\n"
        folder.rename(replaced)
        folder.mkdir()
        new = locked_in_place(folder)
        new.__enter__()
    with pytest.raises(subprocess.TimeoutExpired):  # it has the lock of the folder that was replaced
        waiting.communicate(timeout=0.3)
    new.__exit__(None, None, None)
    waiting.communicate(timeout=60)
    assert waiting.returncode == 0


def test_a_change_without_items_is_none(folder):
    stored = StoredIndex(folder)
    before = stored.fingerprint
    stored.add([], np.empty((0, 4)))
    assert stored.fingerprint == before
    assert not (folder / JOURNAL).exists()
