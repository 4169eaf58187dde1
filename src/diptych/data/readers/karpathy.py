"""Karpathy's JSON: MS COCO, Flickr30k, Flickr8k and everything written in their manner.

``{"images": [{"filename", "split", "sentences": [{"raw", "sentid"}, …], …}, …]}``, optionally
gzipped. COCO's ``filepath`` (train2014, val2014) is honoured, and its ``restval`` images join the
training split (113,287 images) unless asked otherwise.

Source of the splits: Karpathy and Fei-Fei, Deep Visual-Semantic Alignments, CVPR 2015.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diptych.core.errors import DataError, UsageError
from diptych.core.reading import read_json
from diptych.data.collection import Centric, Collection, ImageSource
from diptych.data.images import FolderSource
from diptych.data.known import centric_of
from diptych.data.readers.declaration import READERS, Reader
from diptych.data.readers.gathering import Gathering, image_folder
from diptych.data.regions import RegionSource, open_regions, region_rows

_OWN_KEYS = {"filename", "filepath", "split", "sentences", "sentids"}
_OWN_SENTENCE_KEYS = {"raw", "sentid", "imgid", "tokens"}
_HUGGING_FACE = {"dataset_info.json", "dataset_dict.json"}


def karpathy_files(folder: Path) -> list[Path]:
    """Return the files of a folder that are named as Karpathy's are; sorted."""
    files = [*folder.glob("dataset*.json"), *folder.glob("dataset*.json.gz")]
    return sorted(file for file in files if file.name not in _HUGGING_FACE)


def _json_file(path: Path) -> Path:
    if path.is_file():
        return path
    found = karpathy_files(path)
    if not found:
        raise DataError(f"no dataset*.json in {path}", "give the JSON file itself with --data")
    if len(found) > 1:
        names = ", ".join(file.name for file in found)
        raise DataError(f"{len(found)} candidates in {path}: {names}", "give one of them with --data")
    return found[0]


def _load(path: Path) -> Mapping[str, Any]:
    document = read_json(path, DataError)
    if not isinstance(document, dict) or not isinstance(document.get("images"), list):
        raise DataError(
            f"{path} is not Karpathy's JSON: no list under 'images'",
            "expected {'images': [{'filename', 'split', 'sentences': [{'raw'}]}]}",
        )
    return document


def read_karpathy(
    path: Path | str,
    images: Path | str | None = None,
    restval: bool = True,
    max_captions: int | None = None,
    skip_bad_captions: bool = False,
    regions: Path | str | None = None,
    region_ids: Path | str | None = None,
    centric: Centric | None = None,
) -> Collection:
    """Read a Karpathy-style JSON file, or the folder that holds one."""
    file = _json_file(Path(path))
    document = _load(file)
    gathered = Gathering(skip_bad_captions)
    for row, image in enumerate(document["images"]):
        try:
            name, split, sentences = str(image["filename"]), str(image["split"]), image["sentences"]
            kept = sentences[:max_captions]
            texts = [str(sentence["raw"]) for sentence in kept]
            ids = [str(sentence.get("sentid", f"{row}#{i}")) for i, sentence in enumerate(kept)]
            records = [{k: v for k, v in one.items() if k not in _OWN_SENTENCE_KEYS} for one in kept]
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"{file}: image {row} is not as Karpathy's JSON says ({type(error).__name__}: {error})",
                "each image needs 'filename', 'split' and 'sentences' with 'raw'",
            ) from None
        gathered.add(
            f"{image['filepath']}/{name}" if image.get("filepath") else name,
            "train" if split == "restval" and restval else split,
            texts,
            {key: value for key, value in image.items() if key not in _OWN_KEYS},
            ids,
            file.name,
            records,
        )
    source: ImageSource = FolderSource(image_folder(images, file.parent), gathered.names)
    if regions is None and region_ids is not None:
        raise UsageError(
            f"region_ids {region_ids} without regions", "give the features with regions=FILE.npy"
        )
    if regions is not None:
        features = open_regions(regions)
        rows = region_rows(gathered.names, features, region_ids, str(regions))
        source = RegionSource([features], Path(regions).name, source, rows)
    dataset = str(document.get("dataset", file.name.split(".")[0]))
    return gathered.collection(dataset, source, centric_of(centric, dataset))


def _recognises(path: Path) -> bool:
    if path.is_dir():
        return bool(karpathy_files(path))
    return path.name.endswith((".json", ".json.gz"))


READERS.add(
    Reader(
        "karpathy",
        "Karpathy's JSON (COCO, Flickr30k, Flickr8k): a dataset*.json and a folder of pictures",
        _recognises,
        read_karpathy,
        {
            "images": "folder of pictures (default: images/ beside the JSON)",
            "restval": "COCO's restval images belong to train (default: true)",
            "max_captions": "keep the first so many captions of each image",
            "skip_bad_captions": "leave out and count empty captions instead of failing",
            "regions": ".npy file of region features, one row per image, that stand for the pictures",
            "region_ids": "text file with the image of each row of regions (default: the JSON's order)",
            "centric": "what the pictures show: scene or object (default: as known of the dataset)",
        },
        general=1,
    )
)
