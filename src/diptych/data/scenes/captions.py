"""Captions: a small grammar that states exactly the facts it records.

Every caption of a scene states the shared facts (the main object's shape and colour) and topics of
its own: one that no other caption of the scene states, and now and then one that some others state
too. Two topics of every scene are left out of all its captions.
"""

import random
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from diptych.core.errors import DataError, UsageError
from diptych.data.collection import Collection
from diptych.data.scenes.facts import (
    BACKGROUND_PHRASES,
    COLOUR_WORDS,
    COUNT_WORDS,
    MATERIAL_WORDS,
    PLACE_PHRASES,
    RELATION_INVERSE,
    RELATION_PHRASES,
    SHAPE_WORDS,
    SHARED,
    SIZE_WORDS,
    TOPICS,
)

_WITHHELD = 2
_MOST_TOPICS = 3
_REPEATED = 0.4
_OPENINGS = (
    "there is {}",
    "a picture of {}",
    "this picture shows {}",
    "here is {}",
    "you can see {}",
    "{} can be seen",
)


@dataclass(frozen=True)
class Caption:
    text: str
    states: tuple[str, ...]


def write_captions(facts: Mapping[str, str], chance: random.Random, k: int = 5) -> list[Caption]:
    captions = []
    for topics in plan_topics(facts, chance, k):
        states = (*SHARED, *(key for topic in topics for key in TOPICS[topic]))
        captions.append(Caption(write_caption(facts, states, chance), states))
    return captions


def plan_topics(facts: Mapping[str, str], chance: random.Random, k: int) -> list[list[str]]:
    """Choose what each of ``k`` captions states besides the shared facts.

    Every topic is the own of one caption, common to some captions but not to all, or withheld.
    The first captions get one own topic each, as far as topics go; at least one stays common.
    """
    if k < 1:
        raise UsageError(f"{k} captions per image were requested", "give k=1 or more")
    topics = [topic for topic, keys in TOPICS.items() if keys[0] in facts]
    chance.shuffle(topics)
    topics = topics[_WITHHELD:]
    n_own = min(k, len(topics) - 1)
    plans = [[topic] for topic in topics[:n_own]] + [[] for _ in range(k - n_own)]
    for topic in topics[n_own:]:
        room = [plan for plan in plans if len(plan) < _MOST_TOPICS]
        chosen = [plan for plan in room if not plan or chance.random() < _REPEATED]
        if len(chosen) == k and k > 1:
            chosen.pop(chance.randrange(k))
        for plan in chosen:
            plan.append(topic)
    chance.shuffle(plans)
    return plans


def write_caption(facts: Mapping[str, str], states: Container[str], chance: random.Random) -> str:
    """Write one sentence that states the facts ``states`` and no other."""
    subject = _noun_phrase("main", facts, states, chance)
    places = [
        chance.choice(phrases[facts[key]]) if key in states else ""
        for key, phrases in (("main.place", PLACE_PHRASES), ("background", BACKGROUND_PHRASES))
    ]
    front = ""
    if any(places) and chance.random() < 0.3:
        which = chance.choice([number for number, phrase in enumerate(places) if phrase])
        front, places[which] = places[which], ""
    # the place comes before other objects are named, or it would seem to be theirs
    parts = [places[0], *_others(facts, states, chance)]
    ending = ""
    if "count" in states:
        number = chance.choice(COUNT_WORDS[facts["count"]])
        manner = chance.randrange(3)
        if manner == 0:
            parts.append(f"in a group of {number}")
        else:
            ending = (f", one of {number} objects", f", {number} things in all")[manner - 1]
    phrase = " ".join(part for part in (subject, *parts, places[1]) if part) + ending
    if front:
        sentence = f"{front}, there is {phrase}"
    elif chance.random() < 0.5:
        sentence = phrase
    else:
        # "… can be seen" must follow the noun phrase, not an apposition set off by a comma
        sentence = chance.choice(_OPENINGS[:-1] if ending else _OPENINGS).format(phrase)
    return sentence[0].upper() + sentence[1:] + "."


