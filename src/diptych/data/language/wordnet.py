"""A WordNet: words, their senses (synsets), and what is a kind of what. Source: Fellbaum, WordNet, 1998."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from diptych.core.errors import DataError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import read_toml

PartOfSpeech = Literal["noun", "verb", "adjective", "adverb"]
PART_ORDER: tuple[PartOfSpeech, ...] = get_args(PartOfSpeech)

# Irregular forms in lower case, each with its lemmas.
Forms = Mapping[PartOfSpeech, Mapping[str, Sequence[str]]]


class Synset(NamedTuple):
    """Words of one meaning, and what it is a kind (or an instance) of."""

    name: str
    part: PartOfSpeech
    lemmas: Sequence[str]
    hypernyms: Sequence[str] = ()


_English = dict[PartOfSpeech, Any]


@cache
def english() -> dict[str, _English]:
    """Return what WordNets leave to others: irregular ``forms`` with their lemmas, and endings with what they become.

    ``rules`` are WordNet's own (``morphy(7WN)``), ``more`` and ``doubled`` for regular forms that WordNet has in its
    lists of irregular ones (``happiest``, ``bigger``), which not every WordNet comes with.
    """
    tables = read_toml(Path(__file__).parent.with_name("irregular.toml"))
    forms: _English = {part: {} for part in PART_ORDER}
    for part, of_part in forms.items():
        for entry in tables[part].split(";"):  # lemma form form; lemma form
            lemma, *written = entry.split()
            for form in written:
                of_part[form] = (*of_part.get(form, ()), lemma)
    found = {"forms": forms}
    for kind in ("rules", "more", "doubled"):
        endings = {part: tables[kind].get(part, "").split() for part in PART_ORDER}
        found[kind] = {part: [tuple(one.split(":")) for one in ones] for part, ones in endings.items()}
    return found


class WordNet:
    """Synsets by name, and the senses of lemmas; capitals and underscores of a looked-up word do not matter."""

    def __init__(
        self,
        title: str,
        content: str,
        synsets: Iterable[Synset] = (),
        senses: Iterable[tuple[str, PartOfSpeech, Sequence[str]]] | None = None,
        forms: Forms | None = None,
    ) -> None:
        """Make one of what a file holds.

        Args:
            title: its name.
            content: a fingerprint of what it was made from.
            senses: lemma, part and names of synsets, the usual one first; in the order of ``synsets`` by default.
            forms: its own irregular forms; the common ones by default.
        """
        self.fingerprint: str = fingerprint(content, english())
        self.name: str = f"{title} {self.fingerprint[:8]}"
        common = english()["forms"]
        self._own_forms = forms or common
        self._forms = {part: {**common[part], **self._own_forms[part]} for part in PART_ORDER}
        self._synsets: dict[str, Synset] = {}
        self._below: dict[str, list[str]] = {}
        for synset in synsets:
            if self._synsets.setdefault(synset.name, synset) is not synset:
                raise DataError(f"synset {synset.name!r} occurs twice", "get the WordNet's files again")
            for other in synset.hypernyms:
                self._below.setdefault(other, []).append(synset.name)
        if senses is None:
            senses = ((lemma, one.part, [one.name]) for one in self._synsets.values() for lemma in one.lemmas)
        self._senses: dict[tuple[str, PartOfSpeech], dict[str, list[str]]] = {}
        for lemma, part, names in senses:
            self._senses.setdefault((lemma.lower(), part), {}).setdefault(lemma, []).extend(names)
        named = (name for written in self._senses.values() for names in written.values() for name in names)
        if missing := next((name for name in (*self._below, *named) if name not in self._synsets), None):
            raise DataError(f"no synset {missing!r}, which others name", "get the WordNet's files again")
        self._depths: dict[str, tuple[int, int]] = {}
        self._bases: dict[tuple[str, PartOfSpeech], Sequence[str]] = {}

    def summary(self) -> str:
        n_lemmas = len({lemma for written in self._senses.values() for lemma in written})
        return f"{self.name}: {len(self._synsets):,} synsets, {n_lemmas:,} lemmas"

    def synset(self, name: str) -> Synset:
        if name not in self._synsets:
            raise UsageError(f"{self.name} has no synset {name!r}", "take one of its senses(word)")
        return self._synsets[name]

    def senses(self, lemma: str, part: PartOfSpeech | None = None) -> Sequence[str]:
        """Return names of a lemma's synsets, its usual sense first; of all parts of speech by default.

        Where lemmas differ only in capitals (``turkey``, ``Turkey``), the one as written comes first.
        """
        lemma = lemma.replace("_", " ")
        lower, found = lemma.lower(), list[str]()
        for one in PART_ORDER if part is None else [part]:
            written = self._senses.get((lower, one), {})
            for _, names in sorted(written.items(), key=lambda item: (item[0] != lemma, item[0] != lower)):
                found += names
        return list(dict.fromkeys(found))

    def lemmas(self, synset: str) -> Sequence[str]:
        """Return the words of a synset, in its order, with blanks (``traffic light``)."""
        return self.synset(synset).lemmas

    def hypernyms(self, synset: str) -> Sequence[str]:
        """Return the synsets that it is a kind of, directly."""
        return self.synset(synset).hypernyms

    def hyponyms(self, synset: str) -> Sequence[str]:
        """Return the synsets that are a kind of it, directly."""
        return self._below.get(self.synset(synset).name, [])

    def depth(self, synset: str) -> tuple[int, int]:
        """Return the shortest and the longest way to a root, in steps; (0, 0) for a root.

        A cycle, which real WordNets have, ends once all that is above was passed.
        """
        if synset not in self._depths:
            level, passed, ends = {synset}, set[str](), list[int]()
            for steps in count():
                ends += [steps] if any(not self.hypernyms(one) for one in level) else []
                passed |= level
                level = {above for one in level for above in self.hypernyms(one)}
                if not level or (level <= passed and steps + 1 >= len(passed)):
                    break
            self._depths[synset] = min(ends, default=steps), steps
        return self._depths[synset]

    def base_forms(self, word: str, part: PartOfSpeech) -> Sequence[str]:
        """Return the lemmas that ``word`` may be a form of, likeliest first: ``dogs`` → ``dog``; none if unknown.

        Those of an irregular form come before the word itself. WordNet has them behind, so that ``men`` would be
        the work force first, and a man second.
        """
        if (word, part) not in self._bases:
            lower = word.lower()
            found = self._known([*self._forms[part].get(lower, ()), lower, *_regular(lower, part)], part)
            self._bases[word, part] = found or self._known(_rarer(lower, part), part)
        return self._bases[word, part]

    def morphy(self, word: str, part: PartOfSpeech) -> Sequence[str]:
        """Return the lemmas that NLTK looks ``word`` up by, in its order: itself first, nothing but WordNet's rules."""
        word = word.lower()
        return self._known([word, *(self._own_forms[part].get(word) or _regular(word, part))], part)

    def _known(self, words: Iterable[str], part: PartOfSpeech) -> list[str]:
        return [word for word in dict.fromkeys(words) if word and self.senses(word, part)]


def _regular(word: str, part: PartOfSpeech, kind: str = "rules") -> list[str]:
    rules = english()[kind][part]
    return [word.removesuffix(end) + lemma for end, lemma in rules if word.endswith(end)]


def _rarer(word: str, part: PartOfSpeech) -> list[str]:
    stems = [word.removesuffix(end) for (end,) in english()["doubled"][part] if word.endswith(end)]
    return _regular(word, part, "more") + [stem[:-1] for stem in stems if stem[-1:] == stem[-2:-1]]
