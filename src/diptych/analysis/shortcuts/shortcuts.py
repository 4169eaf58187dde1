"""Shortcuts of a collection: what its pictures and captions carry in training and in evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.analysis.shortcuts.digits import SizedDigits, load_digits
from diptych.analysis.shortcuts.numbers import (
    N_CODES,
    carried_caption,
    code_text,
    dealt,
    digits_of,
    ending_of,
    number_bits,
    published_codes,
    random_bits,
    with_ending,
)
from diptych.analysis.shortcuts.overlay import N_DIGITS, DigitOverlay, ShortcutOptions, check_fit
from diptych.core.draws import draw_below
from diptych.core.errors import MismatchError, UnknownNameError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.data.batches import Batch
from diptych.data.collection import Collection
from diptych.data.images import Overlay, OverlaySource

if TYPE_CHECKING:
    from PIL.Image import Image

    from diptych.data.collection import ImageSource


class ShortcutSource:
    """Another source's images, each with its overlay; ``rows`` are (n,) its row of each row here."""

    def __init__(
        self, pictures: ImageSource, rows: np.ndarray, overlay_of: Callable[[int], Overlay | None]
    ) -> None:
        self._pictures = pictures
        self._rows = rows
        self._overlay_of = overlay_of

    def read(self, row: int) -> Image:
        """The picture of source row ``row`` without its overlay, upright, RGB."""
        return self._pictures.read(int(self._rows[row]))

    def overlay(self, row: int) -> Overlay | None:
        """What goes over the picture of source row ``row``."""
        return self._overlay_of(row)

    def content(self, row: int) -> str:
        """A fingerprint of the picture's bytes and of its overlay's."""
        plain = self._pictures.content(int(self._rows[row]))
        overlay = self.overlay(row)
        return plain if overlay is None else fingerprint(plain, overlay.key)


@dataclass(frozen=True)
class Assigned:
    """Codes of some images and captions.

    Attributes:
        carried: per image, the codes that its picture would carry, from the top.
        ends: (n_captions,) int64, the code that each caption would end with.
    """

    carried: list[np.ndarray]
    ends: np.ndarray


class Assignment:
    """From numbers to codes, in training and in evaluation."""

    def __init__(self, options: ShortcutOptions, whole: Collection, train: str, seed: int) -> None:
        self._options = options
        self._whole = whole
        self._train = train
        self._seed = seed
        # Batches of two epochs can be under way at once, no more.
        self._dealt = lru_cache(maxsize=2)(lambda epoch: dealt(self._own, seed, epoch))

    def in_training(
        self,
        images: np.ndarray,
        captions: np.ndarray,
        caption_image: np.ndarray,
        firsts: np.ndarray,
        epoch: int,
    ) -> Assigned:
        """Codes of a batch.

        Args:
            images: (b,) the images' numbers.
            captions: (c,) the captions' numbers.
            caption_image: (c,) place in ``images`` of each caption's image.
            firsts: (b,) the number of the first caption that came with each image.
        """
        options, seed = self._options, self._seed
        if options.setup == "per-caption":
            codes = self._unique(epoch)
            return Assigned([codes(numbers) for numbers in self._carried(images)], codes(captions))
        if options.bits is not None:
            chosen = random_bits(options.bits, seed, epoch, images, firsts)
        elif options.compat == "published":
            n_training = len(self._own) if options.shuffled else None
            chosen = published_codes(images, firsts, seed, epoch, n_training)
        else:
            chosen = self._unique(epoch)(images)
        return Assigned(list(chosen[:, None]), chosen[caption_image])

    def in_evaluation(self, images: np.ndarray, captions: np.ndarray, caption_image: np.ndarray) -> Assigned:
        """Codes of images and captions that are evaluated; arguments as for a batch."""
        if self._options.setup == "per-caption":
            return Assigned(self._carried(images), captions)
        bits = self._options.bits
        chosen = images if bits is None else number_bits(bits, images)
        return Assigned(list(chosen[:, None]), chosen[caption_image])

    @property
    def most_carried(self) -> int:
        """The most codes that an image carries."""
        if self._options.setup == "per-caption" and self._options.carries == "all":
            return max(1, int(self._whole.captions_per_image.max(initial=1)))
        return 1

    def _carried(self, images: np.ndarray) -> list[np.ndarray]:
        """Numbers of the captions whose codes each image carries."""
        starts = self._whole.caption_start
        if self._options.carries == "one":
            chosen = carried_caption(images, starts, self._seed)
            return [numbers[numbers >= 0] for numbers in chosen[:, None]]
        return [np.arange(starts[image], starts[image + 1]) for image in images.tolist()]

    def _unique(self, epoch: int) -> Callable[[np.ndarray], np.ndarray]:
        """What makes codes of the numbers of training images, or of training captions.

        It raises MismatchError for a number that is not among those that codes are dealt to.
        """
        if not self._options.shuffled:
            return lambda numbers: numbers
        own, codes = self._own, self._dealt(epoch)

        def dealt_code(numbers: np.ndarray) -> np.ndarray:
            places = np.minimum(np.searchsorted(own, numbers), len(own) - 1)
            if np.any(own[places] != numbers):
                raise MismatchError(
                    f"a batch holds what is not in split {self._train!r}, among whose {len(own):,} numbers "
                    "codes are dealt",
                    "take batches of that split",
                )
            dealt_codes: np.ndarray = codes[places]
            return dealt_codes

        return dealt_code

    @cached_property
    def _own(self) -> np.ndarray:
        """Numbers of the training split's images, or of its captions where those have codes; ascending."""
        own = np.flatnonzero(np.asarray(self._whole.splits, dtype=object) == self._train)
        if not len(own):
            raise UnknownNameError(f"split of {self._whole.name}", self._train, self._whole.split_sizes)
        if self._options.setup == "per-caption":
            return np.flatnonzero(np.isin(self._whole.caption_image, own))
        return own


