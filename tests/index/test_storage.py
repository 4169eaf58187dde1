"""Indexes in folders: each engine opened again, corrupt files, headers and kills."""

from __future__ import annotations

import json
import resource
import shutil
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused

from diptych.core.errors import DataError, StorageError
from diptych.encoders.embeddings import term_fingerprint
from diptych.index import build_index, open_index
from diptych.index.storage import Header

LIBRARIES = {"seismic": "seismic", "pisa": "pyterrier_pisa"}
SPARSE = ["cascade", "impacts", "inverted", *LIBRARIES]


def built_with(name, make_embeddings, make_bags, count, **options):
    """An index of an engine, and its embeddings."""
    pytest.importorskip(LIBRARIES.get(name, "numpy"), reason="the extra 'engines' is not installed")
    embeddings = (make_bags if name in SPARSE else make_embeddings)(count=count)
    return build_index(embeddings, name, **options), embeddings


@pytest.fixture
def saved(engine, make_embeddings, tmp_path):
    """An index in a folder, and its embeddings."""
    embeddings = make_embeddings(count=120)
    index = build_index(embeddings, engine)
    index.delete(["image-3"])
    return index.save(tmp_path / "index"), embeddings


def same_answers(one, other, queries):
    mine, theirs = one.search(queries, 10), other.search(queries, 10)
    assert list(mine.ids) == list(theirs.ids)
    np.testing.assert_array_equal(mine.scores, theirs.scores)


@pytest.mark.parametrize("name", ["exact", "hnsw", *SPARSE])
def test_an_opened_index_is_the_saved_one(name, make_embeddings, make_bags, tmp_path):
    built, embeddings = built_with(name, make_embeddings, make_bags, 300)
    answers = list(built.search(embeddings.rows, 10))
    opened = open_index(built.save(tmp_path / "index"), verify=True)
    assert type(opened) is type(built)
    assert opened.describe() == built.describe()
    assert (opened.options, opened.about, opened.encoder) == (built.options, built.about, built.encoder)
    assert opened.terms == built.terms
    assert list(opened.search(embeddings.rows, 10)) == answers == list(built.search(embeddings.rows, 10))
    assert opened.ids == built.ids
    if name != "impacts":  # it keeps 8-bit weights only
        exact = [list(one.search_exact(embeddings.rows[:20], 10)) for one in (opened, built)]
        assert exact[0] == exact[1]
    again = open_index(opened.save(tmp_path / "index"))  # into its own folder, and from there
    assert list(again.search(embeddings.rows, 10)) == answers == list(opened.search(embeddings.rows, 10))
    for path in (tmp_path / "index").iterdir():
        assert path.suffix not in (".pkl", ".pickle")
        if path.suffix == ".npy":
            np.load(path, allow_pickle=False)


def test_changes_to_an_opened_index_persist_on_save_only(saved):
    folder, embeddings = saved
    index = open_index(folder)
    index.add(["new"], 2 * embeddings.rows[:1])
    index.delete(["image-5"])
    assert "new" not in open_index(folder)
    index.save(folder)
    again = open_index(folder)
    assert "image-5" not in again
    assert again.search(embeddings.rows[:1], 1).ids == [["new"]]
    same_answers(index, again, embeddings.rows)
    index.delete(["new"])  # the saved index can be changed further
    assert index.search(embeddings.rows[:1], 1).ids == [["image-0"]]


def test_what_is_no_index(tmp_path):
    refused(StorageError, "nowhere does not exist", open_index, tmp_path / "nowhere")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    refused(StorageError, "holds no index", open_index, tmp_path / "notes")


def test_headers_refused(saved, make_embeddings, tmp_path):
    narrow = build_index(make_embeddings([[2], [1]])).save(tmp_path / "narrow")
    assert open_index(narrow).width == 1
    folder, _ = saved
    whole = Header.open(folder)
    for name, value, message in (
        ("engine", "magic", "unknown index engine 'magic'"),
        ("options", {"colour": 3}, "unknown option of index engine"),
        ("items", -1, "-1 items of width 16 are impossible"),
        ("width", 0, "119 items of width 0 are impossible"),
    ):
        header = copy(whole)
        object.__setattr__(header, name, value)
        header.write_header(folder)
        refused(StorageError, message, open_index, folder)


