"""Reading a dataset of scenes as a Collection, facts included."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from diptych.core.errors import DataError, UsageError
from diptych.core.reading import read_json
from diptych.data.collection import Centric, Collection
from diptych.data.images import FolderSource
from diptych.data.scenes.finer import finer as with_finer_captions
from diptych.data.scenes.make import DATASET_FILE, VERSION, make_scenes
from diptych.data.scenes.world import OBJECTS


def read_scenes(folder: Path | str, finer: int = 0) -> Collection:
    """Read what :func:`make_scenes` made."""
    if not isinstance(finer, int) or isinstance(finer, bool) or finer < 0:
        raise UsageError(f"finer is {finer!r}", "give the number of further topics, e.g. finer=2, or 0")
    path = Path(folder) / DATASET_FILE
    header = read_json(path)
    if not isinstance(header, dict) or header.get("dataset") != "scenes":
        raise DataError(f"{path} holds no scenes", "make them with `diptych scenes`")
    if header.get("version") != VERSION:
        raise DataError(
            f"{path} holds scenes of version {header.get('version')}, this version reads {VERSION}",
            "make them again with `diptych scenes`",
        )
    images = header["images"]
    least, most = header.get("objects", OBJECTS)
    shown = ""
    if (least, most) != OBJECTS:
        numbers = f"{least}" if least == most else f"{least} to {most}"
        shown = f", {numbers} {'object' if most == 1 else 'objects'} per image"
    names = [image["filename"] for image in images]
    sentences = [sentence for image in images for sentence in image["sentences"]]
    counts = [len(image["sentences"]) for image in images]
    collection = Collection(
        name="scenes",
        image_ids=names,
        captions=[sentence["raw"] for sentence in sentences],
        caption_ids=[str(sentence["sentid"]) for sentence in sentences],
        caption_image=np.repeat(np.arange(len(images), dtype=np.int64), counts),
        splits=[image["split"] for image in images],
        source=FolderSource(folder, names),
        source_rows=np.arange(len(images), dtype=np.int64),
        records=[{"facts": image["facts"]} for image in images],
        caption_records=[{"states": tuple(sentence["states"])} for sentence in sentences],
        notes=(
            f"scenes version {VERSION}, seed {header['seed']}, {header['size']} pixels, "
            f"{header['k']} captions per image{shown}",
        ),
        centric=_centric(least, most),
    )
    return with_finer_captions(collection, finer) if finer else collection


def _centric(least: int, most: int) -> Centric | None:
    """Several objects make a scene; where some pictures have one and some several, nobody can say."""
    return "object" if most == 1 else "scene" if least > 1 else None


def scenes(
    n_train: int = 4000,
    n_val: int = 500,
    n_test: int = 500,
    *,
    seed: int = 0,
    k: int = 5,
    size: int = 64,
    objects: int | Sequence[int] = OBJECTS,
    workers: int | None = None,
    folder: Path | str | None = None,
    finer: int = 0,
) -> Collection:
    """Make the scenes, or find them in the cache, and read them.

    Arguments are as in :func:`make_scenes`, ``finer`` as in :func:`read_scenes`: it changes no picture.
    """
    made = make_scenes(
        folder, n_train, n_val, n_test, seed=seed, k=k, size=size, objects=objects, workers=workers
    )
    return read_scenes(made, finer)
