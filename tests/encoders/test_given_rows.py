"""Rows made elsewhere: matched by id in either layout, unit length, and clear about what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.data.readers import read_collection
from diptych.encoders import DualEncoder
from diptych.encoders.encode import encode_collection
from diptych.encoders.given_rows import GivenRows

RNG = np.random.default_rng(0)


def parquet(folder: Path, image_ids: list[str], text_ids: list[str], width: int = 4) -> dict[str, np.ndarray]:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder.mkdir(exist_ok=True)
    found = {}
    for name, ids in (("img_embs", image_ids), ("text_embs", text_ids)):
        rows = RNG.standard_normal((len(ids), width)).astype(np.float32)
        pq.write_table(pa.table({"id": ids, "emb": rows.tolist()}), folder / f"{name}.parquet")
        found[name] = rows
    return found


def plain(folder: Path, kind: str, ids: list[str], rows: np.ndarray) -> None:
    folder.mkdir(exist_ok=True)
    np.save(folder / f"{kind}.npy", rows)
    (folder / f"{kind}.txt").write_text("\n".join(ids) + "\n", encoding="utf-8")


def karpathy(folder: Path) -> Path:
    """A data set of six images without any picture."""
    images = [
        {
            "filename": f"COCO_{number}.jpg",
            "imgid": 100 + number,
            "split": "test" if number > 3 else "train",
            "sentences": [{"raw": f"picture {number}, {i}", "sentid": 2 * number + i} for i in range(2)],
        }
        for number in range(6)
    ]
    folder.mkdir()
    (folder / "dataset_meta.json").write_text(json.dumps({"images": images, "dataset": "meta"}))
    return folder


def test_parquet_rows_are_matched_by_karpathys_numbers(tmp_path: Path) -> None:
    whole = read_collection(karpathy(tmp_path / "data"))
    numbers = [str(100 + number) for number in range(whole.n_images)]
    rows = parquet(tmp_path / "rows", numbers[::-1], list(whole.caption_ids))
    part = whole.split("test")
    encoded = encode_collection(DualEncoder.load(f"rows:{tmp_path / 'rows'}"), part, tmp_path / "out", "test")
    first = whole.n_images - 1 - list(whole.image_ids).index(part.image_ids[0])
    wanted = rows["img_embs"][first] / np.linalg.norm(rows["img_embs"][first])
    assert np.allclose(encoded.images.rows[0], wanted, atol=1e-6)
    assert len(encoded.texts) == part.n_captions
    again = encode_collection(DualEncoder.load(str(tmp_path / "rows")), part, tmp_path / "out", "test")
    assert again.images.encoder == encoded.images.encoder


def test_npy_rows_by_id_and_what_is_missing(scenes_folder: Path, tmp_path: Path) -> None:
    part = read_collection(scenes_folder).split("test")
    images, texts = RNG.standard_normal((part.n_images, 3)), RNG.standard_normal((part.n_captions, 3))
    plain(tmp_path / "rows", "images", list(part.image_ids), images)
    plain(tmp_path / "rows", "texts", list(part.caption_ids), texts)
    given = GivenRows.open(tmp_path / "rows")
    assert given.width == 3
    found = np.concatenate(list(given.blocks(part, "text", [range(7), range(7, part.n_captions)])))
    assert np.allclose(found * np.linalg.norm(texts, axis=1, keepdims=True), texts, atol=1e-5)
    plain(tmp_path / "rows", "texts", ["x", *part.caption_ids[1:]], texts)
    with pytest.raises(MismatchError, match=rf"no row for caption '{part.caption_ids[0]}' \(1 are missing"):
        list(GivenRows.open(tmp_path / "rows").blocks(part, "text", [range(1)]))


def test_nothing_new_can_be_encoded(tmp_path: Path) -> None:
    for kind in ("images", "texts"):
        plain(tmp_path, kind, ["a"], np.ones((1, 2)))
    given = DualEncoder.load(f"rows:{tmp_path}")
    refused(UsageError, "new sentences cannot be encoded", given.encode_texts, ["a dog"])
    refused(UsageError, "new pictures", given.encode_images, [])
    refused(UsageError, "could be saved", given.save, tmp_path / "saved")


def test_damaged_rows_are_refused(tmp_path: Path) -> None:
    refused(UsageError, r"no rows of images.*img_embs.parquet", GivenRows.open, tmp_path)
    plain(tmp_path, "images", ["a"], np.ones((1, 2)))
    plain(tmp_path, "texts", ["a"], np.ones((1, 3)))
    refused(StorageError, "width 2, captions of 3", GivenRows.open, tmp_path)
    plain(tmp_path, "texts", ["a", "a"], np.ones((2, 2)))
    refused(StorageError, r"2 ids \(1 different\)", GivenRows.open, tmp_path)
    plain(tmp_path, "texts", ["a"], np.ones((1, 2), dtype=np.int64))
    refused(StorageError, "int64", GivenRows.open, tmp_path)
    (tmp_path / "texts.npy").write_bytes(b"no")
    refused(StorageError, "is corrupt", GivenRows.open, tmp_path)


def test_parquet_of_another_kind_is_refused(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet(tmp_path, ["a"], ["b"])
    pq.write_table(pa.table({"id": ["a"], "emb": [1.0]}), tmp_path / "img_embs.parquet")
    refused(StorageError, "cannot be read", GivenRows.open, tmp_path)
    pq.write_table(pa.table({"name": ["a"], "emb": [[1.0]]}), tmp_path / "img_embs.parquet")
    refused(StorageError, "columns id and emb", GivenRows.open, tmp_path)
    pq.write_table(pa.table({"id": ["a", "b"], "emb": [[1.0], [1.0, 2.0]]}), tmp_path / "img_embs.parquet")
    refused(StorageError, "not of one length", GivenRows.open, tmp_path)
