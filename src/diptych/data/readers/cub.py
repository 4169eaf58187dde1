"""CUB-200-2011 with the captions of Reed et al.: one text file of ten lines for every image.

``CUB_200_2011/`` holds ``images.txt``, ``classes.txt``, ``image_class_labels.txt``, ``train_test_split.txt``
(numbers and names, one per line) and ``images/CLASS/FILE.jpg``; the captions are ``text_c10/CLASS/FILE.txt``.

Sources: Wah et al., The Caltech-UCSD Birds-200-2011 Dataset; Reed et al., Learning Deep Representations of
Fine-grained Visual Descriptions, CVPR 2016.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from diptych.core.context import track
from diptych.core.errors import DataError
from diptych.core.reading import read_text
from diptych.data.collection import Collection
from diptych.data.images import check_inside
from diptych.data.lines import DelimitedTable
from diptych.data.loading import read_ahead
from diptych.data.readers.contract import Gathering, first_folder, reader

_FOLDER = "CUB_200_2011"
_IMAGES = "images.txt"
_TEXTS = ("text_c10", "cvpr2016_cub/text_c10", "birds/text_c10", "text")
_FILE_COLUMNS = ("image_file", "image", "filename", "file_name", "file", "path")
_SPLIT_COLUMNS = ("eval_status", "split", "set")
_SPLITS = {"dev": "val", "valid": "val", "validation": "val"}


def _root(path: Path) -> Path:
    for folder in (path, path / _FOLDER, path / _FOLDER / _FOLDER):
        if (folder / _IMAGES).is_file():
            return folder
    raise DataError(
        f"no {_IMAGES} in {path} or in {path / _FOLDER}", f"give the folder that {_FOLDER}.tgz unpacks to"
    )


def _numbered(file: Path) -> dict[str, str]:
    """``NUMBER VALUE`` per line, in the file's order."""
    lines = read_text(file, error=DataError, fix=f"unpack {_FOLDER}.tgz again").splitlines()
    found: dict[str, str] = {}
    for line, text in enumerate(lines, 1):
        number, _, value = text.strip().partition(" ")
        if not number:
            continue
        if not value.strip() or number in found:
            what = f"number {number} twice" if number in found else f"no value for {number}"
            raise DataError(f"{file}, line {line}: {what}", f"unpack {_FOLDER}.tgz again")
        found[number] = value.strip()
    return found


def _of_images(file: Path, images: Mapping[str, str]) -> dict[str, str]:
    values = _numbered(file)
    without = [number for number in images if number not in values]
    if without:
        raise DataError(
            f"{file} says nothing of {len(without):,} of {len(images):,} images, first {images[without[0]]}",
            f"unpack {_FOLDER}.tgz again",
        )
    return values


def _captions(file: Path) -> list[str] | None:
    """Return the lines of one file of captions; None where there is no such file."""
    if not file.exists():
        return None
    # A few of the published files hold bytes that are no UTF-8, in the middle of usable captions.
    content = read_text(file, "utf-8", errors="replace", error=DataError)
    lines = content.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _listed_splits(file: Path, names: Sequence[str]) -> list[str]:
    """Return the split of each image in a table of file names and splits; ``dev`` is ``val``."""
    table = DelimitedTable(file)
    flag = "image_file and eval_status"
    image = table.place(None, _FILE_COLUMNS, "images", flag)
    split = table.place(None, _SPLIT_COLUMNS, "splits", flag)
    given = {
        PurePosixPath(row[image]).stem: row[split].strip()
        for _, row in table.rows()
        if len(row) > max(image, split)
    }
    # CUB's file names are unique without their folders.
    stems = [PurePosixPath(name).stem for name in names]
    without = [name for name, stem in zip(names, stems, strict=True) if not given.get(stem)]
    unknown = sorted(set(given) - set(stems))
    if without or unknown:
        raise DataError(
            f"{file} gives no split to {len(without):,} of {len(names):,} images"
            + (f" (first {without[0]})" if without else "")
            + f" and names {len(unknown):,} that are not there"
            + (f" (first {unknown[0]})" if unknown else ""),
            "give one line per image of images.txt",
        )
    return [_SPLITS.get(given[stem], given[stem]) for stem in stems]


@reader(
    "cub",
    "CUB-200-2011 with the captions of Reed et al.: CUB_200_2011 and text_c10",
    *(f"{below}image_class_labels.txt" for below in ("", f"{_FOLDER}/", f"{_FOLDER}/{_FOLDER}/")),
)
def read_cub(
    path: Path | str,
    images: Path | str | None = None,
    captions: Path | str | None = None,
    split_file: Path | str | None = None,
    max_captions: int | None = None,
    skip_bad_captions: bool = False,
) -> Collection:
    root = _root(Path(path))
    names = _numbered(root / "images.txt")
    for name in names.values():
        check_inside(name, root / "images")  # before a file of captions is looked for by it
        if not PurePosixPath(name).name:
            raise DataError(f"{root / 'images.txt'} names {name!r}", f"unpack {_FOLDER}.tgz again")
    classes = _numbered(root / "classes.txt")
    labels = _of_images(root / "image_class_labels.txt", names)
    if split_file is None:
        listed = _of_images(root / "train_test_split.txt", names)
        splits = ["train" if listed[number] == "1" else "test" for number in names]
    else:
        splits = _listed_splits(Path(split_file), list(names.values()))
    found = [base / name for base in (root, root.parent, root.parent.parent) for name in _TEXTS]
    texts = first_folder(captions, found, "--reader-option captions")
    if texts is None:
        raise DataError(
            f"no captions near {root}: no {' or '.join(_TEXTS[:2])}",
            "fetch the captions of Reed et al. (diptych data show cub) or name their folder with "
            "--reader-option captions=FOLDER",
        )
    folder = first_folder(images, (), "--images") or root / "images"
    gathered = Gathering(skip_bad_captions)
    files = [texts / PurePosixPath(name).with_suffix(".txt") for name in names.values()]
    missing: list[str] = []
    read = track(read_ahead(_captions, files), "reading captions", len(files), "files")
    for (number, name), split, lines in zip(names.items(), splits, read, strict=True):
        label = classes.get(labels[number])
        if label is None or label != PurePosixPath(name).parent.name:
            raise DataError(
                f"{root}: {name} is labelled as class {labels[number]}, {label}",
                f"unpack {_FOLDER}.tgz again",
            )
        if lines is None:
            missing.append(name)
            continue
        record: dict[str, Any] = {"class": label, "species": label.partition(".")[2].replace("_", " ")}
        gathered.add(name, lines[:max_captions], split, record, str(texts))
    if missing:
        raise DataError(
            f"{texts} has no captions for {len(missing):,} of {len(names):,} images, first {missing[0]}",
            "unpack the captions again",
        )
    return gathered.collection("cub", folder, "object")
