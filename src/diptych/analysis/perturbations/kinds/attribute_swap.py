"""Two attributes change places: ``a red star left of a blue heart`` → ``a blue star left of a red heart``.

Every word stays, and with it every attribute and every noun; what is whose is changed, which only a model that binds
attributes to things can tell. Exchanged are attributes of one kind, a colour with a colour or a size with a size, of
two different nouns: before them, or, as colours do, behind them (``a man in red``). Not exchanged are two of one noun
(``a black and white dog``), those that would say what was said (``a red ball and a blue ball``), and those that would
leave a noun with one attribute twice. ``any`` exchanges any two different adjectives as well.

Source: the compositional case of Yuksekgonul et al., ICLR 2023 (ARO, attribution), made from a caption itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from pydantic import Field

from diptych.analysis.perturbations.caption import Caption, Unchanged
from diptych.analysis.perturbations.declaration import PERTURBATIONS, NoOptions, TextPerturbation
from diptych.analysis.perturbations.english.word_lists import listed
from diptych.analysis.perturbations.phrases import COLOURS, close, lower_words, mended_tags
from diptych.analysis.perturbations.rewriting import rewritten
from diptych.core.draws import Draws
from diptych.data.language import ADJECTIVE_TAGS, NOUN_TAGS

_KINDS: Mapping[str, frozenset[str]] = {
    "colour": COLOURS,
    "size": listed(
        "big enormous giant gigantic huge large little massive medium medium-sized miniature small tiny"
    ),
}
_KIND_OF = {word: kind for kind, words in _KINDS.items() for word in words}
_SPELT = {"gray": "grey", "little": "small", "big": "large"}  # another word for the same would change nothing
_MOST = 100  # attributes of one caption that are looked at: pairs are many
_BETWEEN = ADJECTIVE_TAGS | NOUN_TAGS | {"VBG", "VBN", "CD"}


class AttributeSwapOptions(NoOptions):
    """Options of attribute-swap."""

    any: bool = Field(default=False, description="any two adjectives, not only two colours or two sizes")


def _apply(caption: Caption, draws: Draws, options: AttributeSwapOptions) -> str:
    words, tags = lower_words(caption), mended_tags(caption)
    heads = _nouns_of(caption, tags)
    nouns = {
        place: noun
        for place, noun in enumerate(heads)
        if noun is not None and (words[place] in _KIND_OF or (options.any and tags[place] == "JJ"))
    }
    if len(nouns) < 2:
        raise Unchanged("fewer than two attributes of nouns")
    plain = [_SPELT.get(word, word) for word in words]
    described = {
        noun: {plain[place] for place in nouns if nouns[place] == noun} for noun in {*nouns.values()}
    }
    pairs = [
        (one, other)
        for one, other in combinations([*nouns][:_MOST], 2)
        if words[nouns[one]] != words[nouns[other]]
        and plain[one] not in described[nouns[other]]
        and plain[other] not in described[nouns[one]]
        and (options.any or _KIND_OF[words[one]] == _KIND_OF[words[other]])
    ]
    if not pairs:
        raise Unchanged("no two different attributes of one kind with different nouns")
    one, other = draws.choice(pairs)
    return rewritten(caption, {(one, one): words[other], (other, other): words[one]})


def _nouns_of(caption: Caption, tags: Sequence[str]) -> list[int | None]:
    """For every word the place of the noun that it stands before, or behind: ``a woman in red``."""
    found: list[int | None] = [None] * len(tags)
    for place in range(len(tags) - 2, -1, -1):
        after = place + 1
        if not close(caption, place, after):
            continue
        if tags[after] in NOUN_TAGS:
            more = found[after] is not None and tags[after + 1] in NOUN_TAGS
            found[place] = found[after] if more else after
        elif tags[after] in _BETWEEN or (tags[after] == "CC" and tags[after + 1 : after + 2] == ["JJ"]):
            found[place] = found[after]
    for place in range(2, len(tags)):
        if (
            found[place] is None
            and caption.words[place - 1].text.lower() == "in"
            and tags[place - 2] in NOUN_TAGS
        ):
            found[place] = place - 2
    return found


PERTURBATIONS.add(
    TextPerturbation(
        name="attribute-swap",
        description="two colours or two sizes change places",
        group="meaning",
        source="thesis §5.7, future work; after ARO (Yuksekgonul et al. 2023)",
        keeps_meaning=False,
        options=AttributeSwapOptions,
        apply=_apply,
        needs=frozenset({"tags"}),
    )
)
