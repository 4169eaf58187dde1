"""COCO-FG and Flickr30k-FG: a JSON object from a picture's name, without ending, to its five captions.

They replace the captions of Karpathy's test splits and were written in the order of his sentences, so with
his JSON they take the ids of the sentences they stand for.

Source: Chen, Yao and Jin, Rethinking Benchmarks for Cross-modal Image-text Retrieval, SIGIR 2023.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from diptych.core.errors import DataError
from diptych.core.reading import read_json
from diptych.data.collection import Centric, Collection
from diptych.data.known import centric_of
from diptych.data.readers.declaration import READERS, Reader
from diptych.data.readers.gathering import Gathering, image_folder
from diptych.data.readers.karpathy import karpathy_files, read_karpathy

_ENDING = "_FG_ann.json"
_NAMES = {"MSCOCO": "coco-fg", "Flickr30K": "flickr30k-fg"}


def _candidates(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{_ENDING}*"))


def _find(path: Path) -> Path:
    if path.is_file():
        return path
    found = _candidates(path)
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise DataError(f"one *{_ENDING} expected in {path}, found: {names}", "give the file itself")
    return found[0]


def _load(file: Path) -> dict[str, list[str]]:
    document = read_json(file, DataError, unique_keys=True)
    if not isinstance(document, dict) or not document:
        raise DataError(
            f"{file} is not fine-grained captions", 'expected {"picture without ending": ["caption", …], …}'
        )
    for stem, captions in document.items():
        if not isinstance(captions, list) or not all(isinstance(text, str) for text in captions):
            raise DataError(f"{file}: {stem!r} has no list of captions", "fetch the file again")
    return document


def read_fine_grained(
    path: Path | str,
    images: Path | str | None = None,
    karpathy: Path | str | None = None,
    ending: str = ".jpg",
    skip_bad_captions: bool = False,
    centric: Centric | None = None,
) -> Collection:
    """Read fine-grained captions as the split ``test``."""
    file = _find(Path(path))
    document = _load(file)
    folder = image_folder(images, file.parent)
    gathered = Gathering(skip_bad_captions)
    if karpathy is None:
        for stem, captions in document.items():
            gathered.add(f"{stem}{ending}", "test", captions, {}, said_in=file.name)
    else:
        _add_as_in(read_karpathy(karpathy, images=images), document, gathered, file, str(karpathy))
    name = next((name for begins, name in _NAMES.items() if file.name.startswith(begins)), None)
    dataset = name or file.name.split(".")[0]
    return gathered.collection(dataset, folder, centric_of(centric, dataset))


def _add_as_in(
    reference: Collection, document: dict[str, list[str]], gathered: Gathering, file: Path, what: str
) -> None:
    """Images and sentences in the order and with the ids of ``reference``."""
    rows = {PurePosixPath(name).stem: row for row, name in enumerate(reference.image_ids)}
    strange = [stem for stem in document if stem not in rows]
    if strange:
        raise DataError(
            f"{what} has no picture for {len(strange):,} of {len(document):,} entries of {file}, "
            f"first {strange[0]}",
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
            reference.image_ids[row], "test", captions, record, list(ids[: len(captions)]), said_in=file.name
        )


def _recognises(path: Path) -> bool:
    if path.is_dir():  # beside Karpathy's JSON they are asked for by name
        return bool(_candidates(path)) and not karpathy_files(path)
    return _ENDING in path.name


READERS.add(
    Reader(
        "fine-grained",
        "COCO-FG and Flickr30k-FG: *_FG_ann.json and a folder of pictures",
        _recognises,
        read_fine_grained,
        {
            "images": "folder of pictures (default: images/ beside the file)",
            "karpathy": "Karpathy's JSON of the same dataset, whose ids and order are taken",
            "ending": "what the pictures' file names end in (default: .jpg)",
            "skip_bad_captions": "leave out and count empty captions instead of failing",
            "centric": "what the pictures show: scene or object (default: as known of the dataset)",
        },
    )
)
