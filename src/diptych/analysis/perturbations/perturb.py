"""Perturb captions: every one is changed, or counted with the reason why it was not."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from diptych.analysis.perturbations.caption import Caption, Unchanged
from diptych.analysis.perturbations.declaration import PERTURBATIONS, TextPerturbation, options_of
from diptych.core.context import track
from diptych.core.draws import Draws
from diptych.core.errors import DataError, UsageError
from diptych.data.language import Language

SAME = "the result is the caption itself"

COMPATS = ("none", "published")

PUBLISHED_SEED = 42
"""The seed that the published code begins with anew for every caption."""


@dataclass(frozen=True, eq=False)
class PerturbedCaptions:
    """What became of the captions.

    Attributes:
        name: the perturbation's.
        seed: of its draws.
        compat: ``none`` or ``published``.
        options: what it was run with.
        texts: one per caption, as before where it is unchanged.
        changed: (n,) booleans.
        reasons: how many captions stayed as they were, by reason, most first.
    """

    name: str
    seed: int
    compat: str
    options: Mapping[str, Any]
    texts: list[str]
    changed: np.ndarray
    reasons: dict[str, int]

    @property
    def n_changed(self) -> int:
        """How many were changed."""
        return int(self.changed.sum())

    def line(self) -> str:
        """One line: how many were changed, and why the others were not."""
        said = f"{self.name}: {self.n_changed:,} of {len(self.texts):,} captions changed"
        why = "; ".join(f"{reason} {count:,}" for reason, count in self.reasons.items())
        return f"{said} ({why})" if why else said

    def to_dict(self) -> dict[str, Any]:
        """What was done and how often, without the texts; JSON-able."""
        return {
            "name": self.name,
            "seed": self.seed,
            "compat": self.compat,
            "options": dict(self.options),
            "captions": len(self.texts),
            "changed": self.n_changed,
            "unchanged": self.reasons,
        }


def usual_seed(compat: str) -> int:
    """The seed where nobody names one: 0, or the published code's."""
    return PUBLISHED_SEED if compat == "published" else 0


def check_compat(perturbation: TextPerturbation, compat: str) -> None:
    """See that a perturbation has the form that is asked for."""
    if compat not in COMPATS:
        raise UsageError(f"compat is {compat!r}", f"one of {', '.join(COMPATS)}")
    if compat == "published" and perturbation.published is None:
        raise UsageError(f"{perturbation.name} has no published form", "leave compat out")


def perturb_captions(
    perturbation: TextPerturbation,
    captions: Sequence[str],
    ids: Sequence[str],
    *,
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
    compat: str = "none",
    language: Language | None = None,
    tags: Sequence[Sequence[str]] | None = None,
) -> PerturbedCaptions:
    """Change every caption that can be changed.

    Args:
        perturbation: how.
        captions: any texts.
        ids: one per caption: what becomes of one is a function of (seed, id, caption) alone.
        seed: of the draws.
        options: of the perturbation.
        compat: ``published`` for the published code's behaviour.
        language: a tagger and a WordNet, where the perturbation needs them.
        tags: the tags of every caption's words, where they are there already
            (:func:`diptych.data.language.tagged.tag_captions`).

    Raises:
        UsageError: no published form, an option it does not have, or nothing to tag or look up with.
        DataError: as many ids or tags as captions are expected.
    """
    if len(ids) != len(captions) or (tags is not None and len(tags) != len(captions)):
        given = "no" if tags is None else f"{len(tags):,}"
        raise DataError(f"{len(captions):,} captions, {len(ids):,} ids and {given} tagged sentences")
    check_compat(perturbation, compat)
    published = perturbation.published if compat == "published" else None
    seed = seed if seed is not None else usual_seed(compat)
    settings = options_of(perturbation, options)
    if "wordnet" in perturbation.needs:
        (language or Language("none")).need_wordnet(perturbation.name)
    if "tags" in perturbation.needs and tags is None:
        from diptych.data.language.tagged import tag_captions

        tags = tag_captions(captions, (language or Language("none")).need_tagger(perturbation.name))
    texts, changed = list(captions), np.zeros(len(captions), dtype=bool)
    reasons: Counter[str] = Counter()
    for place in track(range(len(captions)), perturbation.name, unit="captions"):
        caption = Caption(captions[place], ids[place], None if tags is None else tags[place], language)
        try:
            if published is None:
                text = perturbation.apply(caption, Draws(seed, perturbation.name, ids[place]), settings)
            else:
                text = published(caption, seed, settings)
        except Unchanged as outcome:
            reasons[str(outcome)] += 1
            continue
        if text == caption.text:
            reasons[SAME] += 1
        else:
            texts[place], changed[place] = text, True
    return PerturbedCaptions(
        name=perturbation.name,
        seed=seed,
        compat=compat,
        options=settings.model_dump(),
        texts=texts,
        changed=changed,
        reasons=dict(reasons.most_common()),
    )


def perturb_caption(
    caption: str,
    name: str,
    *,
    id: str = "",
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
    compat: str = "none",
    language: Language | None = None,
) -> str:
    """One caption changed, or the caption itself where there is nothing to change.

    Args:
        caption: any text.
        name: of a perturbation of captions.
        id: the caption's, on which draws depend.
        seed, options, compat: as for :func:`perturb_captions`.
        language: a tagger and a WordNet; where one is needed and none is given, what
            :func:`diptych.data.language.open.open_language` finds.

    Raises:
        UnknownNameError: no such perturbation.
        UsageError: one of pictures, and whatever :func:`perturb_captions` raises.

    >>> perturb_caption("Two small dogs run across wet grass", "character-swap", compat="published")
    'Two small dogs run across wet grsas'
    """
    perturbation = PERTURBATIONS.get(name)
    if not isinstance(perturbation, TextPerturbation):
        raise UsageError(f"{name} changes pictures, not captions", "see perturbed_pictures")
    if language is None and perturbation.needs:
        from diptych.data.language.open import WORDNET_VARIABLE

        language = _language_at_hand(os.environ.get("NLTK_DATA"), os.environ.get(WORDNET_VARIABLE))
    return perturb_captions(
        perturbation, [caption], [id], seed=seed, options=options, compat=compat, language=language
    ).texts[0]


@lru_cache(maxsize=1)
def _language_at_hand(nltk_data: str | None, wordnet: str | None) -> Language:
    """What is found, opened once for the environment's two variables."""
    from diptych.data.language.open import open_language

    return open_language()
