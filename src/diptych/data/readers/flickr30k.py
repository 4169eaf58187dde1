"""Flickr30k and Flickr8k as their authors distribute them: a file of tokens and lists of splits.

``results_20130124.token`` (``Flickr8k.token.txt``) holds ``FILE.jpg#N<TAB>caption`` per line; a widespread
copy, ``results.csv``, holds ``FILE.jpg| N| caption`` below a header. ``train.txt``, ``val.txt`` and
``test.txt`` of Flickr30k Entities (``Flickr_8k.trainImages.txt`` …) name a split's images, one per line.

Sources: Young et al., TACL 2014; Hodosh et al., JAIR 2013; Plummer et al., Flickr30k Entities, IJCV 2017.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from diptych.core.errors import DataError
from diptych.core.reading import beginning_of, read_lines, read_text
from diptych.data.collection import WHOLE, Collection
from diptych.data.readers.contract import Gathering, first_folder, looks, reader

_TOKENS = ("results_20130124.token", "Flickr8k.token.txt", "results.csv", "flickr30k_images/results.csv")
_IMAGES = (
    *("flickr30k-images", "flickr30k_images/flickr30k_images", "flickr30k_images"),
    *("Flicker8k_Dataset", "Flickr8k_Dataset", "images", "Images"),
)
_LISTS = {
    "train": ("train.txt", "Flickr_8k.trainImages.txt"),
    "val": ("val.txt", "Flickr_8k.devImages.txt"),
    "test": ("test.txt", "Flickr_8k.testImages.txt"),
}
_LIST_FOLDERS = ("flickr30k_entities", "Flickr8k_text", "splits")
_HEADER = re.compile(r"image_name\s*\|\s*comment_number\s*\|\s*comment")
_NUMBER_FIRST = re.compile(r"\s*([0-9]+)\s+(.*)")  # one line of the copy has lost its second bar


def _is_tokens(file: Path) -> bool:
    if file.suffix == ".csv":
        return _HEADER.match(beginning_of(file, 100)) is not None
    return file.is_file()


def _lines(file: Path) -> Iterator[tuple[str, str, str]]:
    for line, text in read_lines(file, error=DataError):
        if not text.strip() or (line == 1 and _HEADER.match(text)):
            continue
        if file.suffix == ".csv":
            name, _, rest = text.partition("|")
            number, bar, caption = rest.partition("|")
            if not bar and (both := _NUMBER_FIRST.fullmatch(rest)):
                number, caption = both[1], both[2]
        else:
            key, _, caption = text.partition("\t")
            name, _, number = key.rpartition("#")
        if not name.strip() or not (number.strip().isascii() and number.strip().isdigit()):
            raise DataError(
                f"{file}, line {line}: {text[:60]!r} is no file name, number and caption",
                "fetch the file again",
            )
        yield name.strip(), number.strip(), caption


def _split_of(folder: Path) -> dict[str, str]:
    """Return the split of each image that a list names, by its file name without ending."""
    found: dict[str, str] = {}
    for split, files in _LISTS.items():
        file = next((folder / name for name in files if (folder / name).is_file()), None)
        if file is None:
            raise DataError(f"{folder} has no list of {split} ({' or '.join(files)})", "put all three there")
        for line in read_text(file, errors="replace", error=DataError).splitlines():
            stem = line.strip().removesuffix(".jpg")
            if stem and found.setdefault(stem, split) != split:
                raise DataError(
                    f"{folder}: {stem} is listed in {found[stem]} and in {split}", "fetch them again"
                )
    return found


def _has_lists(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _LISTS["train"])


@reader(
    "flickr30k",
    "Flickr30k or Flickr8k in their authors' form: a file of tokens, lists of splits, a folder of images",
    *_TOKENS,
    "*.token",
    "*.token.txt",
    general=2,
    claims=looks(_is_tokens),
)
def read_flickr30k(
    path: Path | str,
    images: Path | str | None = None,
    splits: Path | str | None = None,
    max_captions: int | None = None,
    skip_bad_captions: bool = False,
) -> Collection:
    path = Path(path)
    file = path if path.is_file() else next((path / one for one in _TOKENS if _is_tokens(path / one)), None)
    if file is None:
        raise DataError(f"no {_TOKENS[0]} in {path}", "give the file itself with --data")
    base = file.parent
    texts: dict[str, list[tuple[str, str]]] = {}
    seen: set[str] = set()
    for name, number, caption in _lines(file):
        identifier = f"{name}#{number}"
        if identifier in seen:
            raise DataError(f"{file} has {identifier} twice", "fetch the file again")
        seen.add(identifier)
        texts.setdefault(name, []).append((identifier, caption))
    if not texts:
        raise DataError(f"{file} has no captions", "fetch the file again")
    folders = [base / name for name in _IMAGES]
    folder = first_folder(images, folders, "--images") or base
    lists = first_folder(
        splits,
        [place for place in (*(base / name for name in _LIST_FOLDERS), base) if _has_lists(place)],
        "--reader-option splits",
    )
    notes: list[str] = []
    chosen = dict.fromkeys(texts, WHOLE)
    if lists is not None:
        listed = _split_of(lists)
        stems = {name.removesuffix(".jpg"): name for name in texts}
        lost = [stem for stem in listed if stem not in stems]
        if lost:
            raise DataError(
                f"{file} has no captions for {len(lost):,} of {len(listed):,} listed images, first {lost[0]}",
                "fetch the file again, or give the lists that belong to it",
            )
        chosen = {name: listed[stem] for stem, name in stems.items() if stem in listed}
        if len(chosen) < len(texts):
            notes.append(f"{len(texts) - len(chosen):,} images in no list of splits left out")
    gathered = Gathering(skip_bad_captions)
    for name, split in chosen.items():
        kept = texts[name][:max_captions]
        gathered.add(name, [text for _, text in kept], split, {}, file.name, [i for i, _ in kept])
    dataset = "flickr8k" if file.name.lower().startswith("flickr8k") else "flickr30k"
    return gathered.collection(dataset, folder, "scene", notes)
