"""A WordNet looked up in tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from diptych.core.errors import UsageError
from diptych.core.fingerprint import fingerprint
from diptych.data.language.contract import PartOfSpeech
from diptych.data.language.morphy import IRREGULAR, base_forms, morphy, rules_fingerprint
from diptych.data.language.wordnet_tables import PART_ORDER, WordNetTables

__all__ = ["TableWordNet"]


class TableWordNet:
    """A WordNet in tables.

    Capitals of a looked-up word do not matter; where lemmas differ in them alone (``turkey``, ``Turkey``), the
    one written as asked comes first.

    Args:
        tables: its content.
        content: fingerprint of that content.
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
        """The rows of lemmas with capitals, by the lemma without."""
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
        """The WordNet's own irregular forms; the common ones where it has none at all."""
        own: dict[PartOfSpeech, dict[str, list[str]]] = {part: {} for part in PART_ORDER}
        for form, (lemma, part) in zip(self._tables.forms, self._tables.form_of.tolist(), strict=True):
            own[PART_ORDER[part]].setdefault(form.lower(), []).append(self._tables.lemmas[lemma].lower())
        return own if self._tables.forms else IRREGULAR

    @cached_property
    def _irregular(self) -> Mapping[PartOfSpeech, Mapping[str, Sequence[str]]]:
        """The WordNet's own irregular forms, and the common ones where it has none of that word."""
        return {part: {**IRREGULAR[part], **self._own_irregular[part]} for part in PART_ORDER}

    def __len__(self) -> int:
        """How many synsets."""
        return len(self._tables.synsets)

    @property
    def n_lemmas(self) -> int:
        """How many lemmas have a sense."""
        return int(np.count_nonzero(np.diff(self._tables.senses.starts)))

    def base_forms(self, word: str, part: PartOfSpeech) -> Sequence[str]:
        """The lemmas, in lower case, that ``word`` may be a form of: of its irregular form, itself, of rules."""
        key = word, part
        if key not in self._bases:
            found = base_forms(
                word, part, self._irregular[part], lambda lemma: bool(self.senses(lemma, part))
            )
            self._bases[key] = tuple(found)
        return self._bases[key]

    def morphy(self, word: str, part: PartOfSpeech) -> Sequence[str]:
        """The lemmas that NLTK looks ``word`` up by, in its order."""
        return morphy(word, part, self._own_irregular[part], lambda lemma: bool(self.senses(lemma, part)))

    def senses(self, lemma: str, part: PartOfSpeech | None = None) -> Sequence[str]:
        """Names of a lemma's synsets, its usual sense first; nouns, verbs, adjectives, adverbs by default."""
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
        """The words of a synset, in its order, with blanks (``traffic light``).

        Raises:
            UsageError: there is no such synset; so say the others.
        """
        return [self._tables.lemmas[row] for row in self._tables.members[self._row(synset)]]

    def hypernyms(self, synset: str) -> Sequence[str]:
        """The synsets that it is a kind (or an instance) of, directly."""
        return [self._tables.synsets[row] for row in self._tables.hypernyms[self._row(synset)]]

    def hyponyms(self, synset: str) -> Sequence[str]:
        """The synsets that are a kind (or an instance) of it, directly."""
        return [self._tables.synsets[row] for row in self._tables.hyponyms[self._row(synset)]]

    def depth(self, synset: str) -> tuple[int, int]:
        """The shortest and the longest way to a root, in steps; (0, 0) for a root."""
        low, high = self._tables.depths[self._row(synset)].tolist()
        return low, high

    def _row(self, synset: str) -> int:
        row = self._synset_rows.get(synset)
        if row is None:
            raise UsageError(f"{self.name} has no synset {synset!r}", "take one of its senses(word)")
        return row
