"""Rows made elsewhere: matched by id in either layout, unit length, and clear about what is missing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from diptych.core.errors import MismatchError, NumericalError, StorageError, UsageError
from diptych.data.readers import read_collection
from diptych.encoders.adapted import LinearlyAdapted, LinearMap, LinearMaps
from diptych.encoders.dual_encoder import DualEncoder, EncoderHeader
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
    expected = rows["img_embs"][first] / np.linalg.norm(rows["img_embs"][first])
    assert np.allclose(encoded.images.rows[0], expected, atol=1e-6)
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


ABOUT = {"pairs": 4, "dataset": "small", "seed": 0}


@pytest.fixture(scope="module")
def base(run_folder: Path) -> DualEncoder:
    return DualEncoder.load(run_folder / "best", device="cpu")


def maps(width: int, seed: int = 0) -> LinearMaps:
    random, eye = np.random.default_rng(seed), np.eye(width)
    means = random.normal(0, 0.1, width), np.zeros(width)
    return LinearMaps(*(LinearMap.of(eye + random.normal(0, 0.3, (width, width)), mean) for mean in means))


@pytest.fixture
def adapted(base: DualEncoder) -> LinearlyAdapted:
    return LinearlyAdapted(base, maps(base.width), ABOUT)


def by_hand(rows: np.ndarray, side: LinearMap) -> np.ndarray:
    found = np.stack([(row.astype(np.float64) - side.mean) @ side.matrix for row in rows])
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def test_parts_of_other_encoders_are_refused(adapted: LinearlyAdapted, tmp_path: Path) -> None:
    folder = adapted.save(tmp_path / "adapted")
    maps(adapted.base.width, 7).save(folder / "maps.npz")
    refused(MismatchError, f"was saved as {adapted.fingerprint} and is", DualEncoder.load, folder)
    (folder / "maps.npz").unlink()
    refused(StorageError, "maps.npz does not exist", DualEncoder.load, folder)
    shutil.rmtree(folder / "base")
    refused(StorageError, "no encoder in base/", DualEncoder.load, folder)
    assert EncoderHeader.open(folder).family == "adapted"


def test_rows_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    refused(UsageError, r"no rows of images.*img_embs.parquet", GivenRows.open, tmp_path)
    plain(tmp_path, "images", ["a"], np.ones((1, 2)))
    for ids, rows, message in (
        (["a"], np.ones((1, 3)), "width 2, captions of 3"),
        (["a", "a"], np.ones((2, 2)), r"2 ids \(1 different\)"),
        (["a"], np.ones((1, 2), dtype=np.int64), "int64"),
    ):
        plain(tmp_path, "texts", ids, rows)
        refused(StorageError, message, GivenRows.open, tmp_path)
    (tmp_path / "texts.npy").write_bytes(b"no")
    refused(StorageError, "is corrupt", GivenRows.open, tmp_path)
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet(tmp_path / "p", ["a"], ["b"])
    for table, message in (
        ({"id": ["a"], "emb": [1.0]}, "cannot be read"),
        ({"name": ["a"], "emb": [[1.0]]}, "columns id and emb"),
        ({"id": ["a", "b"], "emb": [[1.0], [1.0, 2.0]]}, "not of one length"),
    ):
        pq.write_table(pa.table(table), tmp_path / "p" / "img_embs.parquet")
        refused(StorageError, message, GivenRows.open, tmp_path / "p")


def test_adapted_rows_are_the_bases_mapped(
    adapted: LinearlyAdapted, base: DualEncoder, scenes_folder: Path, tmp_path: Path
) -> None:
    part = read_collection(scenes_folder).split("test")
    shown, texts = [part.image(row) for row in range(4)], list(part.captions[:4])
    images = by_hand(base.encode_images(shown), adapted.maps.image)
    np.testing.assert_allclose(adapted.encode_images(shown), images, atol=1e-5)
    expected = by_hand(base.encode_texts(texts), adapted.maps.text)
    np.testing.assert_allclose(adapted.encode_texts(texts), expected, atol=1e-5)
    encoded = encode_collection(adapted, part, tmp_path / "rows", "test")
    np.testing.assert_allclose(encoded.images.rows[:4], images, atol=1e-5)
    assert encoded.about["encoder"]["adapted"] == ABOUT
    same = LinearlyAdapted(base, LinearMaps.identity(base.width), {"pairs": 0})
    assert same.fingerprint == base.fingerprint
    assert np.array_equal(same.encode_texts(["a ring"]), base.encode_texts(["a ring"]))


def test_maps_that_do_not_fit_are_refused(
    base: DualEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide, narrow, odd = (
        LinearMap.of(np.eye(3)[:, :out], np.zeros(mean)) for out, mean in ((3, 3), (2, 3), (3, 2))
    )
    refused(MismatchError, r"\(3, 2\), less \(3,\), of texts \(3, 3\)", LinearMaps, narrow, wide)
    refused(MismatchError, r"\(3, 3\), less \(2,\)", LinearMaps, odd, odd)
    refused(NumericalError, "NaN or infinity", LinearMap.of, np.full((2, 2), np.inf), np.zeros(2))
    for kind in ("images", "texts"):
        plain(tmp_path, kind, ["a"], np.ones((1, 2), np.float32))
    rows, message = GivenRows.open(tmp_path), "holds rows, no encoder that could be adapted"
    refused(UsageError, message, LinearlyAdapted, rows, LinearMaps.identity(2), ABOUT)
    monkeypatch.setattr(type(base), "similarity", "order")
    refused(UsageError, "compared by order", LinearlyAdapted, base, LinearMaps.identity(base.width), ABOUT)
