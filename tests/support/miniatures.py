"""Datasets of a few tiny pictures in the forms in which the real ones are distributed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

BIRDS = ("001.Black_footed_Albatross", "002.Laysan_Albatross")


def picture(path: Path, colour: int = 0) -> None:
    """A 4 × 4 picture of one colour."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 4), (colour, 0, 0)).save(path)


def karpathy(
    folder: Path,
    images: Mapping[str, tuple[str, Sequence[str]]],
    dataset: str = "coco",
    pictures: bool = True,
) -> Path:
    """``{file: (split, captions)}`` as Karpathy's JSON; sentences are numbered from 100."""
    folder.mkdir(parents=True, exist_ok=True)
    entries: list[dict[str, Any]] = []
    number = 100
    for name, (split, captions) in images.items():
        sentences = [{"raw": text, "sentid": number + i} for i, text in enumerate(captions)]
        number += len(captions)
        *below, file = name.split("/")
        place = {"filepath": below[0]} if below else {}
        entries.append({"filename": file, "split": split, "sentences": sentences, **place})
        if pictures:
            picture(folder / "images" / name, len(entries))
    file_ = folder / f"dataset_{dataset}.json"
    file_.write_text(json.dumps({"dataset": dataset, "images": entries}))
    return file_


def cub(folder: Path, of_each: int = 3, captions: int = 10) -> list[str]:
    """``CUB_200_2011`` of two classes and ``cvpr2016_cub/text_c10`` beside it; every third is a test picture."""
    root = folder / "CUB_200_2011"
    names = [f"{bird}/{bird[4:]}_{i:04d}_{i}.jpg" for bird in BIRDS for i in range(of_each)]
    for row, name in enumerate(names):
        picture(root / "images" / name, row)
        text = folder / "cvpr2016_cub" / "text_c10" / f"{name.removesuffix('.jpg')}.txt"
        text.parent.mkdir(parents=True, exist_ok=True)
        text.write_text("".join(f"a bird {row} seen {i} times\n" for i in range(captions)))

    def listed(file: str, values: Sequence[object]) -> None:
        (root / file).write_text("".join(f"{i} {value}\n" for i, value in enumerate(values, 1)))

    listed("images.txt", names)
    listed("classes.txt", BIRDS)
    listed("image_class_labels.txt", [1 + BIRDS.index(name.split("/")[0]) for name in names])
    listed("train_test_split.txt", [int(row % 3 != 2) for row in range(len(names))])
    return names


def flickr30k(folder: Path, splits: Mapping[str, Sequence[str]], unlisted: Sequence[str] = ()) -> Path:
    """``results_20130124.token``, ``flickr30k-images`` and the lists of ``flickr30k_entities``."""
    names = [*(name for part in splits.values() for name in part), *unlisted]
    lines = [f"{name}.jpg#{i}\tperson {name} is said {i} times .\n" for name in names for i in range(5)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results_20130124.token").write_text("".join(lines))
    for row, name in enumerate(names):
        picture(folder / "flickr30k-images" / f"{name}.jpg", row)
    lists = folder / "flickr30k_entities"
    lists.mkdir(exist_ok=True)
    for split, part in splits.items():
        (lists / f"{split}.txt").write_text("".join(f"{name}\n" for name in part))
    return folder / "results_20130124.token"


def retrieval_json(folder: Path, dataset: str = "coco_karpathy") -> None:
    """Lists to train (a line per caption), to validate and to test (a line per picture), and pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    train = [
        {"caption": f"{name} {i}", "image": f"val2014/{name}.jpg", "image_id": f"coco_{name}"}
        for i in range(2)
        for name in "ab"
    ]
    (folder / f"{dataset}_train.json").write_text(json.dumps(train))
    for split, name in (("val", "c"), ("test", "d")):
        entry = {"image": f"val2014/{name}.jpg", "caption": [f"{name} {i}" for i in range(5)]}
        (folder / f"{dataset}_{split}.json").write_text(json.dumps([entry]))
    for row, name in enumerate("abcd"):
        picture(folder / "images" / "val2014" / f"{name}.jpg", row)
