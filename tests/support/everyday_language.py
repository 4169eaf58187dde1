"""A language of a few dozen everyday words: a tagger that looks them up, and a net of their meanings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from diptych.data.language import Language, PartOfSpeech, words_of
from diptych.data.language.table_wordnet import IRREGULAR, base_forms, morphy

_TAGS = {
    "DT": "a an the this",
    "CD": "one two three 2 3",
    "CC": "and or",
    "IN": "in on with of at between through while",
    "JJ": "red blue black white small large little tiny wooden hot old green happy young several orange",
    "JJR": "larger smaller happier",
    "JJS": "largest",
    "NN": "dog cat man woman boy ball street grass table car hat orchid apple path water group stream front side "
    "tennis player person picture plant poodle thing water bus house child hand",
    "NNS": "dogs cats men women boys balls streets people cars hats orchids plants cookies apples children players "
    "knives glasses houses sheep",
    "NNP": "Paris Rex",
    "VBZ": "is runs sits has watches",
    "VBP": "are run sit have",
    "VBG": "running sitting wearing holding",
    "VBN": "parked seen",
    "MD": "can",
    "EX": "there",
    "PRP$": "his its",
    "TO": "to",
}


class DictTagger:
    """Tags of a table, nouns for every other word; capitals do not matter but for names."""

    name, fingerprint = "dict tagger", "dict-tagger"

    def __init__(self, tags: Mapping[str, str] = _TAGS) -> None:
        self._tags = {word: tag for tag, words in tags.items() for word in words.split()}

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """A tag for each token."""
        return [[self._tag(token) for token in sentence] for sentence in sentences]

    def _tag(self, token: str) -> str:
        if not token[0].isalnum():
            return token
        return self._tags.get(token) or self._tags.get(token.lower(), "NN")


@dataclass
class DictWordNet:
    """Synsets by name, ``lemma``s, what they are kinds of, and their part of speech by the name's end (``dog.n``)."""

    members: Mapping[str, Sequence[str]]
    above: Mapping[str, Sequence[str]] = field(default_factory=dict)
    name: str = "dict wordnet"
    fingerprint: str = "dict-wordnet"

    def base_forms(self, word: str, part: PartOfSpeech) -> Sequence[str]:
        """By WordNet's rules."""
        return base_forms(word, part, IRREGULAR[part], lambda lemma: bool(self.senses(lemma, part)))

    def morphy(self, word: str, part: PartOfSpeech) -> Sequence[str]:
        """By WordNet's rules alone."""
        return morphy(word, part, IRREGULAR[part], lambda lemma: bool(self.senses(lemma, part)))

    def senses(self, lemma: str, part: PartOfSpeech | None = None) -> Sequence[str]:
        """In the order of the table; of all parts of speech, nouns first."""
        wanted = ["noun", "verb", "adjective", "adverb"] if part is None else [part]
        return [
            synset
            for one in wanted
            for synset, lemmas in self.members.items()
            if synset.split(".")[1] == one[0] and lemma.lower() in {other.lower() for other in lemmas}
        ]

    def lemmas(self, synset: str) -> Sequence[str]:
        """As the table has them."""
        return self.members[synset]

    def hypernyms(self, synset: str) -> Sequence[str]:
        """As the table has them."""
        return self.above.get(synset, ())

    def hyponyms(self, synset: str) -> Sequence[str]:
        """What has it above."""
        return [other for other in self.members if synset in self.above.get(other, ())]

    def depth(self, synset: str) -> tuple[int, int]:
        """Steps to a root."""
        ways = [self.depth(other) for other in self.hypernyms(synset)]
        return (1 + min(w[0] for w in ways), 1 + max(w[1] for w in ways)) if ways else (0, 0)


def everyday() -> Language:
    """The language."""
    members = {
        "entity.n": ["entity"],
        "organism.n": ["organism"],
        "animal.n": ["animal"],
        "vertebrate.n": ["vertebrate"],
        "mammal.n": ["mammal"],
        "carnivore.n": ["carnivore"],
        "canine.n": ["canine", "canid"],
        "pet.n": ["domestic animal"],
        "dog.n": ["dog", "domestic dog", "Canis familiaris"],
        "poodle.n": ["poodle"],
        "airedale.n": ["Airedale"],
        "plant.n": ["plant"],
        "poplar.n": ["poplar"],
        "cookie.n": ["cookie", "cooky", "biscuit"],
        "frump.n": ["frump", "dog"],
        "person.n": ["person", "individual"],
        "male.n": ["male"],
        "man.n": ["man", "adult male"],
        "bachelor.n": ["bachelor"],
        "boy.n": ["male child", "boy"],
        "child.n": ["child", "kid"],
        "street.n": ["street"],
        "grass.n": ["grass"],
        "ball.n": ["ball"],
        "sphere.n": ["sphere", "orb"],
        "glasses.n": ["glasses", "spectacles", "specs"],
        "player.n": ["player", "participant"],
        "tennis player.n": ["tennis player"],
        "orchid.n": ["orchid", "orchidaceous plant"],
        "hat.n": ["hat", "equipment", "headgear"],
        "field.n": ["field", "piece of land"],
        "front.n": ["front", "forepart"],
        "hot dog.n": ["frank", "hot dog"],
        "house.n": ["House of Lords"],
        "house2.n": ["house", "dwelling"],
        "dog.v": ["chase", "dog"],
        "red.a": ["red", "reddish"],
        "large.a": ["large", "big"],
        "small.a": ["small", "little"],
        "happy.a": ["happy", "felicitous"],
        "old.a": ["old", "aged"],
        "hot.a": ["hot", "torrid"],
        "pierce.v": ["pierce", "thrust"],
    }
    above = {
        "organism.n": ["entity.n"],
        "animal.n": ["organism.n"],
        "vertebrate.n": ["animal.n"],
        "mammal.n": ["vertebrate.n"],
        "carnivore.n": ["mammal.n"],
        "canine.n": ["carnivore.n"],
        "pet.n": ["carnivore.n"],
        "dog.n": ["canine.n", "pet.n"],
        "poodle.n": ["dog.n"],
        "airedale.n": ["dog.n"],
        "person.n": ["organism.n"],
        "male.n": ["person.n"],
        "man.n": ["male.n"],
        "bachelor.n": ["man.n"],
        "boy.n": ["male.n"],
        "ball.n": ["entity.n"],
        "sphere.n": ["ball.n"],
        "orchid.n": ["plant.n"],
        "poplar.n": ["plant.n"],
        "tennis player.n": ["player.n"],
        "player.n": ["person.n"],
    }
    return Language("everyday", DictTagger(), DictWordNet(members, above))


def tagged(caption: str) -> list[str]:
    """The tags of a caption's words in that language."""
    return DictTagger().tag([[word.text for word in words_of(caption)]])[0]
