"""What holds for every reader: its declaration, how it is recognised, and how few files reading enters."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from miniatures import cub, flickr30k, karpathy, picture, retrieval_json
from refusals import refused

from diptych.commerce.scenes.products import make_product_scenes
from diptych.core.errors import UsageError
from diptych.data.readers import READERS, Reader, read_collection
from diptych.data.readers.contract import fitting
from diptych.data.scenes import make_scenes


def texts(**files: str) -> Callable[[Path], object]:
    """Return what writes text files; __ in a name stands for a slash, and a gzipped one is packed."""

    def write(folder: Path) -> None:
        for name, text in files.items():
            path = folder / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            content = text.encode()
            path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)

    return write


def regions(folder: Path) -> None:
    np.save(folder / "test_ims.npy", np.ones((2, 3, 4), dtype=np.float32))
    (folder / "test_caps.txt").write_text("one\ntwo\n")


LAYOUTS: dict[str, tuple[Callable[[Path], object], bool]] = {
    "abo": (texts(**{"listings__metadata__listings_0.json.gz": "{}"}), False),
    "captions-tsv": (texts(**{"train.tsv": "a dog\thttp://x/1.jpg\n"}), True),
    "cub": (cub, False),
    "fashion200k": (texts(**{"labels__dress_train_detect_all.txt": ""}), False),
    "feed": (texts(**{"shop.csv": "id,title,link\n1,a,l\n"}), True),
    "fine-grained": (texts(**{"MSCOCO_FG_ann.json": '{"a": ["one"]}'}), True),
    "flickr30k": (lambda folder: flickr30k(folder, {"train": ["1"], "val": ["2"], "test": ["3"]}), True),
    "huggingface": (texts(**{"dataset_info.json": "{}"}), False),
    "images": (lambda folder: picture(folder / "deep" / "down" / "a.JPG"), False),
    "karpathy": (lambda folder: karpathy(folder, {"a.png": ("test", ["one"])}), True),
    "pairs": (texts(**{"pairs.jsonl": '{"image": "a.png", "caption": "one"}\n'}), True),
    "precomp": (regions, False),
    "product-scenes": (lambda folder: make_product_scenes(folder / "it", n_products=2), False),
    "retrieval-json": (retrieval_json, True),
    "scenes": (lambda folder: make_scenes(folder / "it", n_train=1, n_val=1, n_test=1), False),
    "webdataset": (texts(**{"train-000.tar": "x"}), True),
    "xmarket": (texts(**{"metadata_us_Home.json.gz": '{"asin": "B1"}'}), True),
}
"""What writes a folder of each format, and whether its first file by itself is recognised too."""


@pytest.mark.parametrize("reader", list(READERS), ids=lambda one: one.name)
def test_it_is_declared_and_recognised(reader: Reader, tmp_path: Path) -> None:
    assert reader.patterns
    assert reader.description
    assert all(reader.options.values())
    write, is_file = LAYOUTS[reader.name]
    folder = tmp_path / "data"
    folder.mkdir()
    write(folder)
    folder = folder / "it" if (folder / "it").is_dir() else folder
    assert next(iter(fitting(folder))).name == reader.name
    if is_file:
        file = next(path for path in sorted(folder.iterdir()) if path.is_file())
        assert next(iter(fitting(file))).name == reader.name
    with pytest.raises(UsageError, match=f"reader '{reader.name}' has no option 'colour'"):
        read_collection(folder, reader.name, colour=3)


def test_names_before_contents(tmp_path: Path) -> None:
    """Files are opened where formats share a name, and what lies in the same folder does not mislead."""
    texts(
        **{"dataset.json": json.dumps({"images": []}), "notes.csv": "image,caption\n", "train.tar": ""},
        **{"MSCOCO_FG_ann.json": "{}", "coco_test.json": '[{"image": "a", "caption": "b"}]'},
    )(tmp_path)
    assert [one.name for one in fitting(tmp_path)][:2] == ["karpathy", "fine-grained"]
    texts(**{"results.csv": "image,caption\na.png,one\n"})(tmp_path / "other")
    assert [one.name for one in fitting(tmp_path / "other")] == ["pairs"]
    texts(**{".hidden.csv": "image,caption\n", "readme.md": ""})(tmp_path / "none")
    refused(UsageError, "no reader recognises", read_collection, tmp_path / "none")
