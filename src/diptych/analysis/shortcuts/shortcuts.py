"""Shortcuts of a collection: what its images and captions carry in training and in evaluation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
from PIL.Image import Image

from diptych.analysis.shortcuts.codes import (
    N_CODES,
    N_DIGITS,
    DigitOverlay,
    ShortcutOptions,
    check_fit,
    code_text,
    digits_of,
    ending_of,
    published_codes,
    random_bits,
    with_ending,
)
from diptych.analysis.shortcuts.digits import SizedDigits, load_digits
from diptych.core.draws import draw_below
from diptych.core.errors import MismatchError, UnknownNameError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.data import Batch, Collection
from diptych.data.collection import ImageSource
from diptych.data.images import Overlay, OverlaySource
from diptych.metrics.ground_truth import places_of
from diptych.metrics.runs import places


@dataclass(frozen=True, eq=False)
class ShortcutSource:
    pictures: ImageSource
    rows: np.ndarray  # (n,) its row of each row here
    overlays: Sequence[Overlay | None]

    def read(self, row: int) -> Image:
        return self.pictures.read(int(self.rows[row]))

    def overlay(self, row: int) -> Overlay | None:
        return self.overlays[row]

    def content(self, row: int) -> str:
        plain, overlay = self.pictures.content(int(self.rows[row])), self.overlays[row]
        return plain if overlay is None else fingerprint(plain, overlay.key)


_TRAINING, _EVALUATION, _DEAL, _CARRIED = map(int.from_bytes, (b"train", b"eval", b"deal", b"carried"))


@dataclass(frozen=True)
class BatchShortcuts:
    overlays: list[Overlay | None]  # one per image of the batch; None where an image carries nothing
    endings: list[str]  # one per caption of the batch, "0 0 1 2 3 4"; empty where a caption carries nothing


_SETUPS = {
    "none": "none",
    "unique": "a unique number on every image and its captions",
    "captions": "a unique number on only every image's captions",
    "images": "a unique number on only every image",
    "bits": "numbers of {0.bits} bits on images and captions",
    "per-caption": "a unique number on every caption, {0.carries} of them on its image",
}


def _with(known: Sequence[Mapping[str, Any]] | None, key: str, values: Sequence[Any]) -> list[dict[str, Any]]:
    return [{**one, key: value} for one, value in zip(known or [{}] * len(values), values, strict=True)]


class Shortcuts:
    """Shortcuts of one collection, with ``options``; :meth:`of` makes them."""

    def __init__(self, options: ShortcutOptions, whole: Collection, train: str, seed: int) -> None:
        self.options, self._whole, self._train, self._seed = options, whole, train, seed
        self._numbers_of = lru_cache(maxsize=1)(self._numbers)  # the same split again and again
        # Batches of two epochs can be under way at once, no more.
        self._dealt = lru_cache(maxsize=2)(
            lambda epoch: np.random.default_rng([seed, _DEAL, epoch]).permutation(self._own)
        )

    @classmethod
    def of(cls, options: ShortcutOptions, whole: Collection, train: str, seed: int) -> Self:
        """Return a recipe's shortcuts; numbers are rows in ``whole``, which holds all splits."""
        what = "captions" if options.setup == "per-caption" else "images"
        tuples = whole.n_captions if what == "captions" else whole.n_images
        if options.setup not in ("none", "bits") and tuples > N_CODES:
            raise UsageError(
                f"{tuples:,} {what} need a code each, and there are {N_CODES:,} codes of {N_DIGITS} digits",
                "take a part of the collection, or setup 'bits', whose codes are shared",
            )
        if options.on_images and whole.holds == "regions":
            raise UsageError(
                f"setup {options.setup!r} lays digits over images, {whole.name} holds region features",
                "set shortcuts.setup = 'captions', or read the images",
            )
        return cls(options, whole.divided(), train, seed)

    def training(self, split: Collection, batch: Batch, epoch: int) -> BatchShortcuts:
        """Return what a batch of ``split``, a part of the whole collection, carries in an epoch.

        An image that comes with several of its captions carries one code with all of them. Taken again in the
        same epoch, with other captions, it has other images of its digits and, of ``bits``, another code.
        """
        if self.options.setup == "none":
            return BatchShortcuts([None] * len(batch.images), [""] * len(batch.captions))
        every_image, every_caption = self._numbers_of(split)
        images, captions = every_image[batch.images], every_caption[batch.captions]
        # The smallest, so that an access does not depend on the order in which a batch lists captions.
        firsts = np.full(len(images), np.iinfo(np.int64).max)
        np.minimum.at(firsts, batch.caption_image, captions)
        carried, ends = self._codes(images, captions, batch.caption_image, epoch, firsts)
        plain = BatchShortcuts([None] * len(images), [""] * len(captions))
        if self.options.on_images:
            plain = replace(plain, overlays=self._overlays(carried, images, _TRAINING, epoch, firsts))
        if self.options.on_captions:
            plain = replace(plain, endings=[ending_of(code) for code in ends.tolist()])
        return plain

    def injected(
        self, split: Collection, join: Callable[[Sequence[str], Sequence[str]], list[str]] | None = None
    ) -> Collection:
        """Return ``split`` as it is evaluated with shortcuts, under the same ids.

        ``join`` puts endings to captions: an encoder's ``with_endings``, which makes room where texts are cut. By
        default there is a blank between. ``records[i]["shortcuts"]`` are the codes on image i, such as
        ``("001234",)``; ``caption_records[j]["shortcut"]`` is the one that caption j ends with, or an empty text.
        """
        images, captions = self._numbers_of(split)
        carried, ends = self._codes(images, captions, split.caption_image)
        source, rows, texts = split.source, split.source_rows, list(split.captions)
        on_pictures: list[tuple[str, ...]] = [()] * len(images)
        at_ends = [""] * len(captions)
        carry = []
        if self.options.on_images and isinstance(source, OverlaySource):
            carry.append("pictures")
        if self.options.on_captions and any(one.get("shortcut") for one in split.caption_records or ()):
            carry.append("captions")
        if carry:
            what = f"{carry[0]} of {split.name} carry shortcuts already"
            raise UsageError(what, "inject them into the original")
        if self.options.on_images:
            overlays = self._overlays(carried, images, _EVALUATION)
            source, rows = ShortcutSource(source, rows, overlays), np.arange(len(images))
            on_pictures = [tuple(map(code_text, codes.tolist())) for codes in carried]
        if self.options.on_captions:
            endings, at_ends = map(ending_of, ends.tolist()), [code_text(code) for code in ends.tolist()]
            texts = join(texts, list(endings)) if join else list(map(with_ending, texts, endings))
        records = _with(split.records, "shortcuts", on_pictures)
        caption_records = _with(split.caption_records, "shortcut", at_ends)
        return replace(
            split,
            captions=texts,
            source=source,
            source_rows=rows,
            records=records,
            caption_records=caption_records,
            notes=(*split.notes, self.line()),
        )

    def check_fit(self, width: int, height: int) -> None:
        if self.options.on_images:
            per_caption = self.options.setup == "per-caption" and self.options.carries == "all"
            most = max(1, int(self._whole.captions_per_image.max(initial=1))) if per_caption else 1
            check_fit(width, height, most, self.options.digit_size)

    def describe(self) -> dict[str, Any]:
        """Return what a number that was measured with these shortcuts depends on; JSON-able."""
        options, whole = self.options, self._whole
        if options.setup == "none":
            return {"setup": options.setup}
        own: dict[str, dict[str, Any]] = {
            "bits": {"bits": options.bits},
            "per-caption": {"carries": options.carries},
        }
        found: dict[str, Any] = {
            "setup": options.setup,
            **own.get(options.setup, {}),
            "numbered": f"rows of {whole.n_images} images and {whole.n_captions} captions",
            "shuffled": options.shuffled,
            "compat": options.compat,
            "seed": self._seed,
        }
        if options.on_images:
            images = self._digits.images
            about = {"source": images.name, "pictures": int(images.counts.sum())}
            found["digits"] = {**about, "fingerprint": images.fingerprint, "size": options.digit_size}
        return found

    def line(self) -> str:
        options = self.options
        line = f"shortcuts: {_SETUPS[options.setup].format(options)}"
        line += ", dealt anew every epoch" if options.shuffled else ""
        line += f", {self._digits.images.name}" if options.on_images else ""
        return line + (f", compat {options.compat}" if options.compat != "none" else "")

    def _codes(
        self,
        images: np.ndarray,
        captions: np.ndarray,
        owner: np.ndarray,
        epoch: int | None = None,
        firsts: np.ndarray | None = None,
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Return per image the codes of its image, from the top, and (c,) the codes of captions' ends.

        ``owner`` (c,) is the place in ``images`` of each caption's image, ``firsts`` (b,), in training, the numbers of
        the first captions that came with the images.
        """
        options, seed = self.options, self._seed
        if options.setup == "per-caption":
            starts = self._whole.caption_start
            if options.carries == "one":
                counts = starts[images + 1] - starts[images]
                chosen = starts[images] + draw_below(counts, seed, _CARRIED, images)
                numbers = [chosen[[place] if count else []] for place, count in enumerate(counts)]
            else:
                numbers = [np.arange(starts[image], starts[image + 1]) for image in images.tolist()]
            return [self._unique(given, epoch) for given in numbers], self._unique(captions, epoch)
        if epoch is None or firsts is None:
            chosen = images if options.bits is None else images % 2**options.bits
        elif options.bits is not None:
            chosen = random_bits(options.bits, seed, epoch, images, firsts)
        elif options.compat == "published":
            n_training = len(self._own) if options.shuffled else None
            chosen = published_codes(images, firsts, seed, epoch, n_training)
        else:
            chosen = self._unique(images, epoch)
        return list(chosen[:, None]), chosen[owner]

    def _unique(self, numbers: np.ndarray, epoch: int | None) -> np.ndarray:
        if epoch is None or not self.options.shuffled:
            return numbers
        own = self._own
        place, known = places_of(own, numbers)
        if not known.all():
            raise MismatchError(
                f"a batch holds what is not in split {self._train!r}, among whose {len(own):,} numbers "
                "codes are dealt",
                "take batches of that split",
            )
        return np.asarray(self._dealt(epoch)[place])

    @cached_property
    def _own(self) -> np.ndarray:
        """Return the numbers of the training split's images, or of its captions where those have codes; ascending."""
        own = np.flatnonzero(np.asarray(self._whole.splits, dtype=object) == self._train)
        if not len(own):
            raise UnknownNameError(f"split of {self._whole.name}", self._train, self._whole.split_sizes)
        if self.options.setup == "per-caption":
            return np.flatnonzero(np.isin(self._whole.caption_image, own))
        return own

    def _overlays(
        self,
        carried: list[np.ndarray],
        images: np.ndarray,
        stream: int,
        epoch: int = 0,
        firsts: np.ndarray | None = None,
    ) -> list[Overlay | None]:
        drawn = self._digits
        accesses = np.zeros_like(images) if firsts is None else firsts
        counts = np.array([len(codes) for codes in carried], dtype=np.int64)
        ends = np.cumsum(counts)
        owner = np.repeat(np.arange(len(carried)), counts)
        row = places(counts)
        digits = digits_of(np.concatenate([np.empty(0, dtype=np.int64), *carried]))
        pictures = draw_below(
            drawn.images.counts[digits],
            self._seed,
            stream,
            epoch,
            images[owner][:, None],
            accesses[owner][:, None],
            row[:, None] * N_DIGITS + np.arange(N_DIGITS),
        )
        return [
            DigitOverlay(digits[end - count : end], pictures[end - count : end], drawn) if count else None
            for end, count in zip(ends.tolist(), counts.tolist(), strict=True)
        ]

    def _numbers(self, split: Collection) -> tuple[np.ndarray, np.ndarray]:
        found: list[np.ndarray] = []
        for what, ids in (("image", split.image_ids), ("caption", split.caption_ids)):
            known = self._known[what]
            if (missing := next((name for name in ids if name not in known), None)) is not None:
                raise MismatchError(
                    f"{what} {missing!r} is not in the collection of {len(known):,} {what}s that codes "
                    f"are numbered from ({self._whole.name})",
                    "number them from the whole collection that this is a part of",
                )
            found.append(np.array([known[name] for name in ids], dtype=np.int64))
        return found[0], found[1]

    @cached_property
    def _known(self) -> dict[str, dict[str, int]]:
        every = {"image": self._whole.image_ids, "caption": self._whole.caption_ids}
        return {what: {name: row for row, name in enumerate(ids)} for what, ids in every.items()}

    @cached_property
    def _digits(self) -> SizedDigits:
        return load_digits(self.options.digits).at_size(self.options.digit_size)
