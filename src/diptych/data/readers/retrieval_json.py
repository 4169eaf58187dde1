"""Lists of pictures and captions as ALBEF, X-VLM and BLIP read them: one JSON file per split.

``[{"image": "val2014/….jpg", "caption": "…" or ["…", …], "image_id": …}, …]``: one line per caption to train,
one line per picture to validate and test. The split is in the file's name (``coco_karpathy_test.json``).

Source: Li et al., ALBEF, NeurIPS 2021, and the published lists of X-VLM and BLIP.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from diptych.core.errors import DataError, UsageError
from diptych.core.reading import beginning_of, read_json
from diptych.data.collection import Centric, Collection
from diptych.data.known import centric_of
from diptych.data.readers.declaration import READERS, Reader
from diptych.data.readers.gathering import Gathering, image_folder
from diptych.data.readers.karpathy import karpathy_files

_SPLITS = {"train": "train", "val": "val", "valid": "val", "dev": "val", "test": "test"}
_PART = re.compile(r"(^|[_.-])(train|valid|val|dev|test)(?=$|[_.-])")
_OWN_KEYS = {"image", "caption"}
_BEGINNING = 16_384


@dataclass
class _Image:
    split: str
    file: str
    record: dict[str, Any]
    captions: list[str] = field(default_factory=list)


def _stem(file: Path) -> str:
    return file.name.removesuffix(".gz").removesuffix(".json")


def _split_and_rest(file: Path) -> tuple[str, str] | None:
    """Return the split that a file's name says, and the name without it; None where it says none."""
    found = list(_PART.finditer(_stem(file).lower()))
    if not found:
        return None
    last = found[-1]
    rest = _stem(file)[: last.start()] + _stem(file)[last.end() :]
    return _SPLITS[last[2]], rest.strip("_.-")


def _is_list(file: Path) -> bool:
    beginning = beginning_of(file, _BEGINNING)
    return (
        beginning.lstrip("\ufeff \t\r\n").startswith("[")
        and '"image"' in beginning
        and '"caption"' in beginning
    )


def _lists_in(folder: Path) -> list[Path]:
    files = sorted([*folder.glob("*.json"), *folder.glob("*.json.gz")])
    return [file for file in files if _split_and_rest(file) is not None and _is_list(file)]


def _chosen(path: Path, dataset: str | None, split: str | None) -> tuple[str, list[tuple[str, Path]]]:
    """Return the dataset's name and its splits' files."""
    if not path.is_dir():
        said = _split_and_rest(path)
        if split is None and said is None:
            raise UsageError(
                f"{path.name} does not say of which split it is",
                "add it with --reader-option split=test, or name the file …_test.json",
            )
        rest = said[1] if said is not None else _stem(path)
        return dataset or rest or path.resolve().parent.name, [(split or (said or ("",))[0], path)]
    if split is not None:
        raise UsageError(f"split {split!r} with the folder {path}", "give the file of that split with --data")
    groups: dict[str, list[tuple[str, Path]]] = {}
    for file in _lists_in(path):
        said = _split_and_rest(file)
        assert said is not None
        groups.setdefault(said[1], []).append((said[0], file))
    if not groups:
        raise DataError(
            f"no lists of pictures and captions in {path}", "expected files such as coco_test.json"
        )
    if dataset is None and len(groups) > 1:
        raise UsageError(
            f"{path} holds the lists of {len(groups)} datasets: {', '.join(sorted(groups))}",
            "choose one with --reader-option dataset=NAME",
        )
    name = dataset if dataset is not None else next(iter(groups))
    if name not in groups:
        raise UsageError(f"{path} holds no lists of {name!r}", f"there are: {', '.join(sorted(groups))}")
    files = groups[name]
    for part in {part for part, _ in files}:
        same = [file.name for other, file in files if other == part]
        if len(same) > 1:
            raise DataError(
                f"{path} holds {len(same)} lists of {part}: {', '.join(same)}", "keep one of them"
            )
    order = list(dict.fromkeys(_SPLITS.values()))
    return name or path.resolve().name, sorted(files, key=lambda item: order.index(item[0]))


def _read(file: Path, split: str, remove: str, images: dict[str, _Image]) -> None:
    """Add the pictures and captions of one file."""
    document = read_json(file, DataError)
    if not isinstance(document, list):
        raise DataError(f"{file} is not a list", 'expected [{"image": …, "caption": …}, …]')
    for number, line in enumerate(document):
        texts = line.get("caption") if isinstance(line, Mapping) else None
        texts = [texts] if isinstance(texts, str) else texts
        if (
            not isinstance(line, Mapping)
            or not isinstance(line.get("image"), str)
            or not line["image"]
            or not isinstance(texts, list)
            or not all(isinstance(text, str) for text in texts)
        ):
            raise DataError(
                f"{file}: entry {number} has no image and caption",
                'expected {"image": "FILE", "caption": "…" or ["…", …]}',
            )
        name = line["image"].removeprefix(remove)
        image = images.get(name)
        if image is None:
            record = {str(key): value for key, value in line.items() if key not in _OWN_KEYS}
            image = images[name] = _Image(split, file.name, record)
        elif image.split != split:
            raise DataError(
                f"{name} is in {image.file} ({image.split}) and in {file.name} ({split})",
                "a picture belongs to one split",
            )
        image.captions += texts


def read_retrieval_json(
    path: Path | str,
    images: Path | str | None = None,
    dataset: str | None = None,
    split: str | None = None,
    remove_prefix: str = "",
    max_captions: int | None = None,
    skip_bad_captions: bool = False,
    centric: Centric | None = None,
) -> Collection:
    """Read lists of pictures and captions: one file, or the files of a dataset's splits in a folder."""
    path = Path(path)
    name, files = _chosen(path, dataset, split)
    found: dict[str, _Image] = {}
    for part, file in files:
        _read(file, part, remove_prefix, found)
    if not found:
        raise DataError(f"{path} lists no pictures", "fetch the lists again")
    base = files[0][1].parent
    gathered = Gathering(skip_bad_captions)
    for image, about in found.items():
        gathered.add(image, about.split, about.captions[:max_captions], about.record, said_in=about.file)
    folder = image_folder(images, base)
    return gathered.collection(name, folder, centric_of(centric, name))


def _recognises(path: Path) -> bool:
    if path.is_dir():  # beside Karpathy's JSON they are asked for by name
        return bool(_lists_in(path)) and not karpathy_files(path)
    return path.name.endswith((".json", ".json.gz")) and _is_list(path)


READERS.add(
    Reader(
        "retrieval-json",
        "lists of pictures and captions of ALBEF, X-VLM and BLIP: one JSON file per split",
        _recognises,
        read_retrieval_json,
        {
            "images": "folder that the file names begin at (default: images/ beside the lists)",
            "dataset": "whose lists to read, of several in the folder",
            "split": "the split of a single file whose name does not say it",
            "remove_prefix": "what to take off the beginning of every file name",
            "max_captions": "keep the first so many captions of each image",
            "skip_bad_captions": "leave out and count empty captions instead of failing",
            "centric": "what the pictures show: scene or object (default: as known of the dataset)",
        },
    )
)
