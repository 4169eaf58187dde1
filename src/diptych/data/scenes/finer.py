"""Finer captions of the same scenes: every caption states more facts of its picture than before.

What Flickr30k-FG is to Flickr30k (Chen et al., 2023), for scenes: same pictures, same ids, same number of
captions, and each caption says what it said and further details of its picture besides.
"""

from __future__ import annotations

import random
from collections.abc import Collection as Container
from collections.abc import Mapping
from dataclasses import replace

from diptych.core.errors import DataError, UsageError
from diptych.data.collection import Collection
from diptych.data.scenes.captions import write_caption
from diptych.data.scenes.facts import TOPICS


def finer(collection: Collection, topics: int = 2, *, seed: int = 0) -> Collection:
    """The same scenes with captions that state more facts.

    Args:
        seed: of what is added and how it is worded. A caption is a function of (seed, its id, its facts), so it
            is the same in the whole collection, in a split and in any order.
    """
    if topics < 1:
        raise UsageError(f"{topics} further topics per caption were asked for", "give topics=1 or more")
    if collection.records is None or collection.caption_records is None:
        raise DataError(
            f"{collection.name} does not say which facts its captions state", "give scenes (diptych scenes)"
        )
    captions, records = [], []
    for row, image in enumerate(collection.caption_image.tolist()):
        facts = collection.records[image].get("facts")
        states = collection.caption_records[row].get("states")
        if facts is None or states is None:
            raise DataError(
                f"{collection.name}: caption {collection.caption_ids[row]!r} has no facts",
                "give scenes (diptych scenes)",
            )
        chance = random.Random(f"diptych finer scenes/{seed}/{collection.caption_ids[row]}")
        stated = (*states, *_added(facts, states, topics, chance))
        captions.append(write_caption(facts, stated, chance))
        records.append({**collection.caption_records[row], "states": stated})
    return replace(
        collection,
        name=f"{collection.name}-finer",
        captions=captions,
        caption_records=records,
        notes=(*collection.notes, f"finer captions: up to {topics} further topics each, seed {seed}"),
    )


def _added(facts: Mapping[str, str], states: Container[str], topics: int, chance: random.Random) -> list[str]:
    """The keys of ``topics`` topics that this scene has and the caption does not state yet."""
    left = [topic for topic, keys in TOPICS.items() if keys[0] in facts and keys[0] not in states]
    chosen = chance.sample(left, min(topics, len(left)))
    return [key for topic in chosen for key in TOPICS[topic]]
