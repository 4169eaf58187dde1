"""Exploring from files: score matrices, or embeddings with the candidates stored next to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.core.fingerprint import fingerprint_file
from diptych.core.reading import map_array
from diptych.data.source import DataSpec
from diptych.encoders.embeddings import EncodedCollection, Origin
from diptych.evaluation.evaluate_encoder import ground_truth_of
from diptych.evaluation.options import ProtocolOptions
from diptych.evaluation.printed.target import Target
from diptych.evaluation.variants.arrays import as_ground_truth, explore_scores
from diptych.evaluation.variants.exploration import Exploration
from diptych.evaluation.variants.explore import explore
from diptych.evaluation.variants.recompute import Scored
from diptych.metrics import Reranked, similarity

Embedded = tuple[EncodedCollection, Origin, Path]  # embeddings, their origin and their folder

_Opened = Callable[[str, DataSpec, str | None, Path | None], Embedded]
_Warnings = Callable[[Mapping[str, tuple[Mapping[str, Any], int]]], tuple[str, ...]]


def explore_named(
    options: ProtocolOptions, target: Target, opened: _Opened, warnings: _Warnings, of: list[str]
) -> Exploration:
    """Explore what was named; without anything named the digits are read.

    ``opened`` returns the embeddings of a name, data, its split and a folder for what is embedded; ``warnings``,
    from metadata and number of images of every test set, what precedes any verdict; ``of`` names what was printed.
    """
    if options.source is None:
        return Exploration(target, of=of)
    how = options.model_dump(include={"tolerance", "changes"})
    if options.is_matrix:
        found, lines = _explore_files(Path(options.source), options, target, how)
        return replace(found, of=[*of, *lines])
    kept = None if options.out is None else options.out / "embeddings"
    embedded = opened(options.source, options, options.split, kept)
    sets, lines = {embedded[1].split or "all": embedded}, list[str]()
    for text in options.also:
        key, _, place = text.partition("=")
        if not key or not place:
            raise UsageError(f"--also {text!r} is not LABEL=FOLDER", "e.g. --also val=embedded/val")
        if key in sets:
            raise UsageError(f"--also: two sets of embeddings are called {key!r}", "give each its own label")
        sets[key] = opened(place, DataSpec(), None, None)
    first, sources = embedded[0], dict[str, Scored]()
    for key, (encoded, _, folder) in sets.items():
        sources[key] = _scored(key, encoded, folder, lines, None if sources else options.reranked)
        label = next(iter(sets))
        if encoded.similarity != first.similarity:
            text = f"{label} is compared by {first.similarity}, {key} by {encoded.similarity}"
            raise MismatchError(text, "give embeddings of the same model")
        encoders = encoded.images.encoder, first.images.encoder
        if encoders[0] != encoders[1]:
            text = f"{key} is of another encoder or other preprocessing than {label}"
            lines.append(f"{text}: {' and '.join(encoders)}")
    known = {key: (one.about, one.truth.n_images) for key, one in sources.items()}
    return replace(explore(sources, target, warnings=warnings(known), **how), of=[*of, *lines])


def _explore_files(
    scores: Path, options: ProtocolOptions, target: Target, how: dict[str, Any]
) -> tuple[Exploration, list[str]]:
    files: dict[str, Path] = {}
    for text in options.matching:
        side, _, file = text.partition("=")
        is_side = side in ("i2t", "t2i") and bool(file)
        files[side if is_side else ""] = Path(file if is_side else text)
    if len(files) < len(options.matching) or ("" in files and len(files) > 1):
        text = f"--matching is given {len(options.matching)} times: {', '.join(options.matching)}"
        raise UsageError(text, "one FILE.npy of all pairs, or i2t=FILE.npy and t2i=FILE.npy")
    home = None if options.caption_image is None else _loaded(options.caption_image)
    matrix = _loaded(scores)
    truth, metadata = as_ground_truth(home, matrix.shape)
    sides = {side: _loaded(file) for side, file in files.items()}
    marks = ", ".join(f"{file} ({fingerprint_file(file)})" for file in (scores, *files.values()))
    lines = [f"scores of {truth.n_images:,} images and {truth.n_texts:,} captions: {marks}"]
    lines += [f"captions: {assumed}" for assumed in metadata.values()]
    return explore_scores(matrix, truth, target, matching=sides.get("", sides or None), **how), lines


def _loaded(file: Path) -> np.ndarray:
    return map_array(file, error=DataError, fix="give a file that numpy.save wrote")


def _scored(
    label: str, encoded: EncodedCollection, folder: Path, lines: list[str], reranked: Path | None
) -> Scored:
    """Return a test set; ``lines`` say what it is. Candidates of ``reranked`` must belong to it, others need not."""
    about = encoded.about
    split, marks = about["split"] or "all", {"encoder": encoded.images.encoder, "data": about["data"]}
    place, candidates, more = reranked or folder / "reranked", None, ""
    if reranked is not None or Reranked.is_at(place):
        candidates, more = Reranked.open(place), f"; candidates of {place}"
        for what, mine in marks.items():
            if candidates is not None and (theirs := candidates.about.get(what, mine)) != mine:
                message = f"{place} was re-ranked with {what} {theirs}, the embeddings are of {mine}"
                if reranked is not None:
                    raise MismatchError(message, "re-rank these embeddings, or name those that were")
                lines.append(f"{place} is left aside: {message}")
                candidates, more = None, ""
    lines.append(
        f"{label}: {about['dataset']} {split}, {len(encoded.images):,} images, {len(encoded.texts):,} captions;"
        f" encoder {marks['encoder']}; data {marks['data']}{more}"
    )
    for side in (encoded.images, encoded.texts):
        side.check_finite()  # here, where the ids are known
    scores = similarity(encoded.similarity).source(encoded.images.rows, encoded.texts.rows)
    metadata = {"dataset": about["dataset"], "split": split, **marks}
    truth, ids = ground_truth_of(encoded), encoded.images.ids
    return Scored(scores, truth, reranked=candidates, about=metadata, image_ids=ids)
