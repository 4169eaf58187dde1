"""Perturb captions: every one is changed, or counted with the reason why it was not; one by one, or into files."""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product, repeat
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from diptych.analysis.perturbations.caption import Caption, Unchanged
from diptych.analysis.perturbations.declaration import (
    PERTURBATIONS,
    TextPerturbation,
    choose_perturbations,
    options_by_name,
    options_of,
)
from diptych.core.context import track
from diptych.core.draws import Draws
from diptych.core.errors import DataError, UsageError
from diptych.core.files import atomic_folder, write_json
from diptych.core.options import Options, parameter
from diptych.core.reading import read_text
from diptych.core.table import Table
from diptych.data.collection import Collection
from diptych.data.language import Language
from diptych.data.language.open import WORDNET_VARIABLE, LanguageSpec, open_language
from diptych.data.source import OutOption, PartSpec

SAME = "the result is the caption itself"
COMPATS = ("none", "published")
PUBLISHED_SEED = 42  # the seed that the published code begins with anew for every caption
PERTURBED = "perturbations.json"  # the file that every folder of perturbed captions holds
_LONG = 160  # characters of a caption that a table shows


@dataclass(frozen=True, eq=False)
class PerturbedCaptions:
    name: str  # the perturbation's
    seed: int  # of its draws
    compat: str
    options: Mapping[str, Any]  # what it was run with
    texts: list[str]  # as before where one is unchanged
    changed: np.ndarray  # (n,) booleans
    reasons: dict[str, int]  # how many stayed as they were, by reason, most first

    @property
    def n_changed(self) -> int:
        return int(self.changed.sum())


def usual_seed(compat: str) -> int:
    return PUBLISHED_SEED if compat == "published" else 0


def _settings_of(perturbation: TextPerturbation, options: Mapping[str, Any] | None, compat: str) -> Options:
    if compat not in COMPATS:
        raise UsageError(f"compat is {compat!r}", f"one of {', '.join(COMPATS)}")
    if compat == "published" and perturbation.published is None:
        raise UsageError(f"{perturbation.name} has no published form", "leave compat out")
    return options_of(perturbation, options)


def _tags(
    perturbations: Sequence[TextPerturbation],
    captions: Sequence[str],
    language: Language | None,
    tags: Sequence[Sequence[str]] | None = None,
) -> Sequence[Sequence[str]] | None:
    """Tag captions, where a perturbation needs tags and none are given; what any needs of the language is checked."""
    known = language or Language("none")
    for one in perturbations:
        if "wordnet" in one.needs:
            known.need_wordnet(one.name)
    tagging = [one.name for one in perturbations if "tags" in one.needs]
    if tags is not None or not tagging:
        return tags
    from diptych.data.language.tagged import tag_captions

    return tag_captions(captions, known.need_tagger(tagging[0]))


def perturb_captions(
    perturbation: TextPerturbation,
    captions: Sequence[str],
    ids: Sequence[str],
    *,
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
    compat: str = "none",
    language: Language | None = None,
    tags: Sequence[Sequence[str]] | None = None,
) -> PerturbedCaptions:
    """Change every caption that can be changed; the result is a function of (seed, id, caption) only.

    ``language`` is a tagger and a WordNet, where the perturbation needs them; ``tags`` are those of every
    caption's words, where they are there already (:func:`diptych.data.language.tagged.tag_captions`).
    """
    sizes = {len(captions), len(ids), len(captions if tags is None else tags)}
    if len(sizes) > 1:
        given = "no" if tags is None else f"{len(tags):,}"
        raise DataError(f"{len(captions):,} captions, {len(ids):,} ids and {given} tagged sentences")
    settings = _settings_of(perturbation, options, compat)
    published = perturbation.published if compat == "published" else None
    seed = seed if seed is not None else usual_seed(compat)
    tags = _tags([perturbation], captions, language, tags)
    texts, changed = list(captions), np.zeros(len(captions), dtype=bool)
    reasons: Counter[str] = Counter()
    for place in track(range(len(captions)), perturbation.name, unit="captions"):
        caption = Caption(captions[place], ids[place], None if tags is None else tags[place], language)
        try:
            if published is None:
                text = perturbation.apply(caption, Draws(seed, perturbation.name, ids[place]), settings)
            else:
                text = published(caption, seed, settings)
        except Unchanged as outcome:
            reasons[str(outcome)] += 1
            continue
        if text == caption.text:
            reasons[SAME] += 1
        else:
            texts[place], changed[place] = text, True
    used, why = settings.model_dump(), dict(reasons.most_common())
    return PerturbedCaptions(perturbation.name, seed, compat, used, texts, changed, why)


