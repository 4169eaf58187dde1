"""Exploring from files: score matrices, or embeddings with the candidates stored beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from diptych.evaluation.variants.recompute import RowScores, Scored
from diptych.evaluation.variants.settings import Inputs
from diptych.metrics.candidates import Reranked

Embedded = tuple[EncodedCollection, Origin, Path]  # embeddings, their origin and their folder


_Opened = Callable[[str, DataSpec, str | None, Path | None], Embedded]
_Warnings = Callable[[Mapping[str, tuple[Mapping[str, Any], int]]], tuple[str, ...]]


def explore_named(
    options: ProtocolOptions, target: Target, opened: _Opened, warnings: _Warnings
) -> tuple[Exploration | None, list[str]]:
    """Explore what was named, and say what it is; None where the digits alone are read.

    ``opened`` returns the embeddings of a name, data, its split and a folder for what is embedded; ``warnings``,
    from metadata and number of images of every test set, what is said before any verdict.
    """
    if options.source is None:
        return None, []
    if options.is_matrix:
        return _explore_files(Path(options.source), options, target)
    kept = None if options.out is None else options.out / "embeddings"
    first = opened(options.source, options, options.split, kept)
    return _explore_embedded(first, options, target, opened, warnings)


def _explore_files(scores: Path, options: ProtocolOptions, target: Target) -> tuple[Exploration, list[str]]:
    files: dict[str, Path] = {}
    for text in options.matching:
        side, _, file = text.partition("=")
        is_side = side in ("i2t", "t2i") and bool(file)
        files[side if is_side else ""] = Path(file if is_side else text)
    if len(files) < len(options.matching) or ("" in files and len(files) > 1):
        raise UsageError(
            f"--matching is given {len(options.matching)} times: {', '.join(options.matching)}",
            "one FILE.npy of all pairs, or i2t=FILE.npy and t2i=FILE.npy",
        )
    home = None if options.caption_image is None else _loaded(options.caption_image)
    matrix = _loaded(scores)
    truth, metadata = as_ground_truth(home, matrix.shape)
    sides = {side: _loaded(file) for side, file in files.items()}
    marks = ", ".join(f"{file} ({fingerprint_file(file)})" for file in (scores, *files.values()))
    lines = [f"scores of {truth.n_images:,} images and {truth.n_texts:,} captions: {marks}"]
    lines += [f"captions: {assumed}" for assumed in metadata.values()]
    how = options.model_dump(include={"tolerance", "changes"})
    return explore_scores(matrix, truth, target, matching=sides.get("", sides or None), **how), lines


def _loaded(file: Path) -> np.ndarray:
    return map_array(file, error=DataError, fix="give a file that numpy.save wrote")


def _explore_embedded(
    first: Embedded, options: ProtocolOptions, target: Target, opened: _Opened, warnings: _Warnings
) -> tuple[Exploration, list[str]]:
    sets = {first[1].split or "all": first}
    for text in options.also:
        key, _, place = text.partition("=")
        if not key or not place:
            raise UsageError(f"--also {text!r} is not LABEL=FOLDER", "e.g. --also val=embedded/val")
        if key in sets:
            raise UsageError(f"--also: two sets of embeddings are called {key!r}", "give each its own label")
        sets[key] = opened(place, DataSpec(), None, None)
    label, encoded = next(iter(sets)), first[0]
    lines: list[str] = []
    sources: dict[str, Scored] = {}
    for key, (more, _, folder) in sets.items():
        sources[key] = _scored(key, more, folder, lines, options.reranked if key == label else None)
        if more.similarity != encoded.similarity:
            text = f"{label} is compared by {encoded.similarity}, {key} by {more.similarity}"
            raise MismatchError(text, "give embeddings of the same model")
        encoders = (more.images.encoder, encoded.images.encoder)
        if encoders[0] != encoders[1]:
            lines.append(
                f"{key} is of another encoder or other preprocessing than {label}: {' and '.join(encoders)}"
            )
    known = {key: (one.about, one.truth.n_images) for key, one in sources.items()}
    inputs = Inputs(sources, target, warnings(known))
    how = options.model_dump(include={"tolerance", "changes"})
    return explore(inputs, **how), lines


def _scored(
    label: str, encoded: EncodedCollection, folder: Path, lines: list[str], reranked: Path | None
) -> RowScores:
    """Return a test set; ``lines`` say what it is. Candidates of ``reranked`` must belong to it, others need not."""
    about = encoded.about
    split, marks = about["split"] or "all", {"encoder": encoded.images.encoder, "data": about["data"]}
    place, candidates, more = reranked or folder / "reranked", None, ""
    if reranked is not None or Reranked.is_at(place):
        found = Reranked.open(place)
        wrong = [what for what, mine in marks.items() if found.about.get(what, mine) != mine]
        if wrong:
            is_of = f"{place} was re-ranked with {wrong[0]} {found.about[wrong[0]]}"
            message = f"{is_of}, the embeddings are of {marks[wrong[0]]}"
            if reranked is not None:
                raise MismatchError(message, "re-rank these embeddings, or name those that were")
            lines.append(f"{place} is left aside: {message}")
        else:
            candidates, more = found, f"; candidates of {place}"
    lines.append(
        f"{label}: {about['dataset']} {split}, {len(encoded.images):,} images, {len(encoded.texts):,} captions;"
        f" encoder {marks['encoder']}; data {marks['data']}{more}"
    )
    for side in (encoded.images, encoded.texts):
        side.check_finite()  # here, where the ids are known
    return RowScores(
        encoded.images.rows,
        encoded.texts.rows,
        ground_truth_of(encoded),
        similarity=encoded.similarity,
        reranked=candidates,
        about={"dataset": about["dataset"], "split": split, **marks},
        image_ids=encoded.images.ids,
    )