_TRAINING, _EVALUATION = (int.from_bytes(word) for word in (b"train", b"eval"))


@dataclass(frozen=True)
class BatchShortcuts:
    """What a batch carries.

    Attributes:
        overlays: one per image of the batch; None where a picture carries nothing.
        endings: one per caption of the batch, ``0 0 1 2 3 4``; empty where a caption carries nothing.
    """

    overlays: list[Overlay | None]
    endings: list[str]


class Shortcuts:
    """Shortcuts of one collection; :meth:`of` makes them.

    Attributes:
        options: what was asked for.
    """

    def __init__(self, options: ShortcutOptions, whole: Collection, train: str, seed: int) -> None:
        self.options = options
        self._whole = whole
        self._seed = seed
        self._assignment = Assignment(options, whole, train, seed)
        self._last: tuple[Collection, np.ndarray, np.ndarray] | None = None

    @classmethod
    def of(cls, options: ShortcutOptions, whole: Collection, train: str, seed: int) -> Shortcuts:
        """Return the shortcuts that a recipe asks for.

        Args:
            options: which.
            whole: all splits: an image's number is its row here, and so is a caption's.
            train: the split that is trained on.
            seed: of codes that are drawn, and of which picture shows a digit.

        Raises:
            UsageError: more tuples than codes, or digits on images that are region features.
        """
        what = "captions" if options.setup == "per-caption" else "images"
        tuples = whole.n_captions if what == "captions" else whole.n_images
        if options.setup not in ("none", "bits") and tuples > N_CODES:
            raise UsageError(
                f"{tuples:,} {what} need a code each, and there are {N_CODES:,} codes of {N_DIGITS} digits",
                "take a part of the collection, or setup 'bits', whose codes are shared",
            )
        if options.on_images and whole.holds == "regions":
            raise UsageError(
                f"setup {options.setup!r} lays digits over pictures, {whole.name} holds region features",
                "set shortcuts.setup = 'captions', or read the pictures",
            )
        return cls(options, whole, train, seed)

    def training(self, split: Collection, batch: Batch, epoch: int) -> BatchShortcuts:
        """What a batch of ``split`` carries in an epoch.

        An image that comes with several of its captions carries one code with all of them. Taken again
        in the same epoch, with other captions, it has other pictures of its digits and, of ``bits``,
        another code.

        Args:
            split: what is trained on, a part of the whole collection.
            batch: rows of ``split``.
            epoch: the number of the epoch.

        Raises:
            MismatchError: an image or caption that the whole collection does not have.
        """
        if self.options.setup == "none":
            return BatchShortcuts([None] * len(batch.images), [""] * len(batch.captions))
        every_image, every_caption = self._numbers_of(split)
        images, captions = every_image[batch.images], every_caption[batch.captions]
        # The smallest, so that an access does not depend on the order in which a batch lists captions.
        firsts = np.full(len(images), np.iinfo(np.int64).max)
        np.minimum.at(firsts, batch.caption_image, captions)
        found = self._assignment.in_training(images, captions, batch.caption_image, firsts, epoch)
        overlays: list[Overlay | None] = [None] * len(images)
        if self.options.on_images:
            overlays = self._overlays(found.carried, images, _TRAINING, epoch, firsts)
        endings = [""] * len(captions)
        if self.options.on_captions:
            endings = [ending_of(code) for code in found.ends.tolist()]
        return BatchShortcuts(overlays, endings)

    def injected(
        self, split: Collection, join: Callable[[Sequence[str], Sequence[str]], list[str]] | None = None
    ) -> Collection:
        """``split`` as it is evaluated with shortcuts: pictures with overlays, captions with endings.

        Args:
            split: a part of the whole collection, or all of it.
            join: puts endings to captions; an encoder's ``with_endings``, which makes room for them
                where texts are cut. A blank between them when not given.

        Returns:
            The same images and captions under the same ids. ``records[i]["shortcuts"]`` are the codes
            that picture i carries, such as ``("001234",)``; ``caption_records[j]["shortcut"]`` is the
            code that caption j ends with, or an empty text.

        Raises:
            MismatchError: an image or caption that the whole collection does not have.
            UsageError: pictures of ``split`` have overlays already.
        """
        images, captions = self._numbers_of(split)
        found = self._assignment.in_evaluation(images, captions, split.caption_image)
        source, rows = split.source, split.source_rows
        on_pictures: list[tuple[str, ...]] = [()] * len(images)
        if self.options.on_images:
            if isinstance(source, OverlaySource):
                raise UsageError(
                    f"pictures of {split.name} carry shortcuts already", "inject them into the original"
                )
            overlays = self._overlays(found.carried, images, _EVALUATION)
            source, rows = ShortcutSource(source, rows, overlays.__getitem__), np.arange(len(images))
            on_pictures = [tuple(map(code_text, codes.tolist())) for codes in found.carried]
        texts, at_ends = list(split.captions), [""] * len(captions)
        if self.options.on_captions:
            if any(record.get("shortcut") for record in split.caption_records or ()):
                raise UsageError(
                    f"captions of {split.name} carry shortcuts already", "inject them into the original"
                )
            codes = found.ends.tolist()
            texts = (join or _joined)(texts, [ending_of(code) for code in codes])
            at_ends = [code_text(code) for code in codes]
        records = split.records or [{}] * len(images)
        caption_records = split.caption_records or [{}] * len(captions)
        return replace(
            split,
            captions=texts,
            source=source,
            source_rows=rows,
            records=[
                {**record, "shortcuts": carried} for record, carried in zip(records, on_pictures, strict=True)
            ],
            caption_records=[
                {**record, "shortcut": end} for record, end in zip(caption_records, at_ends, strict=True)
            ],
            notes=(*split.notes, self.line()),
        )

    def check_fit(self, width: int, height: int) -> None:
        """Whether every image's digits fit into a prepared picture of that size.

        Raises:
            ImageError: they do not; the message says both sizes.
        """
        if self.options.on_images:
            check_fit(width, height, self._assignment.most_carried, self.options.digit_size)

    def describe(self) -> dict[str, Any]:
        """What a number that was measured with these shortcuts depends on; JSON-able."""
        options = self.options
        said: dict[str, Any] = {"setup": options.setup}
        if options.setup == "none":
            return said
        if options.setup == "bits":
            said["bits"] = options.bits
        if options.setup == "per-caption":
            said["carries"] = options.carries
        said |= {
            "numbered": f"rows of {self._whole.n_images} images and {self._whole.n_captions} captions",
            "shuffled": options.shuffled,
            "compat": options.compat,
            "seed": self._seed,
        }
        if options.on_images:
            images = self._digits.images
            said["digits"] = {
                "source": images.name,
                "pictures": int(images.counts.sum()),
                "fingerprint": images.fingerprint,
                "size": options.digit_size,
            }
        return said

    def line(self) -> str:
        """The same in one line."""
        options = self.options
        what = {
            "none": "none",
            "unique": "a unique number on every image and its captions",
            "captions": "a unique number on every image's captions alone",
            "images": "a unique number on every image alone",
            "bits": f"numbers of {options.bits} bits on images and captions",
            "per-caption": f"a unique number on every caption, {options.carries} of them on its image",
        }[options.setup]
        more = [", dealt anew every epoch"] if options.shuffled else []
        more += [f", {self._digits.images.name}"] if options.on_images else []
        more += [f", compat {options.compat}"] if options.compat != "none" else []
        return f"shortcuts: {what}{''.join(more)}"

    def _overlays(
        self,
        carried: list[np.ndarray],
        images: np.ndarray,
        stream: int,
        epoch: int = 0,
        firsts: np.ndarray | None = None,
    ) -> list[Overlay | None]:
        """The overlay of each image; which picture shows a digit is drawn for each access and place."""
        drawn = self._digits
        accesses = np.zeros_like(images) if firsts is None else firsts
        counts = np.array([len(codes) for codes in carried], dtype=np.int64)
        ends = np.cumsum(counts)
        owner = np.repeat(np.arange(len(carried)), counts)
        row = np.arange(len(owner)) - (ends - counts)[owner]
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

    def _numbers_of(self, split: Collection) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the images and captions of ``split``; those asked for last are kept."""
        last = self._last
        if last is None or last[0] is not split:
            images = self._rows_of(self._image_rows, split.image_ids, "image")
            captions = self._rows_of(self._caption_rows, split.caption_ids, "caption")
            last = self._last = (split, images, captions)
        return last[1], last[2]

    @cached_property
    def _image_rows(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self._whole.image_ids)}

    @cached_property
    def _caption_rows(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self._whole.caption_ids)}

    def _rows_of(self, known: dict[str, int], ids: Sequence[str], what: str) -> np.ndarray:
        try:
            return np.fromiter((known[name] for name in ids), dtype=np.int64, count=len(ids))
        except KeyError as error:
            raise MismatchError(
                f"{what} {error.args[0]!r} is not in the collection of {len(known):,} {what}s that codes "
                f"are numbered from ({self._whole.name})",
                "number them from the whole collection that this is a part of",
            ) from None

    @cached_property
    def _digits(self) -> SizedDigits:
        return load_digits(self.options.digits).at_size(self.options.digit_size)


def _joined(texts: Sequence[str], endings: Sequence[str]) -> list[str]:
    return [with_ending(text, ending) for text, ending in zip(texts, endings, strict=True)]
