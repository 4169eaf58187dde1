"""Measure granularity: every feature of every caption, a block of captions at a time."""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from diptych.analysis.granularity.features import COMPATS, Feature, Lexicon, Unmeasured, choose_features
from diptych.analysis.granularity.result import Example, FeatureSummary, Granularity
from diptych.analysis.perturbations.caption import Caption
from diptych.core.context import task
from diptych.core.errors import DataError, UnknownNameError
from diptych.core.files import atomic_folder, create_array
from diptych.core.fingerprint import fingerprint
from diptych.data.collection import Collection
from diptych.data.language import Language
from diptych.metrics.bootstrap import Bootstrap, interval, resampled_sums

_BLOCK = 1 << 15  # captions that are held with their tags at once
_EXAMPLES = 5


def check_language(features: Iterable[Feature], language: Language) -> None:
    for one in features:
        if "tags" in one.needs:
            language.need_tagger(f"the feature {one.name}")
        if "wordnet" in one.needs:
            language.need_wordnet(f"the feature {one.name}")


def granularity(
    captions: Collection | Sequence[str],
    *,
    language: Language,
    features: Iterable[str] | None = None,
    compat: str = "none",
    name: str = "",
    split: str = "",
    bootstrap: Bootstrap | None = None,
    folder: Path | str | None = None,
    block: int = _BLOCK,
) -> Granularity:
    """Measure captions a block at a time; values per caption stay in memory or, with ``folder``, on disk."""
    chosen = choose_features(features)
    if compat not in COMPATS:
        raise UnknownNameError("compat", compat, COMPATS)
    check_language(chosen, language)
    how = bootstrap or Bootstrap()
    if isinstance(captions, Collection):
        texts, text, called = captions.captions, captions.text_fingerprint, name or captions.name
        image, image_ids, caption_ids = captions.caption_image, captions.image_ids, captions.caption_ids
    else:
        texts, text, called = captions, "", name or "captions"
        image_ids = caption_ids = [str(row) for row in range(len(texts))]
        image = np.arange(len(texts))
    if not len(texts):
        raise DataError(f"{called} has no caption", "give another collection or split")
    with ExitStack() as stack:
        place = None if folder is None else stack.enter_context(atomic_folder(folder, Granularity.marker()))
        shape = len(texts), len(chosen)
        values = np.empty(shape) if place is None else create_array(place / "values.npy", "<f8", shape)
        nouns, skipped = _fill(values, texts, chosen, language, compat, block)
        about: dict[str, Any] = {
            "split": split,
            "images": len(np.unique(image)),
            "captions": len(texts),
            "text": text or fingerprint(iter(texts)),
            "language": language.line(),
            "compat": compat,
            **asdict(how),
            "paired by": "images" if isinstance(captions, Collection) else "",
        }
        least, most = _extremes(values, texts, caption_ids)
        # Images without captions have no part in it.
        _, rows = np.unique(image, return_inverse=True)
        of_images = PerImage.of(values, rows, int(rows.max()) + 1)
        totals = [table.sum(axis=0) for table in of_images]
        deviations = _known(np.sqrt(variances(*totals)))
        drawn = resampled_sums(np.concatenate([of_images.sums, of_images.counts], axis=1), how)
        ends = [interval(one, how.confidence) for one in divided(*np.split(drawn, 2, axis=1)).T]
        n_nouns = float(nouns.sum())
        summaries = tuple(
            FeatureSummary(  # type: ignore[call-arg]
                one.name,
                one.definition(compat),
                one.unit,
                of_images.means[column],
                deviations[column],
                *(ends[column] or (None, None)),
                int(totals[0][column]),
                dict(skipped[column].most_common()),
                float(values[:, column].sum()) / n_nouns if one.per_noun and n_nouns > 0 else None,
                one.decimals,
                compat if one.published is not None else "none",
            )
            for column, one in enumerate(chosen)
        )
        found = Granularity(
            called, about, summaries, values, nouns, image, image_ids, caption_ids, most, least
        )
        if place is not None:
            values.flush()  # type: ignore[union-attr]
            found.write_header(place)
    return found if folder is None else Granularity.open(folder)


def _fill(
    values: np.ndarray,
    texts: Sequence[str],
    chosen: Sequence[Feature],
    language: Language,
    compat: str,
    block: int,
) -> tuple[np.ndarray, list[Counter[str]]]:
    """Fill in the values; return the nouns of each caption and, per feature, why captions have none."""
    from diptych.data.language.tagged import tag_captions

    lexicon, tagged = Lexicon(language), any("tags" in one.needs for one in chosen)
    counts = [one.counted_by(compat) for one in chosen]
    nouns = np.full(len(texts), np.nan)
    skipped: list[Counter[str]] = [Counter() for _ in chosen]
    with task("granularity", len(texts), "captions") as bar:
        for start in range(0, len(texts), block):
            part = list(texts[start : start + block])
            tags = tag_captions(part, language.need_tagger("granularity")) if tagged else [None] * len(part)
            for row, (text, of_text) in enumerate(zip(part, tags, strict=True), start):
                caption = Caption(text, tags=of_text, language=language)
                if tagged:
                    nouns[row] = len(caption.nouns)
                for column, count in enumerate(counts):
                    try:
                        values[row, column] = count(caption, lexicon)
                    except Unmeasured as reason:
                        values[row, column] = np.nan
                        skipped[column][str(reason)] += 1
            bar.advance(len(part))
    return nouns, skipped


class PerImage(NamedTuple):
    """Sums over the captions of each image, (images, features); a caption without a value counts nowhere."""

    counts: np.ndarray  # how many captions have a value
    sums: np.ndarray  # of values
    squares: np.ndarray  # of squared values

    @classmethod
    def of(cls, values: np.ndarray, image: np.ndarray, images: int) -> Self:
        """Add up (captions, features) values, NaN where there is none, by (captions,) the number of the image."""
        known = ~np.isnan(values)
        plain = np.where(known, values, 0.0)
        tables = cls(*(np.zeros((images, values.shape[1])) for _ in range(3)))
        for table, added in zip(tables, (known, plain, plain**2), strict=True):
            np.add.at(table, image, added)
        return tables

    @property
    def means(self) -> list[float | None]:
        """Per feature, over captions; None without a value."""
        return _known(divided(self.sums.sum(axis=0), self.counts.sum(axis=0)))


def divided(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    nothing = np.full(np.shape(sums), np.nan)
    return np.asarray(np.divide(sums, counts, out=nothing, where=np.asarray(counts) > 0))


def variances(counts: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return sample variances (n − 1) from sums; NaN of fewer than two values."""
    centred = squares - sums * divided(sums, counts)
    return np.where(counts > 1, np.maximum(centred, 0) / np.maximum(counts - 1, 1), np.nan)


def _known(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def _extremes(
    values: np.ndarray, texts: Sequence[str], ids: Sequence[str]
) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """Return the captions with the lowest and the highest scores: mean standardised value over features."""
    known = np.ma.masked_invalid(values)
    standard = (known - known.mean(axis=0)) / known.std(axis=0)  # masked where nothing varies
    score = standard.mean(axis=1).filled(np.nan)
    order = np.argsort(score, kind="stable")
    order = order[~np.isnan(score[order])]
    few = min(_EXAMPLES, len(order) // 2)
    ends = (order[:few], order[::-1][:few])
    least, most = (
        tuple(Example(str(ids[row]), str(texts[row]), float(score[row])) for row in rows) for rows in ends
    )
    return least, most
