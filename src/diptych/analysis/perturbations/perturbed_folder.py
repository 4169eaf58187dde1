"""Perturbed captions in files: one JSONL per perturbation and seed, and what was done beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diptych.analysis.perturbations.declaration import TextPerturbation, options_of
from diptych.analysis.perturbations.perturb import PerturbedCaptions, check_compat, perturb_captions
from diptych.core.errors import DataError, UsageError
from diptych.core.files import atomic_folder, write_json
from diptych.core.reading import read_text
from diptych.data.collection import Collection
from diptych.data.language import Language

PERTURBED = "perturbations.json"
"""The file that every folder of perturbed captions holds."""


@dataclass(frozen=True)
class CaptionList:
    """Captions, whatever they are from.

    Attributes:
        name: what they are of.
        captions: the texts.
        ids: one per caption.
        images: the id of each one's picture; None where there are no pictures.
    """

    name: str
    captions: Sequence[str]
    ids: Sequence[str]
    images: Sequence[str] | None = None

    @classmethod
    def of_collection(cls, collection: Collection) -> CaptionList:
        """Those of a collection."""
        images = [collection.image_ids[row] for row in collection.caption_image]
        return cls(collection.name, collection.captions, collection.caption_ids, images)

    @classmethod
    def of_lines(cls, file: Path | str) -> CaptionList:
        """Those of a text file, one per line; the number of its line, from 1, is a caption's id."""
        file = Path(file)
        text = read_text(file, error=DataError, fix="give a file with a caption per line, in UTF-8")
        lines = text.removesuffix("\n").split("\n") if text else []
        return cls(file.stem, lines, [str(number) for number in range(1, len(lines) + 1)])


def check_perturbations(
    perturbations: Sequence[TextPerturbation], options: Mapping[str, Mapping[str, Any]], compat: str
) -> None:
    """See that nothing is asked for that a perturbation cannot do, before anything is done."""
    names = [one.name for one in perturbations]
    for name in options:
        if name not in names:
            raise UsageError(f"options of {name}, which was not asked for", f"asked for: {', '.join(names)}")
    for one in perturbations:
        options_of(one, options.get(one.name))
        check_compat(one, compat)


def perturbed_over(
    captions: CaptionList,
    perturbations: Sequence[TextPerturbation],
    *,
    seeds: Sequence[int | None] = (None,),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    compat: str = "none",
    language: Language | None = None,
) -> Iterator[PerturbedCaptions]:
    """Every perturbation with every seed, one at a time; captions are tagged once, where one needs it."""
    options = options or {}
    check_perturbations(perturbations, options, compat)
    known, tags = language or Language("none"), None
    for one in perturbations:  # all that is missing is said before anything takes its time
        if "wordnet" in one.needs:
            known.need_wordnet(one.name)
    in_need = [one.name for one in perturbations if "tags" in one.needs]
    if in_need:
        from diptych.data.language.tagged import tag_captions

        tags = tag_captions(captions.captions, known.need_tagger(in_need[0]))
    for perturbation in perturbations:
        for seed in seeds:
            yield perturb_captions(
                perturbation,
                captions.captions,
                captions.ids,
                seed=seed,
                options=options.get(perturbation.name),
                compat=compat,
                language=language,
                tags=tags,
            )


def write_perturbed(
    folder: Path | str,
    captions: CaptionList,
    results: Iterator[PerturbedCaptions],
    about: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Write what :func:`perturbed_over` gives: ``NAME-SEED.jsonl`` for each, and ``perturbations.json``.

    A line is a caption: ``id``, ``image`` (null where there is none), ``caption``, ``perturbed`` and ``changed``.
    """
    images = captions.images if captions.images is not None else [None] * len(captions.ids)
    summaries = []
    with atomic_folder(folder, PERTURBED) as place:
        for result in results:
            name = f"{result.name}-{result.seed}.jsonl"
            # Half a character is written as JSON's escape, which is how Python's encoder escapes it, too.
            with (place / name).open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
                for row in zip(
                    captions.ids, images, captions.captions, result.texts, result.changed, strict=True
                ):
                    line = dict(zip(("id", "image", "caption", "perturbed"), row, strict=False))
                    file.write(json.dumps(line | {"changed": bool(row[-1])}, ensure_ascii=False) + "\n")
            summaries.append({"file": name, **result.to_dict()})
        said = {"captions of": captions.name, "captions": len(captions.ids), **(about or {})}
        write_json(place / PERTURBED, {**said, "perturbations": summaries})
    return [Path(folder) / summary["file"] for summary in summaries]
