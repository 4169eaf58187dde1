"""Measure granularity: every feature of every caption, a block of captions at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from diptych.analysis.granularity.declaration import COMPATS, Feature, Lexicon, Unmeasured, choose_features
from diptych.analysis.granularity.result import (
    Example,
    FeatureSummary,
    Granularity,
    divided,
    gathered,
    intervals,
    resampled_sums,
)
from diptych.analysis.perturbations.caption import Caption
from diptych.core.context import task
from diptych.core.errors import DataError, UnknownNameError
from diptych.core.files import atomic_folder, create_array
from diptych.core.fingerprint import fingerprint_lists
from diptych.data.collection import Collection
from diptych.data.language import Language
from diptych.metrics.bootstrap import Bootstrap

_BLOCK = 1 << 15
"""Captions that are held with their tags at once."""

_EXAMPLES = 5


def check_language(features: Iterable[Feature], language: Language) -> None:
    """See that a language has what features look at."""
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
    """Measure the granularity of captions.

    Tags and words are held of one block of captions; of each caption a number per feature stays, in memory or,
    with ``folder``, on disk.
    """
    chosen = choose_features(features)
    if compat not in COMPATS:
        raise UnknownNameError("compat", compat, COMPATS)
    check_language(chosen, language)
    how = bootstrap or Bootstrap()
    subject = captions if isinstance(captions, Collection) else None
    texts: Sequence[str] = captions if subject is None else subject.captions  # type: ignore[assignment]
    called = name or ("captions" if subject is None else subject.name)
    if not len(texts):
        raise DataError(f"{called} has no caption", "give another collection or split")
    numbered = [str(row) for row in range(len(texts))] if subject is None else []
    image = np.arange(len(texts)) if subject is None else subject.caption_image
    with _room(folder, len(texts), len(chosen)) as (values, place):
        nouns, skipped = _fill(values, texts, chosen, language, compat, block)
        about = {
            "split": split,
            "images": len(np.unique(image)),
            "captions": len(texts),
            "text": fingerprint_lists(texts) if subject is None else subject.text_fingerprint,
            "language": language.line(),
            "compat": compat,
            "samples": how.samples,
            "confidence": how.confidence,
            "seed": how.seed,
            "paired by": "" if subject is None else "images",
        }
        least, most = _extremes(values, texts, numbered or subject.caption_ids)  # type: ignore[union-attr]
        found = Granularity(
            name=called,
            about=about,
            features=_summaries(chosen, compat, values, nouns, image, skipped, how),
            values=values,
            nouns=nouns,
            caption_image=image,
            image_ids=numbered or subject.image_ids,  # type: ignore[union-attr]
            caption_ids=numbered or subject.caption_ids,  # type: ignore[union-attr]
            most=most,
            least=least,
        )
        if place is not None:
            values.flush()  # type: ignore[attr-defined]
            found.write_header(place)
    return found if folder is None else Granularity.open(folder)


@contextmanager
def _room(folder: Path | str | None, rows: int, columns: int) -> Iterator[tuple[np.ndarray, Path | None]]:
    """Where values go: memory, or a file in a folder that is there when the block has succeeded."""
    if folder is None:
        yield np.empty((rows, columns)), None
        return
    with atomic_folder(folder, Granularity.marker()) as temporary:
        yield create_array(temporary / "values.npy", "<f8", (rows, columns)), temporary


def _fill(
    values: np.ndarray,
    texts: Sequence[str],
    chosen: Sequence[Feature],
    language: Language,
    compat: str,
    block: int,
) -> tuple[np.ndarray, list[Counter[str]]]:
    """Fill in the values; gives the nouns of each caption and, per feature, why captions have none."""
    from diptych.data.language.tagged import tag_captions

    lexicon = Lexicon(language)
    counts = [one.counted_by(compat) for one in chosen]
    tagger = language.need_tagger("granularity") if any("tags" in one.needs for one in chosen) else None
    nouns = np.full(len(texts), np.nan)
    skipped: list[Counter[str]] = [Counter() for _ in chosen]
    with task("granularity", len(texts), "captions") as bar:
        for start in range(0, len(texts), block):
            part = list(texts[start : start + block])
            tags = [None] * len(part) if tagger is None else tag_captions(part, tagger)
            for row, (text, of_text) in enumerate(zip(part, tags, strict=True), start):
                caption = Caption(text, tags=of_text, language=language)
                if tagger is not None:
                    nouns[row] = len(caption.nouns)
                for column, count in enumerate(counts):
                    try:
                        values[row, column] = count(caption, lexicon)
                    except Unmeasured as reason:
                        values[row, column] = np.nan
                        skipped[column][str(reason)] += 1
            bar.advance(len(part))
    return nouns, skipped


def _summaries(
    chosen: Sequence[Feature],
    compat: str,
    values: np.ndarray,
    nouns: np.ndarray,
    image: np.ndarray,
    skipped: Sequence[Counter[str]],
    how: Bootstrap,
) -> tuple[FeatureSummary, ...]:
    # Images without captions have no part in it.
    _, rows = np.unique(image, return_inverse=True)
    of_images = gathered(values, rows, int(rows.max()) + 1)
    means, deviations = of_images.means, of_images.deviations
    sums, counts = resampled_sums([of_images.sums, of_images.counts], how)
    ends = intervals(divided(sums, counts), how.confidence)
    made = []
    for column, one in enumerate(chosen):
        low, high = ends[column] or (None, None)
        made.append(
            FeatureSummary(
                name=one.name,
                definition=one.definition(compat),
                unit=one.unit,
                mean=_number(means[column]),
                sd=_number(deviations[column]),
                low=low,
                high=high,
                n=int(of_images.counts[:, column].sum()),
                skipped=dict(skipped[column].most_common()),
                per_noun=_per_noun(values[:, column], nouns) if one.per_noun else None,
                decimals=one.decimals,
                compat=compat if one.published is not None else "none",
            )
        )
    return tuple(made)


def _per_noun(values: np.ndarray, nouns: np.ndarray) -> float | None:
    total = float(nouns.sum())
    return float(np.asarray(values).sum()) / total if total > 0 else None


def _number(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)


def _extremes(
    values: np.ndarray, texts: Sequence[str], ids: Sequence[str]
) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """The captions with the lowest and the highest scores: mean standardised value over features."""
    total, known = np.zeros(len(values)), np.zeros(len(values))
    for column in range(values.shape[1]):
        given = np.asarray(values[:, column])
        there = ~np.isnan(given)
        spread = float(given[there].std()) if there.any() else 0.0
        if spread > 0:
            total[there] += (given[there] - given[there].mean()) / spread
            known += there
    score = divided(total, known)
    order = np.argsort(score, kind="stable")
    order = order[~np.isnan(score[order])]
    few = min(_EXAMPLES, len(order) // 2)

    def examples(rows: np.ndarray) -> tuple[Example, ...]:
        return tuple(Example(str(ids[row]), str(texts[row]), float(score[row])) for row in rows.tolist())

    return examples(order[:few]), examples(order[::-1][:few])
