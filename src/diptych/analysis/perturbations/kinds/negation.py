"""The opposite: ``a dog is running`` → ``a dog is not running``, ``two dogs in the grass`` → ``no dogs in the grass``.

- ``there is a dog`` → ``there is no dog``;
- else the first verb that agrees with a subject is negated: ``not`` behind ``is``, ``are``, ``can`` and the like,
  ``does not`` or ``do not`` before every other (``runs`` → ``does not run``);
- where there is none, as in half of all captions, ``no`` takes the place of the first article, number or quantity
  that stands with a noun, or comes before the first noun that has none.

What is negated already is left alone. Verbs of the past other than ``was`` and ``were`` are not read, for a tagger
mistakes participles for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from diptych.analysis.perturbations.caption import Caption, Unchanged
from diptych.analysis.perturbations.declaration import PERTURBATIONS, NoOptions, TextPerturbation
from diptych.analysis.perturbations.english import for_many
from diptych.analysis.perturbations.english.word_lists import listed
from diptych.analysis.perturbations.phrases import (
    BE,
    finite_verbs,
    lower_words,
    mended_tags,
    noun_phrases,
)
from diptych.analysis.perturbations.rewriting import Span, rewritten
from diptych.core.draws import Draws

_NEGATIVE = listed("no not none nobody nothing nowhere never neither nor without cannot")
_NEGATIVE_ENDINGS = ("n't", "n’t")
_NAMES, _NAMED = ("NNP", "NNPS"), (["NNP"], ["NNPS"])
_COUNTED = frozenset(
    {"a", "an", "some", "any", "one", "two", "several", "many", "three", "four", "five", "lots"}
)


def _apply(caption: Caption, draws: Draws, options: NoOptions) -> str:
    words, tags = lower_words(caption), mended_tags(caption)
    if any(word in _NEGATIVE or word.endswith(_NEGATIVE_ENDINGS) for word in words):
        raise Unchanged("it is negated already")
    for verb in finite_verbs(caption, tags):
        change = _negated(verb, words, tags)
        if change is not None:
            return rewritten(caption, change)
    for phrase in noun_phrases(caption, tags):
        at, first = phrase.determiner, phrase.first
        if at is not None and tags[at] != "PRP$":
            return rewritten(caption, {(at, at): "no"})
        if at is None and (first == 0 or tags[first] not in _NAMES):
            # A capital at the beginning is no name, unless another name follows.
            name = tags[first] in _NAMES and tags[1:2] in _NAMED
            word = caption.words[first].text if name else words[first]
            return rewritten(caption, {(first, first): f"no {word}"})
    raise Unchanged("neither a verb nor a noun that can be negated")


def _negated(verb: int, words: Sequence[str], tags: Sequence[str]) -> dict[Span, str] | None:
    """What negates a verb; None for what is probably none."""
    word, after = words[verb], verb + 1
    if verb and words[verb - 1] == "there" and word in BE and after < len(words) and words[after] in _COUNTED:
        return {(after, after): "no"}
    if (
        word in BE
        or word in ("does", "do")
        or (word in ("has", "have") and tags[after : after + 1] == ["VBN"])
    ):
        return {(verb, verb): f"{word} not"}
    if tags[verb] == "MD":
        return {(verb, verb): "cannot" if word == "can" else f"{word} not"}
    if tags[verb] == "VBZ":
        return {(verb, verb): f"does not {for_many(word)}"}
    return {(verb, verb): f"do not {word}"}


PERTURBATIONS.add(
    TextPerturbation(
        name="negation",
        description="what is said is denied: is not, does not, no",
        group="meaning",
        source="thesis §5.7, future work",
        keeps_meaning=False,
        apply=_apply,
        needs=frozenset({"tags"}),
    )
)
