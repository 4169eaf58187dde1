"""The thesis's thirteen perturbations of 25,000 captions, against copying them.

Generated captions by default, in the built-in language of scenes. ``python -m benchmarks.perturbations --captions
FILE`` takes real ones: a text file with a caption per line, or any collection (Karpathy's JSON, COCO-FG, …), tagged
by NLTK and looked up in a WordNet (``--nltk-data``, ``--wordnet``).
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.table import Line, render
from diptych.analysis.perturbations import (
    PerturbedCaptions,
    TextPerturbation,
    choose_perturbations,
    perturb_captions,
)
from diptych.core.draws import Draws
from diptych.data.language import Language, is_word, words_of
from diptych.data.language.open import open_language

__all__ = ["measure"]

_CAPTIONS = 25_000
_AIM = 60.0
_ROUNDS = 3


def measure(captions: Sequence[str] | None = None, language: Language | None = None) -> list[Line]:
    """Seconds of all thirteen, of each by itself, and of the floor: a copy and a draw for every caption."""
    given = captions is not None
    captions = list(captions) if captions is not None else _generated(_CAPTIONS)
    language = language or open_language("scenes")
    thirteen = [one for one in choose_perturbations(["thesis"]) if isinstance(one, TextPerturbation)]
    ids = [str(number) for number in range(len(captions))]
    tagger = language.need_tagger("this benchmark")
    sentences = [[word.text for word in words_of(caption, marks=True)] for caption in captions]
    tagging = _seconds(lambda: tagger.tag(sentences), rounds=1)
    tags = _tags(sentences, tagger.tag(sentences))

    def run(one: TextPerturbation) -> Callable[[], PerturbedCaptions]:
        return lambda: perturb_captions(one, captions, ids, seed=0, language=language, tags=tags)

    floor = _seconds(lambda: _floor(captions, ids))
    each = {one.name: _seconds(run(one)) for one in thirteen}
    changed = {one.name: run(one)().n_changed / len(captions) for one in thirteen}
    how = (
        f"{len(captions):,} {'given' if given else 'generated'} captions of "
        f"{sum(len(words_of(one)) for one in captions) / len(captions):.1f} words, {language.line()}; one core"
    )
    total = sum(each.values())
    lines = [
        Line(
            f"{len(thirteen)} perturbations of {len(captions):,} captions",
            f"{total:.1f} s",
            f"≤ {_AIM:g} s",
            total <= _AIM,
            f"{how}; tagged beforehand",
        ),
        Line("tagging them, once", f"{tagging:.1f} s", "(stated)", True, "without what the cache keeps"),
        Line(
            "the floor: a copy and a draw each",
            f"{len(captions) / floor:,.0f} captions/s",
            "(stated)",
            True,
            f"fastest of {_ROUNDS} rounds, as below",
        ),
    ]
    for name, seconds in each.items():
        lines.append(
            Line(
                f"{name} ÷ the floor",
                f"{seconds / floor:.1f}× ({len(captions) / seconds:,.0f} captions/s)",
                "(stated)",
                True,
                f"{changed[name]:.1%} changed",
            )
        )
    return lines


def _generated(count: int) -> list[str]:
    """Captions of scenes that are never drawn."""
    from diptych.data.scenes.captions import write_captions
    from diptych.data.scenes.world import world_of

    return [
        caption.text
        for index in range(-(-count // 5))
        for caption in write_captions(world_of(0, "test", index).facts(), random.Random(index))
    ][:count]


def _tags(sentences: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> list[list[str]]:
    return [
        [tag for word, tag in zip(words, found, strict=True) if is_word(word)]
        for words, found in zip(sentences, tags, strict=True)
    ]


def _floor(captions: Sequence[str], ids: Sequence[str]) -> list[str]:
    return [
        caption if Draws(0, "floor", one).uniform() < 1 else ""
        for caption, one in zip(captions, ids, strict=True)
    ]


def _seconds(function: Callable[[], object], rounds: int = _ROUNDS) -> float:
    """Of the fastest round."""
    seconds = []
    for _ in range(rounds):
        begun = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


def _given(file: Path) -> list[str]:
    if file.suffix == ".txt":
        return [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    from diptych.data.readers import read_collection

    return list(read_collection(str(file)).captions)


def main() -> None:
    """Measure given captions, or generated ones, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.perturbations", description=__doc__)
    parser.add_argument("--captions", type=Path, help="a text file, or a collection")
    parser.add_argument("--wordnet", type=Path, help="a folder or file of a WordNet")
    parser.add_argument("--nltk-data", type=Path, help="a folder of NLTK data")
    given = parser.parse_args()
    if given.captions is None:
        print(render(measure(), "Generated captions."))
        return
    language = open_language("nltk", wordnet=given.wordnet, nltk_data=given.nltk_data)
    captions = _given(given.captions)[:_CAPTIONS]
    print(render(measure(captions, language), f"The captions of {given.captions.name}."))


if __name__ == "__main__":
    main()