def perturb_caption(
    caption: str,
    name: str,
    *,
    id: str = "",
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
    compat: str = "none",
    language: Language | None = None,
) -> str:
    """Return one caption changed, or the caption itself where there is nothing to change.

    Draws depend on ``id``. The language is by default what :func:`diptych.data.language.open.open_language` finds.

    >>> perturb_caption("Two small dogs run across wet grass", "character-swap", compat="published")
    'Two small dogs run across wet grsas'
    """
    perturbation = PERTURBATIONS.get(name)
    if not isinstance(perturbation, TextPerturbation):
        raise UsageError(f"{name} changes images, not captions", "perturbed_pictures(…) changes images")
    if language is None and perturbation.needs:
        language = _language_at_hand(os.environ.get("NLTK_DATA"), os.environ.get(WORDNET_VARIABLE))
    given: dict[str, Any] = {"seed": seed, "options": options, "compat": compat, "language": language}
    return perturb_captions(perturbation, [caption], [id], **given).texts[0]


@lru_cache(maxsize=1)
def _language_at_hand(nltk_data: str | None, wordnet: str | None) -> Language:
    return open_language()


@dataclass(frozen=True)
class CaptionList:
    name: str  # what they are of
    captions: Sequence[str]
    ids: Sequence[str]  # one per caption
    images: Sequence[str] | None = None  # the id of each one's image; None where there are no images

    @classmethod
    def of_collection(cls, collection: Collection) -> Self:
        images = [collection.image_ids[row] for row in collection.caption_image]
        return cls(collection.name, collection.captions, collection.caption_ids, images)

    @classmethod
    def of_lines(cls, file: Path | str) -> Self:
        """Read captions of a text file, one per line; the number of its line, from 1, is a caption's id."""
        file = Path(file)
        text = read_text(file, error=DataError, fix="give a file with a caption per line, in UTF-8")
        lines = text.removesuffix("\n").split("\n") if text else []
        return cls(file.stem, lines, [str(number) for number in range(1, len(lines) + 1)])


class PerturbOptions(LanguageSpec, PartSpec, OutOption):
    """Options of perturbing captions."""

    data: Path | None = parameter(
        None, "A dataset: folder or file; or a .txt file with a caption per line.", argument=True
    )
    perturb: list[str] = parameter(
        [],
        "Perturbations or groups of them, text or thesis (its thirteen). Repeatable, or with commas.",
        default="thesis",
        names="diptych.analysis.perturbations:PERTURBATIONS",
    )
    list_all: bool = parameter(False, "Show every perturbation and stop.", "--list")
    set_: list[str] = parameter([], "NAME.KEY=VALUE for a perturbation. Repeatable.", "--set")
    seeds: int = parameter(1, "How often each is drawn anew.", ge=1)
    seed: int | None = parameter(None, "The first seed.", ge=0, default="0, or 42 with --compat published")
    compat: Literal["none", "published"] = parameter(
        "none", "published: as the thesis's code, with its faults."
    )
    examples: int = parameter(2, "Of each perturbation, to show.", "--examples", "-n", ge=0)

    @cached_property
    def chosen(self) -> tuple[list[TextPerturbation], dict[str, list[str]]]:
        names = [name.strip() for given in self.perturb or ["thesis"] for name in given.split(",")]
        every = choose_perturbations(names)
        texts = [one for one in every if isinstance(one, TextPerturbation)]
        pictures = [one.name for one in every if not isinstance(one, TextPerturbation)]
        if not texts:
            what = f"{', '.join(pictures)}: of images, not of captions"
            raise UsageError(what, "for example --perturb text")
        possible = [one for one in texts if self.compat == "none" or one.published or one.name in names]
        possible = possible or texts  # none has a published form, which is an error
        known, given = [one.name for one in possible], self.options
        if others := sorted(given.keys() - known):
            what = f"options of {', '.join(others)}, which was not requested"
            raise UsageError(what, f"requested: {', '.join(known)}")
        for one in possible:
            _settings_of(one, given.get(one.name), self.compat)
        unpublished = [one.name for one in texts if one not in possible]
        left_out = {"they change images": pictures, "they have no published form": unpublished}
        return possible, {why: names for why, names in left_out.items() if names}

    @property
    def options(self) -> dict[str, dict[str, Any]]:
        return options_by_name(self.set_)


