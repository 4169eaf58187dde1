"""A WordNet looked up in tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from diptych.core.errors import UsageError
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import read_toml
from diptych.data.language.contract import PartOfSpeech
from diptych.data.language.wordnet_tables import PART_ORDER, WordNetTables

# From a form of a word to its lemmas: WordNet's rules of detachment (Morphy), and the forms that no rule makes.
#
# Source: Fellbaum, WordNet, 1998, ``morphy(7WN)``. WordNet keeps irregular forms in lists of thousands; a WordNet
# that comes without them has the few below, which captions are full of, and rules for the regular ones that
# WordNet's own rules leave to its lists (``bigger`` → ``big``, ``happiest`` → ``happy``, ``potatoes`` → ``potato``).
# Among the few are plurals that have an entry of their own for something rarer: ``hands`` is the plural of ``hand``
# before it is manual labour, ``cows`` of ``cow`` before it is cattle of both sexes.

_RULES: Mapping[PartOfSpeech, Sequence[tuple[str, str]]] = {
    "noun": (
        ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"),
        ("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y"),
    ),
    "verb": (
        ("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""),
    ),
    "adjective": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adverb": (),
}  # fmt: skip

# Tried where those lead nowhere.
_MORE_RULES: Mapping[PartOfSpeech, Sequence[tuple[str, str]]] = {
    "noun": (("oes", "o"), ("ves", "fe"), ("zzes", "z")),
    "verb": (("ied", "y"), ("oes", "o")),
    "adjective": (("ier", "y"), ("iest", "y")),
    "adverb": (),
}
_AFTER_A_DOUBLED_LETTER: Mapping[PartOfSpeech, Sequence[str]] = {
    "noun": (),
    "verb": ("ed", "ing"),
    "adjective": ("er", "est"),
    "adverb": (),
}


def base_forms(
    word: str,
    part: PartOfSpeech,
    irregular: Mapping[str, Sequence[str]],
    known: Callable[[str], bool],
) -> list[str]:
    """Return the lemmas in lower case that a word may be a form of: of its irregular form, itself, of the rules.

    WordNet puts the word itself before the lemma of an irregular form, so that ``men`` would be the work force
    first, and a man second.
    """
    word = word.lower()
    found = _known([*irregular.get(word, ()), word, *_regular(word, part)], known)
    if found:
        return found
    others = [word[: -len(end)] + lemma for end, lemma in _MORE_RULES[part] if word.endswith(end)]
    for end in _AFTER_A_DOUBLED_LETTER[part]:
        stem = word.removesuffix(end)
        if stem != word and stem[-1:] == stem[-2:-1]:
            others.append(stem[:-1])
    return _known(others, known)


def morphy(
    word: str,
    part: PartOfSpeech,
    irregular: Mapping[str, Sequence[str]],
    known: Callable[[str], bool],
) -> list[str]:
    """Return the lemmas that NLTK looks a word up by: itself, then those of its irregular form or else of the rules.

    Nothing here is ours: no rules beyond WordNet's, and none for a word that has an irregular form.
    """
    word = word.lower()
    return _known([word, *(irregular.get(word) or _regular(word, part))], known)


def _regular(word: str, part: PartOfSpeech) -> list[str]:
    return [word[: -len(end)] + lemma for end, lemma in _RULES[part] if word.endswith(end)]


def _known(words: Sequence[str], known: Callable[[str], bool]) -> list[str]:
    return [word for word in dict.fromkeys(words) if word and known(word)]


def _table(text: str) -> dict[str, tuple[str, ...]]:
    """``lemma form form; lemma form`` as form → lemmas."""
    table: dict[str, tuple[str, ...]] = {}
    for entry in text.split(";"):
        lemma, *forms = entry.split()
        for form in forms:
            table[form] = (*table.get(form, ()), lemma)
    return table


_FORMS = read_toml(Path(__file__).parent.with_name("irregular.toml"))

IRREGULAR: Mapping[PartOfSpeech, Mapping[str, Sequence[str]]] = {
    part: _table(_FORMS[part]) for part in PART_ORDER
}
"""Irregular forms that captions use, with their lemmas."""


@cache
def rules_fingerprint() -> str:
    """Of the rules and the list: what is looked up depends on them."""
    return fingerprint(_RULES, _MORE_RULES, _AFTER_A_DOUBLED_LETTER, IRREGULAR)


class TableWordNet:
    """A WordNet in tables.

    Capitals of a looked-up word do not matter; where lemmas differ in them alone (``turkey``, ``Turkey``), the
    one written as asked comes first.
    """

    def __init__(self, tables: WordNetTables, content: str) -> None:
        self.fingerprint = fingerprint(content, rules_fingerprint())
        self.name = f"{tables.title} {self.fingerprint[:8]}"
        self._tables = tables
        self._bases: dict[tuple[str, PartOfSpeech], tuple[str, ...]] = {}

    @cached_property
    def _lemma_rows(self) -> dict[str, int]:
        return {lemma: row for row, lemma in enumerate(self._tables.lemmas)}

    @cached_property
    def _capitalised(self) -> dict[str, list[int]]:
        """Return the rows of lemmas with capitals, by the lemma without."""
        rows: dict[str, list[int]] = {}
        for row, lemma in enumerate(self._tables.lemmas):
            lower = lemma.lower()
            if lower != lemma:
                rows.setdefault(lower, []).append(row)
        return rows

    @cached_property
    def _synset_rows(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self._tables.synsets)}

    @cached_property
    def _own_irregular(self) -> Mapping[PartOfSpeech, Mapping[str, Sequence[str]]]:
        """Return the WordNet's own irregular forms; the common ones where it has none at all."""
        own: dict[PartOfSpeech, dict[str, list[str]]] = {part: {} for part in PART_ORDER}
        for form, (lemma, part) in zip(self._tables.forms, self._tables.form_of.tolist(), strict=True):
            own[PART_ORDER[part]].setdefault(form.lower(), []).append(self._tables.lemmas[lemma].lower())
        return own if self._tables.forms else IRREGULAR

    @cached_property
    def _irregular(self) -> Mapping[PartOfSpeech, Mapping[str, Sequence[str]]]:
        """Return the WordNet's own irregular forms, and the common ones where it has none of that word."""
        return {part: {**IRREGULAR[part], **self._own_irregular[part]} for part in PART_ORDER}

    def __len__(self) -> int:
        """Return how many synsets."""
        return len(self._tables.synsets)

    @property
    def n_lemmas(self) -> int:
        """Return how many lemmas have a sense."""
        return int(np.count_nonzero(np.diff(self._tables.senses.starts)))

    def base_forms(self, word: str, part: PartOfSpeech) -> Sequence[str]:
        key = word, part
        if key not in self._bases:
            found = base_forms(
                word, part, self._irregular[part], lambda lemma: bool(self.senses(lemma, part))
            )
            self._bases[key] = tuple(found)
        return self._bases[key]

    def morphy(self, word: str, part: PartOfSpeech) -> Sequence[str]:
        return morphy(word, part, self._own_irregular[part], lambda lemma: bool(self.senses(lemma, part)))

    def senses(self, lemma: str, part: PartOfSpeech | None = None) -> Sequence[str]:
        lemma = lemma.replace("_", " ")
        lower = lemma.lower()
        written = [self._lemma_rows[word] for word in (lemma, lower) if word in self._lemma_rows]
        tables, found = self._tables, []
        for row in dict.fromkeys([*written, *self._capitalised.get(lower, ())]):
            found += tables.senses[row]
        if part is None:
            found.sort(key=lambda row: int(tables.parts[row]))
        else:
            wanted = PART_ORDER.index(part)
            found = [row for row in found if tables.parts[row] == wanted]
        return [tables.synsets[row] for row in dict.fromkeys(found)]

    def lemmas(self, synset: str) -> Sequence[str]:
        return [self._tables.lemmas[row] for row in self._tables.members[self._row(synset)]]

    def hypernyms(self, synset: str) -> Sequence[str]:
        return [self._tables.synsets[row] for row in self._tables.hypernyms[self._row(synset)]]

    def hyponyms(self, synset: str) -> Sequence[str]:
        return [self._tables.synsets[row] for row in self._tables.hyponyms[self._row(synset)]]

    def depth(self, synset: str) -> tuple[int, int]:
        low, high = self._tables.depths[self._row(synset)].tolist()
        return low, high

    def _row(self, synset: str) -> int:
        row = self._synset_rows.get(synset)
        if row is None:
            raise UsageError(f"{self.name} has no synset {synset!r}", "take one of its senses(word)")
        return row
