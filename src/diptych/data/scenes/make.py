"""Generate a dataset of scenes, and read it.

A scene depends on (seed, split, index, k, size, objects) only, so a larger dataset begins with the scenes of the
smaller one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from diptych.core.errors import UsageError
from diptych.core.options import parameter
from diptych.data.collection import Centric, Collection
from diptych.data.readers.contract import Gathering
from diptych.data.scenes.captions import finer as with_finer_captions
from diptych.data.scenes.captions import write_captions
from diptych.data.scenes.draw import draw_world
from diptych.data.scenes.facts import ROLES
from diptych.data.scenes.generator import Generator, ImageOptions, Span, least_and_most, parts_of
from diptych.data.scenes.world import OBJECTS, SPLITS, generator, world_of

# Raised whenever the same seed would give other images or captions; part of the cache's key.
VERSION = 1


class SceneOptions(ImageOptions):
    n_train: int = parameter(4000, "Images to train on.", "--train", ge=0)
    n_val: int = parameter(300, "Images to validate on.", "--val", ge=0)
    n_test: int = parameter(500, "Images to test on.", "--test", ge=0)
    k: int = parameter(5, "Captions per image.", "--captions", "-k", ge=1)
    objects: Span = parameter("-".join(map(str, OBJECTS)), "Objects per image, e.g. 1 or 1-3.")


@dataclass(frozen=True)
class Chunk:
    """Scenes of one split, in a dataset with ``before`` scenes ahead of the split."""

    split: str
    scenes: range
    before: int


class Scenes(Generator):
    """PNG files, and captions in Karpathy's format with the facts of every scene."""

    dataset = noun = "scenes"
    command = "diptych data scenes"
    version = VERSION
    unit = "images"
    usual: ClassVar = {"objects": OBJECTS}  # goes without saying, as it did before there was another

    def __init__(self, given: SceneOptions) -> None:
        counts = (given.n_train, given.n_val, given.n_test)
        if not any(counts):
            raise UsageError("no scene was requested", "give counts of 0 or more, not all 0")
        self.given, self.counts = given, dict(zip(SPLITS, counts, strict=True))
        self.objects = least_and_most(given.objects, "objects", len(ROLES))
        parameters = given.model_dump(include={"n_train", "n_val", "n_test", "seed", "k", "size"})
        if self.objects != OBJECTS:
            parameters["objects"] = self.objects
        super().__init__(parameters, sum(counts), given.workers)

    def chunks(self) -> list[Chunk]:
        found, before = [], 0
        for split, count in self.counts.items():
            found += [Chunk(split, scenes, before) for scenes in parts_of(count)]
            before += count
        return found

    def make_chunk(self, folder: Path, chunk: Chunk) -> list[dict[str, Any]]:
        return [self._scene(folder, chunk.split, index, chunk.before + index) for index in chunk.scenes]

    def write(self, folder: Path, chunks: Iterator[list[dict[str, Any]]]) -> dict[str, Any]:
        for split, count in self.counts.items():
            if count:
                (folder / split).mkdir()
        return {"images": [image for chunk in chunks for image in chunk]}

    def _scene(self, folder: Path, split: str, index: int, number: int) -> dict[str, Any]:
        name = (self.given.seed, split, index)
        world = world_of(*name, self.objects)
        facts = world.facts()
        filename = f"{split}/{index:06}.png"
        picture = draw_world(world, generator(*name, "picture"), self.given.size)
        # noise does not compress: level 1 is about as small as level 9 here, and several times faster
        picture.save(folder / filename, "PNG", compress_level=1)
        k = self.given.k
        sentences = [
            {
                "raw": caption.text,
                "sentid": number * k + place,
                "imgid": number,
                "states": list(caption.states),
            }
            for place, caption in enumerate(write_captions(facts, generator(*name, "captions"), k))
        ]
        return {
            "filename": filename,
            "imgid": number,
            "split": split,
            "sentids": [sentence["sentid"] for sentence in sentences],
            "facts": facts,
            "sentences": sentences,
        }


def make_scenes(folder: Path | str | None = None, *counts: int, **options: Any) -> Path:
    """Make a dataset of scenes, or find the one made earlier: PNG files and ``dataset.json``.

    Args:
        folder: where it is; None for a folder of the cache.
        counts: images to train on, to validate on and to test on.
        options: fields of :class:`SceneOptions`.
    """
    named = dict(zip(("n_train", "n_val", "n_test"), counts, strict=False))
    return Scenes(SceneOptions.read(named | options, "scenes")).make(folder)


def read_scenes(folder: Path | str, finer: int = 0) -> Collection:
    if not isinstance(finer, int) or isinstance(finer, bool) or finer < 0:
        raise UsageError(f"finer is {finer!r}", "give the number of further topics, e.g. finer=2, or 0")
    header, gathered = Scenes.read_header(folder), Gathering()
    for image in header["images"]:
        captions = image["sentences"]
        gathered.add(
            image["filename"],
            [caption["raw"] for caption in captions],
            image["split"],
            {"facts": image["facts"]},
            ids=[str(caption["sentid"]) for caption in captions],
            caption_records=[{"states": tuple(caption["states"])} for caption in captions],
        )
    least, most = header.get("objects", OBJECTS)
    shown = ""
    if (least, most) != OBJECTS:
        numbers = f"{least}" if least == most else f"{least} to {most}"
        shown = f", {numbers} {'object' if most == 1 else 'objects'} per image"
    note = f"scenes version {VERSION}, seed {header['seed']}, {header['size']} pixels"
    notes = [f"{note}, {header['k']} captions per image{shown}"]
    collection = gathered.collection("scenes", Path(folder), _centric(least, most), notes)
    return with_finer_captions(collection, finer) if finer else collection


def _centric(least: int, most: int) -> Centric | None:
    """Return ``"scene"`` for several objects; None where some images have one object and others several."""
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

    Arguments are as in :func:`make_scenes`, ``finer`` as in :func:`read_scenes`: it changes no image.
    """
    made = make_scenes(folder, n_train, n_val, n_test, **options)
    return read_scenes(made, finer)