def perturb_list(
    captions: CaptionList, options: PerturbOptions, language: Language | None = None, part: str | None = None
) -> tuple[list[Table | str], list[Path]]:
    """Perturb captions, of ``part`` of a collection or of a file; return what is shown, and the files written.

    With ``out`` there is ``NAME-SEED.jsonl`` for each perturbation and seed, and ``perturbations.json``. A line is a
    caption: ``id``, ``image`` (null where there is none), ``caption``, ``perturbed`` and ``changed``.
    """
    chosen, left_out = options.chosen
    first = usual_seed(options.compat) if options.seed is None else options.seed
    tags = _tags(chosen, captions.captions, language)
    counts, examples, written = list[tuple[str, ...]](), list[tuple[str, ...]](), list[dict[str, Any]]()
    line, size = None if language is None else language.line(), len(captions.ids)
    with nullcontext() if options.out is None else atomic_folder(options.out, PERTURBED) as folder:
        for one, seed in product(chosen, range(first, first + options.seeds)):
            found = perturb_captions(
                one,
                captions.captions,
                captions.ids,
                seed=seed,
                options=options.options.get(one.name),
                compat=options.compat,
                language=language,
                tags=tags,
            )
            why = "; ".join(f"{reason} {count:,}" for reason, count in found.reasons.items())
            counts.append((one.name, str(seed), f"{found.n_changed:,}", f"{size:,}", why))
            for row in found.changed.nonzero()[0][: options.examples if seed == first else 0]:
                examples.append((one.name, *_around_change(captions.captions[row], found.texts[row])))
            if folder is not None:
                written.append(
                    {
                        "file": _write(folder, captions, found),
                        "name": one.name,
                        "seed": seed,
                        "compat": options.compat,
                        "options": found.options,
                        "captions": size,
                        "changed": found.n_changed,
                        "unchanged": found.reasons,
                    }
                )
        if folder is not None:
            about = {"captions of": captions.name, "captions": size, "split": part, "compat": options.compat}
            write_json(folder / PERTURBED, {**about, "language": line, "perturbations": written})
    facts = [f"{captions.name}{'' if part is None else f', {part}'}: {size:,} captions"]
    facts += [] if options.compat == "none" else [f"compat {options.compat}"]
    facts += [] if line is None else [f"language {line}"]
    reasons = [f"left out, for {why}: {', '.join(which)}" for why, which in left_out.items()]
    tables = [Table.of("", "", ("perturbation", "before", "after"), examples)] if examples else []
    columns = ("perturbation", "seed", "changed", "of", "unchanged, and why")
    files = [] if options.out is None else [options.out / one["file"] for one in written]
    return [*tables, Table.of("", "", columns, counts), "; ".join(facts), *reasons], files


def _write(folder: Path, captions: CaptionList, found: PerturbedCaptions) -> str:
    name, images = f"{found.name}-{found.seed}.jsonl", captions.images or repeat(None, len(captions.ids))
    rows = zip(captions.ids, images, captions.captions, found.texts, found.changed.tolist(), strict=True)
    # Half a character is written as JSON's escape, which is how Python's encoder escapes it, too.
    with (folder / name).open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        for row in rows:
            line = dict(zip(("id", "image", "caption", "perturbed", "changed"), row, strict=True))
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return name


def _around_change(before: str, after: str) -> tuple[str, str]:
    short = min(len(before), len(after))
    first = next((place for place in range(short) if before[place] != after[place]), short)
    start = max(0, first - _LONG // 3) if max(len(before), len(after)) > _LONG else 0
    shown = slice(start, start + _LONG)
    lead, tails = "…" * (start > 0), ["…" * (len(text) > shown.stop) for text in (before, after)]
    return lead + before[shown] + tails[0], lead + after[shown] + tails[1]
