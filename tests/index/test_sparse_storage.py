from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from diptych.core.errors import DataError, StorageError
from diptych.index import build_index, open_index
from diptych.index.storage import Header, load_array

ENGINES = ["cascade", "impacts", "inverted"]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_opened_index_is_the_saved_one(engine, make_bags, tmp_path):
    bags = make_bags(count=300)
    built = build_index(bags, engine)
    answers = list(built.search(bags.rows, 10))
    opened = open_index(built.save(tmp_path / "index"), verify=True)
    assert type(opened) is type(built)
    assert opened.describe() == built.describe()
    assert (opened.options, opened.about, opened.encoder) == (built.options, built.about, built.encoder)
    assert list(opened.search(bags.rows, 10)) == answers == list(built.search(bags.rows, 10))
    for path in (tmp_path / "index").glob("*.npy"):
        np.load(path, allow_pickle=False)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_damaged_file_is_named(engine, make_bags, tmp_path):
    folder = build_index(make_bags(count=2000), engine, hub_share=0.2).save(tmp_path / "index")
    mapped = open_index(folder).mapped
    assert mapped <= {path.name for path in folder.iterdir()}
    for path in sorted(folder.iterdir()):
        if path.name == "index.json":
            continue
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        with pytest.raises(StorageError, match=f"{path.name} is corrupt: {len(whole)} bytes expected"):
            open_index(folder)
        middle = len(whole) // 2
        path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])
        with pytest.raises(StorageError, match=f"{path.name} is corrupt: fingerprint"):
            open_index(folder, verify=True)
        if path.name in mapped:
            assert len(open_index(folder)) == 2000  # not read, so not noticed: what verify is for
        path.unlink()
        with pytest.raises(StorageError, match=f"{path.name} is missing"):
            open_index(folder)
        path.write_bytes(whole)
    assert len(open_index(folder, verify=True)) == 2000


@pytest.mark.parametrize("engine", ENGINES)
def test_files_that_do_not_fit_together(engine, make_bags, tmp_path):
    folder = build_index(make_bags(count=120), engine).save(tmp_path / "index")
    header = Header.open(folder)
    for name, array in (
        ("postings.codes.npy", np.zeros(3, dtype=np.uint8)),
        ("postings.hubs.npy", np.zeros((7, 1, 256), dtype=np.uint8)),
        ("postings.steps.npy", np.zeros(3, dtype=np.float32)),
        ("postings.offsets.npy", np.zeros((1, 2), dtype=np.int64)),
    ):
        whole = (folder / name).read_bytes()
        np.save(folder / name, array)
        others = {other: record for other, record in header.files.items() if other != name}
        replace(header, files=others).write_header(folder)
        with pytest.raises(StorageError, match=r"expected, got|not those of 120 documents"):
            open_index(folder)
        (folder / name).write_bytes(whole)


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("postings.place_of", lambda array: changed(array, 0, 10_000)),
        ("postings.place_of", lambda array: changed(array, 0, -10_000)),
        ("postings.starts", lambda array: changed(array, 0, -8)),
        ("postings.starts", lambda array: changed(array, 1, array[1] + 5)),
        ("postings.offsets", lambda array: changed(array, (0, 1), 1 << 30)),
        ("postings.offsets", lambda array: changed(array, (1, 0), -3)),
        ("postings.offsets", lambda array: np.asfortranarray(array)),
        ("postings.steps", lambda array: changed(array, 3, np.nan)),
        ("postings.span", lambda array: changed(array, 0, 1024 * 3)),
        ("postings.span", lambda array: changed(array, 0, 1 << 40)),
        ("indptr", lambda array: changed(array, 5, 1 << 40)),
        ("indptr", lambda array: changed(array, 0, -1)),
    ],
)
def test_numbers_that_lead_out_of_an_array_are_refused(name, change, make_bags, tmp_path):
    """Kernels check no bounds, and the fingerprints of a stranger's index say only that it is the stranger's."""
    folder = build_index(make_bags(count=9000), hub_share=0.2).save(tmp_path / "index")
    np.save(folder / f"{name}.npy", change(np.load(folder / f"{name}.npy")))
    replace(Header.open(folder), files={}).write_header(folder)
    with pytest.raises(StorageError, match=r"not those of 9,000 documents|must ascend|expected, got"):
        open_index(folder)


def test_damaged_columns_are_not_copied_into_another_index(make_bags, tmp_path):
    folder = build_index(make_bags(count=300)).save(tmp_path / "index")
    columns = np.load(folder / "columns.npy", mmap_mode="r+")
    columns[7] = 1 << 30
    columns.flush()
    index = open_index(folder)  # by size only
    index.delete(["image-100"])
    with pytest.raises(StorageError, match="those of 40 terms expected"):
        index.save(tmp_path / "other")
    with pytest.raises(DataError, match="not those of a sparse array"):
        index.rebuild()


@pytest.mark.parametrize("content", [b"\x93NUMPY\x01\x00\x08\x00{'descr'\n", b"PK\x05\x06" + bytes(18)])
def test_files_that_are_no_arrays(content, tmp_path):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(StorageError, match=r"a\.npy is corrupt"):
        load_array(tmp_path / "a.npy", (None,), np.int64, mapped=False)
