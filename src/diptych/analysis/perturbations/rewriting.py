"""Other words at some places of a caption, written as the words they replace were.

Capitals are kept: what replaces a capitalised word is capitalised. ``a`` and ``an`` directly before a word that
is replaced become what goes before the new one; every other article stays as the caption has it.
"""

from __future__ import annotations

from collections.abc import Mapping

from diptych.analysis.perturbations.caption import Caption
from diptych.analysis.perturbations.english import article_before
from diptych.analysis.perturbations.letters import with_changes

Span = tuple[int, int]
"""The places of the first and the last of some words that follow one another."""


def rewritten(caption: Caption, changes: Mapping[Span, str]) -> str:
    """The caption with other words in place of some."""
    words = caption.words
    edits: list[tuple[int, int, str]] = []
    taken = {place for first, last in changes for place in range(first, last + 1)}
    for (first, last), new in changes.items():
        start, end = words[first].start, words[last].end
        if not new:
            after = words[last + 1].start if last + 1 < len(words) else end
            edits.append((start, after if caption.text[end:after].isspace() else end, ""))
            continue
        edits.append((start, end, cased_like(words[first].text, new)))
        before = first - 1
        if before < 0 or before in taken or words[before].text.lower() not in ("a", "an"):
            continue
        if caption.text[words[before].end : start].isspace():
            article = article_before(new.split()[0])
            edits.append((words[before].start, words[before].end, cased_like(words[before].text, article)))
    return with_changes(caption.text, edits)


def cased_like(model: str, text: str) -> str:
    """``text`` in capitals where ``model`` is, with a capital where ``model`` has one, else as it is.

    >>> cased_like("Dog", "domestic dog"), cased_like("DOG", "puppy"), cased_like("dog", "Labrador")
    ('Domestic dog', 'PUPPY', 'Labrador')
    """
    if model.isupper() and len(model) > 1:
        return text.upper()
    return text[:1].upper() + text[1:] if model[:1].isupper() else text