def _noun_phrase(role: str, facts: Mapping[str, str], states: Container[str], chance: random.Random) -> str:
    adjectives = _adjectives(role, facts, states, chance)
    colour = chance.choice(COLOUR_WORDS[facts[f"{role}.colour"]])
    shape = chance.choice(SHAPE_WORDS[facts[f"{role}.shape"]])
    later = ""
    if adjectives and role == "main" and chance.random() < 0.2:
        later = f" that is {' and '.join(adjectives)}"
        adjectives = []
    words = " ".join([*adjectives, colour, shape])
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}{later}"


def _adjectives(
    role: str, facts: Mapping[str, str], states: Container[str], chance: random.Random
) -> list[str]:
    return [
        chance.choice(words[facts[key]])
        for key, words in ((f"{role}.size", SIZE_WORDS), (f"{role}.material", MATERIAL_WORDS))
        if key in states
    ]


def _others(facts: Mapping[str, str], states: Container[str], chance: random.Random) -> list[str]:
    """Return the other objects: by name with their relation, or only as 'something small'."""
    named = [role for role in ("second", "third") if f"{role}.shape" in states]
    parts = []
    if named:
        phrases = [_noun_phrase(role, facts, states, chance) for role in named]
        values = [facts[f"relation.main.{role}"] for role in named]
        if chance.random() < 0.5:
            parts.append(_joined(RELATION_PHRASES, values, phrases, chance, before=True))
        else:
            parts.append("with " + _joined(RELATION_INVERSE, values, phrases, chance, before=False))
    if "second" not in named and (unnamed := _adjectives("second", facts, states, chance)):
        parts.append(f"beside something {' and '.join(unnamed)}")
    return parts


def _joined(
    words: Mapping[str, tuple[str, ...]],
    values: Sequence[str],
    phrases: Sequence[str],
    chance: random.Random,
    *,
    before: bool,
) -> str:
    clauses = []
    for value, phrase in zip(values, phrases, strict=True):
        word = chance.choice(words[value])
        clauses.append(f"{word} {phrase}" if before else f"{phrase} {word}")
    return " and ".join(clauses)


# Finer captions of the same scenes: every caption states more facts of its image than before.
#
# What Flickr30k-FG is to Flickr30k (Chen et al., 2023), for scenes: same images, same ids, same number of
# captions, and each caption repeats its facts and adds further details of its image besides.


def finer(collection: Collection, topics: int = 2, *, seed: int = 0) -> Collection:
    """Return the same scenes with captions that state more facts.

    Args:
        seed: of what is added and how it is worded. A caption is a function of (seed, its id, its facts), so it
            is the same in the whole collection, in a split and in any order.
    """
    if topics < 1:
        raise UsageError(f"{topics} further topics per caption were requested", "give topics=1 or more")
    captions, records = [], []
    of_images, of_captions = collection.records or (), collection.caption_records or ()
    for row, image in enumerate(collection.caption_image.tolist()):
        try:
            facts, states = of_images[image]["facts"], of_captions[row]["states"]
        except (LookupError, TypeError):
            message = f"{collection.name}: caption {collection.caption_ids[row]!r} has no facts"
            raise DataError(message, "give scenes (diptych data scenes)") from None
        chance = random.Random(f"diptych finer scenes/{seed}/{collection.caption_ids[row]}")
        stated = (*states, *_added(facts, states, topics, chance))
        captions.append(write_caption(facts, stated, chance))
        records.append({**of_captions[row], "states": stated})
    return replace(
        collection,
        name=f"{collection.name}-finer",
        captions=captions,
        caption_records=records,
        notes=(*collection.notes, f"finer captions: up to {topics} further topics each, seed {seed}"),
    )


def _added(facts: Mapping[str, str], states: Container[str], topics: int, chance: random.Random) -> list[str]:
    """Return the keys of ``topics`` topics that this scene has and the caption does not state yet."""
    left = [topic for topic, keys in TOPICS.items() if keys[0] in facts and keys[0] not in states]
    chosen = chance.sample(left, min(topics, len(left)))
    return [key for topic in chosen for key in TOPICS[topic]]