@pytest.mark.parametrize("name", ["exact", "hnsw", *SPARSE])
def test_every_damaged_file_is_named(name, make_embeddings, make_bags, tmp_path):
    options = {"hub_share": 0.2} if name in ("cascade", "impacts", "inverted") else {}
    index, _ = built_with(name, make_embeddings, make_bags, 500, **options)
    folder = index.save(tmp_path / "index")
    mapped = open_index(folder).mapped
    assert mapped <= {path.name for path in folder.iterdir()}
    for path in sorted(folder.iterdir()):
        if path.name == "index.json":
            continue
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        refused(StorageError, f"{path.name} is corrupt: {len(whole)} bytes expected", open_index, folder)
        middle = len(whole) // 2
        path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])
        refused(StorageError, f"{path.name} is corrupt: fingerprint", open_index, folder, verify=True)
        if path.name in mapped and name not in LIBRARIES:  # which read all columns
            assert len(open_index(folder)) == 500  # not read, so not noticed: what verify is for
        path.unlink()
        refused(StorageError, f"{path.name} is missing", open_index, folder)
        path.write_bytes(whole)
    assert len(open_index(folder, verify=True)) == 500


def test_a_full_disk_leaves_the_older_index_whole(engine, make_embeddings, tmp_path):
    embeddings = make_embeddings(count=3000, width=64)  # 768,000 bytes of rows
    folder = build_index(make_embeddings(count=50, width=64), engine).save(tmp_path / "index")
    large = build_index(embeddings, engine, **({} if engine == "exact" else {"m": 4, "ef_construction": 8}))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
    try:
        refused(StorageError, "cannot", large.save, folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    assert len(open_index(folder, verify=True)) == 50
    large.save(folder)
    assert len(open_index(folder)) == 3000


def test_numbers_that_lead_out_of_an_array_are_refused(make_bags, tmp_path):
    """Kernels check no bounds, and the fingerprints of an untrusted index are the sender's own."""
    folder = build_index(make_bags(count=9000), hub_share=0.2).save(tmp_path / "index")
    replace(Header.open(folder), files={}).write_header(folder)
    lists = np.load(folder / "postings.offsets.npy").shape[1]
    for name, place, value in (
        *(("postings.place_of", 0, value) for value in (10_000, -10_000, -1 - lists)),
        *(("postings.starts", place, value) for place, value in ((0, -8), (1, None))),
        *(("postings.offsets", place, value) for place, value in (((0, 1), 1 << 30), ((1, 0), -3))),
        *(("postings.offsets", None, "F"), ("postings.steps", 3, np.nan)),
        *(("indptr", place, value) for place, value in ((5, 1 << 40), (0, -1))),
    ):
        file = folder / f"{name}.npy"
        whole = np.load(file)
        changed = whole.copy(order="F" if value == "F" else "C")
        if place is not None:
            changed[place] = whole[place] + 5 if value is None else value
        np.save(file, changed)
        said = r"not those of 9,000 documents|must ascend|expected, got"
        refused(StorageError, said, open_index, folder)
        np.save(file, whole)
    assert len(open_index(folder)) == 9000


def test_damaged_columns_are_not_copied_into_another_index(make_bags, tmp_path):
    folder = build_index(make_bags(count=300)).save(tmp_path / "index")
    columns = np.load(folder / "columns.npy", mmap_mode="r+")
    columns[7] = 1 << 30
    columns.flush()
    index = open_index(folder)  # by size only
    index.delete(["image-100"])
    refused(StorageError, "those of 40 terms expected", index.save, tmp_path / "other")
    refused(DataError, "not those of a sparse array", index.rebuild)


def test_terms_that_are_not_those_of_the_header(make_bags, tmp_path):
    folder = build_index(make_bags(width=3)).save(tmp_path / "index")
    terms = json.loads((folder / "terms.json").read_text())
    header = Header.open(folder)
    header.about["vocabulary"] = term_fingerprint([*terms[:2], "another"])
    header.write_header(folder)
    refused(StorageError, r"terms.json: the 3 terms of vocabulary", open_index, folder)


def test_leftovers_of_a_killed_save_do_not_confuse(saved):
    folder, embeddings = saved
    before = open_index(folder)
    shutil.copytree(folder, folder.with_name(".index.abc123.tmp"))
    (folder.with_name(".index.abc123.tmp") / "ids.json").unlink()
    same_answers(before, open_index(folder), embeddings.rows)
    folder.rename(folder.with_name(".index.old"))  # killed between the two renames
    after = open_index(folder)
    same_answers(before, after, embeddings.rows)
    after.delete(["image-0"])
    after.save(folder)
    assert "image-0" not in open_index(folder)
    assert not folder.with_name(".index.old").exists()
