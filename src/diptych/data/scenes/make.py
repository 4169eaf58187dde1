"""Generate a dataset of scenes, and read it.

A scene depends on (seed, split, index, k, size, objects) alone. So any number of processes makes the same
bytes, and a larger dataset begins with the scenes of the smaller one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.context import task
from diptych.core.errors import UsageError
from diptych.core.options import parameter
from diptych.core.processes import available_cores, in_processes
from diptych.data.collection import Centric, Collection
from diptych.data.images import FolderSource
from diptych.data.scenes.cached import (
    GeneratedImages,
    Span,
    Specification,
    cached_dataset,
    least_and_most,
    read_header,
)
from diptych.data.scenes.captions import finer as with_finer_captions
from diptych.data.scenes.captions import write_captions
from diptych.data.scenes.draw import draw_world
from diptych.data.scenes.facts import ROLES
from diptych.data.scenes.world import OBJECTS, SPLITS, generator, world_of


@dataclass(frozen=True)
class Chunk:
    """Scenes ``start`` to ``stop`` of one split, of a dataset with ``before`` scenes ahead of the split.

    ``folder`` holds a folder for the split; the pictures go there. ``objects`` are the least and the most
    objects of a scene.
    """

    seed: int
    k: int
    size: int
    split: str
    start: int
    stop: int
    before: int
    folder: str
    objects: tuple[int, int] = OBJECTS


def make_chunk(chunk: Chunk) -> list[dict[str, Any]]:
    """Draw the scenes of one chunk and describe them: one entry of ``dataset.json`` per scene."""
    images = []
    for index in range(chunk.start, chunk.stop):
        name = (chunk.seed, chunk.split, index)
        world = world_of(*name, chunk.objects)
        facts = world.facts()
        filename = f"{chunk.split}/{index:06}.png"
        picture = draw_world(world, generator(*name, "picture"), chunk.size)
        # noise does not compress: level 1 is about as small as level 9 here, and several times faster
        picture.save(Path(chunk.folder, filename), "PNG", compress_level=1)
        image = chunk.before + index
        sentences = [
            {
                "raw": caption.text,
                "sentid": image * chunk.k + number,
                "imgid": image,
                "states": list(caption.states),
            }
            for number, caption in enumerate(write_captions(facts, generator(*name, "captions"), chunk.k))
        ]
        images.append(
            {
                "filename": filename,
                "imgid": image,
                "split": chunk.split,
                "sentids": [sentence["sentid"] for sentence in sentences],
                "facts": facts,
                "sentences": sentences,
            }
        )
    return images


VERSION = 1
"""Raised whenever the same seed would give other pictures or captions; part of the cache's key."""

_CHUNK = 64
_SERIAL_BELOW = 512  # starting processes takes longer than drawing this many


class SceneOptions(GeneratedImages):
    """What generated scenes are like."""

    n_train: int = parameter(4000, "Images to train on.", "--train", ge=0)
    n_val: int = parameter(300, "Images to validate on.", "--val", ge=0)
    n_test: int = parameter(500, "Images to test on.", "--test", ge=0)
    k: int = parameter(5, "Captions per image.", "--captions", "-k", ge=1)
    objects: Span = parameter("-".join(map(str, OBJECTS)), "Objects per image, e.g. 1 or 1-3.")


def make_scenes(folder: Path | str | None = None, *counts: int, **options: Any) -> Path:
    """Make a dataset of scenes, or find the one made earlier: PNG files and ``dataset.json``.

    Args:
        folder: where it is; None for a folder of the cache.
        counts: images to train on, to validate on and to test on.
        options: fields of :class:`SceneOptions`.
    """
    named = dict(zip(("n_train", "n_val", "n_test"), counts, strict=False))
    given = SceneOptions.read(named | options, "scenes")
    parameters = given.model_dump(include={"n_train", "n_val", "n_test", "seed", "k", "size"})
    counted = dict(zip(SPLITS, (given.n_train, given.n_val, given.n_test), strict=True))
    total, both = sum(counted.values()), least_and_most(given.objects, "objects", len(ROLES))
    if not total:
        raise UsageError("no scene was asked for", "give counts of 0 or more, not all 0")
    workers = given.workers or (1 if total < _SERIAL_BELOW else available_cores())

    def write(folder: Path) -> dict[str, Any]:
        images: list[dict[str, Any]] = []
        with task("drawing scenes", total, "pictures") as bar:
            for made in in_processes(list(chunks(folder)), make_chunk, workers, ordered=True):
                images.extend(made)
                bar.advance(len(made))
        return {"images": images}

    def chunks(folder: Path) -> Iterator[Chunk]:
        before = 0
        for split, count in counted.items():
            if count:
                (folder / split).mkdir()
            for start in range(0, count, _CHUNK):
                part = split, start, min(start + _CHUNK, count), before, str(folder)
                yield Chunk(given.seed, given.k, given.size, *part, both)
            before += count

    # The usual number of objects goes without saying, as it did before there was another.
    wanted = Specification(
        "scenes",
        "scenes",
        VERSION,
        parameters if both == OBJECTS else {**parameters, "objects": both},
        usual={"objects": OBJECTS},
    )
    return cached_dataset(folder, wanted, write)


def read_scenes(folder: Path | str, finer: int = 0) -> Collection:
    """Read what :func:`make_scenes` made."""
    if not isinstance(finer, int) or isinstance(finer, bool) or finer < 0:
        raise UsageError(f"finer is {finer!r}", "give the number of further topics, e.g. finer=2, or 0")
    header = read_header(folder, "scenes", "scenes", VERSION, "diptych data scenes")
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
    folder: Path | str | None = None,
    finer: int = 0,
    **options: Any,
) -> Collection:
    """Make the scenes, or find them in the cache, and read them.

    Arguments are as in :func:`make_scenes`, ``finer`` as in :func:`read_scenes`: it changes no picture.
    """
    made = make_scenes(folder, n_train, n_val, n_test, **options)
    return read_scenes(made, finer)
