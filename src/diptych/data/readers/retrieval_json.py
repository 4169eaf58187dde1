"""Lists of images and captions as ALBEF, X-VLM and BLIP read them: one JSON file per split.

``[{"image": "val2014/….jpg", "caption": "…" or ["…", …], "image_id": …}, …]``: one line per caption to train,
one line per image to validate and test. The split is in the file's name (``coco_karpathy_test.json``).

Source: Li et al., ALBEF, NeurIPS 2021, and the published lists of X-VLM and BLIP.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from diptych.core.errors import DataError, UsageError
from diptych.core.reading import beginning_of, read_json
from diptych.data.collection import SPLITS, WHOLE, Centric, Collection
from diptych.data.readers.contract import Gathering, image_folder, listing, looks, matching, reader

_SPLITS = {"train": "train", "val": "val", "valid": "val", "dev": "val", "test": "test"}
_PART = re.compile(r"(^|[_.-])(train|valid|val|dev|test)(?=$|[_.-])")
_PATTERNS = tuple(f"*{split}*.json{packed}" for split in _SPLITS for packed in ("", ".gz"))
_OWN_KEYS = {"image", "caption"}
_BEGINNING = 16_384


def _split_and_rest(file: Path) -> tuple[str, str]:
    """Return the split that a file's name holds, ``all`` for none, and the name without it."""
    stem = file.name.removesuffix(".gz").removesuffix(".json")
    found = list(_PART.finditer(stem.lower()))
    if not found:
        return WHOLE, stem
    return _SPLITS[found[-1][2]], (stem[: found[-1].start()] + stem[found[-1].end() :]).strip("_.-")


def _is_list(file: Path) -> bool:
    beginning = beginning_of(file, _BEGINNING)
    return (
        beginning.lstrip("\ufeff \t\r\n").startswith("[")
        and '"image"' in beginning
        and '"caption"' in beginning
    )


def _chosen(path: Path, dataset: str | None, split: str | None) -> tuple[str, list[tuple[str, Path]]]:
    if not path.is_dir():
        named, rest = _split_and_rest(path)
        return dataset or rest or path.resolve().parent.name, [(split or named, path)]
    if split is not None:
        raise UsageError(f"split {split!r} with the folder {path}", "give the file of that split with --data")
    groups: dict[str, dict[str, Path]] = {}
    for file in filter(_is_list, matching(path, listing(path), _PATTERNS)):
        named, rest = _split_and_rest(file)
        other = groups.setdefault(rest, {}).setdefault(named, file)
        if other != file and dataset in (None, rest):
            both = f"{other.name}, {file.name}"
            raise DataError(f"{path} holds 2 lists of {named}: {both}", "keep one of them")
    if not groups:
        raise DataError(f"no lists of images and captions in {path}", "expected files such as coco_test.json")
    if dataset is None and len(groups) > 1:
        raise UsageError(
            f"{path} holds the lists of {len(groups)} datasets: {', '.join(sorted(groups))}",
            "choose one with --reader-option dataset=NAME",
        )
    name = next(iter(groups)) if dataset is None else dataset
    if name not in groups:
        raise UsageError(f"{path} holds no lists of {name!r}", f"there are: {', '.join(sorted(groups))}")
    order = [*SPLITS, WHOLE]
    return name or path.resolve().name, sorted(groups[name].items(), key=lambda item: order.index(item[0]))


def _read(file: Path, split: str, remove: str, max_captions: int | None, gathered: Gathering) -> None:
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
        record = {str(key): value for key, value in line.items() if key not in _OWN_KEYS}
        known = gathered.items.get(name)
        left = None if max_captions is None else max(0, max_captions - (known.n_texts if known else 0))
        gathered.add(name, texts[:left], split, record, file.name)


@reader(
    "retrieval-json",
    "lists of images and captions of ALBEF, X-VLM and BLIP: one JSON file per split",
    *_PATTERNS,
    files=("*.json", "*.json.gz"),
    general=2,
    claims=looks(_is_list),
)
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
    path = Path(path)
    name, files = _chosen(path, dataset, split)
    gathered = Gathering(skip_bad_captions, join=True)
    for part, file in files:
        _read(file, part, remove_prefix, max_captions, gathered)
    if not gathered.items:
        raise DataError(f"{path} lists no images", "fetch the lists again")
    return gathered.collection(name, image_folder(images, files[0][1].parent), centric)
