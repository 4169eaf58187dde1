"""A dataset encoded in parts, by machines that do not know of each other, and the parts joined.

A part is a contiguous share of the blocks of images and of those of captions, so its rows are those of one call.
``OUT/part-3-of-8`` holds its embeddings; ``embedded_part.json`` is written there last.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.errors import MismatchError, UsageError
from diptych.core.files import atomic_folder, create_array
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import exclusive_folder
from diptych.data.collection import Collection
from diptych.encoders import encode
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import Embeddings, EncodedCollection, Origin
from diptych.encoders.given_rows import GivenRows


@dataclass(frozen=True)
class EmbeddedPart(Artifact, kind="embedded_part", recreate="diptych embed MODEL --part I/N"):
    """What a finished part is of."""

    number: int  # from 1
    parts: int
    origin: Origin
    encoder: str  # its fingerprint
    texts: str  # fingerprint of all ids and captions of the dataset; images' bytes are not part of it
    contents: list[str]  # fingerprint of each of the part's images
    notes: list[str]  # of the dataset


def parse_part(text: str) -> tuple[int, int]:
    """Return number and count of ``I/N``."""
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    number, parts = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= parts:
        raise UsageError(f"--part {text!r} is no part", "--part I/N with I from 1 to N, e.g. --part 3/8")
    return number, parts


def share_of(collection: Collection, number: int, parts: int) -> Collection:
    """Return the images and captions of one part; its captions may be of images of other parts."""

    def rows(count: int, block: int) -> np.ndarray:
        first, end = (place * -(-count // block) // parts * block for place in (number - 1, number))
        return np.arange(first, min(count, end))

    images = rows(collection.n_images, encode._IMAGE_BLOCK)
    captions = rows(collection.n_captions, encode._TEXT_BLOCK)
    if not len(images):
        text = f"part {number} of {parts} has no images: there are {collection.n_images:,}"
        raise UsageError(f"{text}, in blocks of {encode._IMAGE_BLOCK}", "encode them in fewer parts")
    nearest = np.clip(collection.caption_image[captions] - images[0], 0, len(images) - 1)
    return collection._take(images, captions, nearest)


def encode_share(
    encoder: DualEncoder, collection: Collection, folder: Path | str, origin: Origin, part: str, **work: Any
) -> tuple[EncodedCollection, Path]:
    """Encode one part of a collection, such as ``"3/8"``, into its own folder in ``folder``; ``work`` as one call's."""
    number, parts = parse_part(part)
    if isinstance(encoder, GivenRows):
        raise UsageError(f"{encoder.folder} holds rows, there is nothing to encode", "leave --part out")
    share, home = share_of(collection, number, parts), Path(folder) / f"part-{number}-of-{parts}"
    contents = list(encode.contents_of(share))
    encoded = encode.encode_collection(encoder, share, home, origin.split, contents=contents, **work)
    known = (origin, encoder.fingerprint, collection.text_fingerprint, contents, list(collection.notes))
    EmbeddedPart(number, parts, *known).write_header(home)
    return encoded, home


def join_parts(folder: Path | str, data: dict[str, Any] | None = None) -> tuple[EncodedCollection, Origin]:
    """Join parts to what one call had written; ``data``: the section of the dataset, where it lies elsewhere now."""
    folder = Path(folder)
    places = [place for place in sorted(folder.glob("part-*-of-*")) if EmbeddedPart.is_at(place)]
    found = {one.number: (one, place) for place in places for one in [EmbeddedPart.open(place)]}
    counts = {one.parts for one, _ in found.values()}
    if not counts:
        raise UsageError(f"{folder} holds no finished part", "encode them: diptych embed MODEL --part I/N")
    if len(counts) > 1:
        text = " and of ".join(map(str, sorted(counts)))
        raise UsageError(f"{folder} holds parts of {text}", "keep those of one count")
    numbers = range(1, counts.pop() + 1)
    if missing := [f"{number}/{len(numbers)}" for number in numbers if number not in found]:
        text = f"{len(missing)} of {len(numbers)} parts are missing or not finished"
        fix = f"diptych embed MODEL --out {folder} --part {missing[0]}"
        raise UsageError(f"{text}: {', '.join(missing[:20])}", fix)
    headers, homes = zip(*(found[number] for number in numbers), strict=True)
    parts, first = [EncodedCollection.open(home) for home in homes], headers[0]
    origin = first.origin if data is None else replace(first.origin, data=data)
    whole = replace(origin, split=None).collection()
    collection = whole if origin.split is None else whole.split(origin.split)
    expected = {"encoder": first.encoder, "texts": collection.text_fingerprint}
    for one, (what, mark) in product(headers, expected.items()):
        if (mine := getattr(one, what)) != mark:
            fix = f"encode part {one.number}/{one.parts} again, or name the parts' dataset with --data"
            raise MismatchError(f"part {one.number} is of {what} {mine}, expected {mark}", fix)
    contents = chain.from_iterable(one.contents for one in headers)
    mark = fingerprint(expected["texts"], contents)
    about = parts[0].about | {"data": mark, "notes": list(first.notes)}
    if EncodedCollection.is_at(folder) and EncodedCollection.open(folder).about == about:
        return EncodedCollection.open(folder), origin
    with exclusive_folder(folder):
        (folder / EncodedCollection.marker()).unlink(missing_ok=True)
        images = _joined([part.images for part in parts], collection.image_ids, folder / "images", about)
        texts = _joined([part.texts for part in parts], collection.caption_ids, folder / "texts", about)
        EncodedCollection(images, texts, collection.caption_image, about).write_header(folder)
    return EncodedCollection.open(folder), origin


def _joined(
    parts: Sequence[Embeddings], ids: Sequence[str], target: Path, about: dict[str, Any]
) -> Embeddings:
    with atomic_folder(target, Embeddings.marker()) as temporary:
        rows, place = create_array(temporary / "rows.npy", "float32", (len(ids), parts[0].width)), 0
        for part in parts:
            rows[place : place + len(part)] = part.rows
            place += len(part)
        replace(parts[0], ids=ids, rows=rows, data=about["data"], about=about).write_header(temporary)
    return Embeddings.open(target)
