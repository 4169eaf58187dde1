"""COCO-FG and Flickr30k-FG: a JSON object from an image's name, without ending, to its five captions.

They replace the captions of Karpathy's test splits and were written in the order of his sentences, so with
his JSON they take the ids of the sentences they stand for.

Source: Chen, Yao and Jin, Rethinking Benchmarks for Cross-modal Image-text Retrieval, SIGIR 2023.
"""

import json
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import Any

from diptych.core.errors import DataError
from diptych.core.reading import file_errors, read_text
from diptych.data.collection import Centric, Collection
from diptych.data.readers.contract import Gathering, image_folder, one_file, reader
from diptych.data.readers.karpathy import read_karpathy

_FILES = ("*_FG_ann.json", "*_FG_ann.json.gz")
_NAMES = {"MSCOCO": "coco-fg", "Flickr30K": "flickr30k-fg"}


def _with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    counts = Counter(key for key, _ in pairs)
    if twice := [key for key, count in counts.items() if count > 1]:
        raise ValueError(f"it has the key {twice[0]!r} twice")
    return dict(pairs)


def _load(file: Path) -> dict[str, list[str]]:
    text = read_text(file, error=DataError)
    with file_errors(file, DataError, noun="JSON"):
        document = json.loads(text, object_pairs_hook=_with_unique_keys)
    if not isinstance(document, dict) or not document:
        raise DataError(
            f"{file} is not fine-grained captions", 'expected {"image without ending": ["caption", …], …}'
        )
    for stem, captions in document.items():
        if not isinstance(captions, list) or not all(isinstance(text, str) for text in captions):
            raise DataError(f"{file}: {stem!r} has no list of captions", "fetch the file again")
    return document


@reader(
    "fine-grained",
    "COCO-FG and Flickr30k-FG: *_FG_ann.json and a folder of images",
    *_FILES,
    general=2,
)
def read_fine_grained(
    path: Path | str,
    images: Path | str | None = None,
    karpathy: Path | str | None = None,
    ending: str = ".jpg",
    skip_bad_captions: bool = False,
    centric: Centric | None = None,
) -> Collection:
    file = one_file(Path(path), *_FILES)
    document = _load(file)
    folder = image_folder(images, file.parent)
    gathered = Gathering(skip_bad_captions)
    if karpathy is None:
        for stem, captions in document.items():
            gathered.add(f"{stem}{ending}", captions, "test", {}, file.name)
    else:
        _add_as_in(read_karpathy(karpathy, images=images), document, gathered, file, str(karpathy))
    name = next((name for begins, name in _NAMES.items() if file.name.startswith(begins)), None)
    return gathered.collection(name or file.name.split(".")[0], folder, centric)


def _add_as_in(
    reference: Collection, document: dict[str, list[str]], gathered: Gathering, file: Path, what: str
) -> None:
    """Add images and sentences in the order and with the ids of ``reference``."""
    rows = {PurePosixPath(name).stem: row for row, name in enumerate(reference.image_ids)}
    unknown = [stem for stem in document if stem not in rows]
    if unknown:
        raise DataError(
            f"{what} has no image for {len(unknown):,} of {len(document):,} entries of {file}, "
            f"first {unknown[0]}",
            "give Karpathy's JSON of the same dataset",
        )
    starts = reference.caption_start
    for stem, row in sorted(((stem, rows[stem]) for stem in document), key=lambda item: item[1]):
        captions = document[stem]
        ids = reference.caption_ids[starts[row] : starts[row + 1]]
        if len(ids) < len(captions):
            raise DataError(
                f"{file} has {len(captions)} captions of {stem}, {what} has {len(ids)}",
                "give Karpathy's JSON with all sentences",
            )
        record = {} if reference.records is None else reference.records[row]
        gathered.add(
            reference.image_ids[row], captions, "test", record, file.name, list(ids[: len(captions)])
        )
