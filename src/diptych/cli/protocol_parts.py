"""From the options of ``diptych protocol`` to what was printed and to test sets with scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from diptych.cli.protocol_matrices import is_matrix
from diptych.cli.sources import DataChoice, encoded_of
from diptych.core.errors import MismatchError, UsageError

if TYPE_CHECKING:
    from diptych.encoders.encoded import EncodedCollection
    from diptych.evaluation.printed import Target
    from diptych.evaluation.variants import RowScores, Scored
    from diptych.metrics.candidates import Reranked
    from diptych.studies.published import EvaluatedOn


def printed_of(
    published: str | None, target: list[str] | None, decimals: int | None
) -> tuple[Target, tuple[str, ...], EvaluatedOn | None]:
    """What was printed, what is to be said about it, and what it was measured on where that is known."""
    from diptych.evaluation.printed import parse_target

    if (published is None) == (target is None):
        raise UsageError(
            "both --published and --target are given" if published else "no printed number is given",
            "give one: --published PAPER:TABLE:ROW, or --target 'i2t R@1=64.6' for each cell",
        )
    if published is None:
        return parse_target(target or [], decimals), (), None
    from diptych.evaluation.printed import as_target
    from diptych.studies.published.references import published_row, target_of

    row = published_row(published)
    found, left = target_of(row)
    found = as_target(found, decimals)
    lines = [f"printed: {found.label}; {row.on.describe()}"]
    if left:
        lines.append(f"left out, no measures of retrieval: {', '.join(left)}")
    return found, tuple(lines), row.on


def warnings_of(on: EvaluatedOn | None, sources: dict[str, Scored]) -> tuple[str, ...]:
    """What has to be said where the data are not those of the printed numbers, as far as they say what they are."""
    from diptych.studies.published.references import other_data

    given = {label: (one.about, one.truth.n_images) for label, one in sources.items()}
    if on is None or not all("dataset" in about for about, _ in given.values()):
        return ()
    return other_data(on, given)


def check_alone(
    source: str | None,
    also: list[str] | None,
    reranked: Path | None,
    choice: DataChoice,
    split: str | None,
    matching: list[str] | None,
    caption_image: Path | None,
) -> None:
    """Options about embeddings need some, options about matrices need one."""
    of_rows = {
        "--also": bool(also),
        "--reranked": reranked is not None,
        "--data": choice.data is not None,
        "--split": split is not None,
    }
    of_matrices = {"--matching": bool(matching), "--caption-image": caption_image is not None}
    for given, wanted, fix in (
        (
            of_rows,
            source is not None and not is_matrix(source),
            "a RUN: name the run or the embeddings first",
        ),
        (of_matrices, is_matrix(source), "a score matrix: name a file of scores (.npy) first"),
    ):
        named = " and ".join(name for name, there in given.items() if there)
        if named and not wanted:
            what, _, hint = fix.partition(": ")
            raise UsageError(f"{named} without {what}", hint)


def sources_of(
    source: str,
    choice: DataChoice,
    split: str | None,
    also: list[str],
    reranked: Path | None,
    out: Path | None,
) -> tuple[dict[str, Scored], list[str], Path]:
    """Test sets by label, what the numbers depend on, and where results go."""
    embeddings = None if out is None else out / "embeddings"
    encoded, origin, folder = encoded_of(source, choice, split, embeddings)
    label = origin.split or "all"
    named: dict[str, Path] = {}
    for text in also:
        key, equals, other = text.partition("=")
        if not equals or not key or not other:
            raise UsageError(f"--also {text!r} is not LABEL=FOLDER", "e.g. --also val=embedded/val")
        if key in named or key == label:
            raise UsageError(f"--also: two sets of embeddings are called {key!r}", "give each its own label")
        named[key] = Path(other)
    lines: list[str] = []
    sources: dict[str, Scored] = {
        label: _source(label, encoded, reranked or _beside(folder), lines, reranked)
    }
    for key, path in named.items():
        other_encoded, _, other_folder = encoded_of(str(path), DataChoice(), None)
        sources[key] = _source(key, other_encoded, _beside(other_folder), lines)
        if other_encoded.similarity != encoded.similarity:
            raise MismatchError(
                f"{label} is compared by {encoded.similarity}, {key} by {other_encoded.similarity}",
                "give embeddings of the same model",
            )
        if other_encoded.images.encoder != encoded.images.encoder:
            lines.append(
                f"{key} is of another encoder or other preprocessing than {label}: {other_encoded.images.encoder} "
                f"and {encoded.images.encoder}"
            )
    base = folder if (folder / "origin.json").is_file() and folder == Path(source) else Path(source)
    return sources, lines, out or base / "protocol"


def _beside(folder: Path) -> Path | None:
    """The candidates that ``diptych evaluate --rerank`` stored with embeddings; None where it did not."""
    from diptych.metrics.candidates import MARKER

    return folder / "reranked" if (folder / "reranked" / MARKER).is_file() else None


def _source(
    label: str,
    encoded: EncodedCollection,
    candidates: Path | None,
    lines: list[str],
    asked: Path | None = None,
) -> RowScores:
    """A test set; what it is goes to ``lines``. Candidates nobody asked for need not belong to it."""
    try:
        stored = _stored(candidates, encoded)
    except MismatchError as error:
        if asked is not None:
            raise
        lines.append(f"{candidates} is left aside: {error.message}")
        candidates = stored = None
    lines.append(_line(label, encoded, candidates))
    return _scored(encoded, stored)


def _stored(folder: Path | None, encoded: EncodedCollection) -> Reranked | None:
    """Candidates that belong to the embeddings."""
    if folder is None:
        return None
    from diptych.metrics.candidates import Reranked

    found = Reranked.open(folder)
    for what, mine in (("encoder", encoded.images.encoder), ("data", encoded.about["data"])):
        theirs = found.about.get(what, mine)
        if theirs != mine:
            raise MismatchError(
                f"{folder} was re-ranked with {what} {theirs}, the embeddings are of {mine}",
                "re-rank these embeddings, or name those that were",
            )
    return found


def _scored(encoded: EncodedCollection, reranked: Reranked | None) -> RowScores:
    from diptych.evaluation.evaluate_encoder import ground_truth_of
    from diptych.evaluation.variants import RowScores

    for side in (encoded.images, encoded.texts):
        side.check_finite()  # here, where the ids are known
    about = {
        "dataset": encoded.about["dataset"],
        "split": encoded.about["split"] or "all",
        "encoder": encoded.images.encoder,
        "data": encoded.about["data"],
    }
    return RowScores(
        encoded.images.rows,
        encoded.texts.rows,
        ground_truth_of(encoded),
        similarity=encoded.similarity,
        reranked=reranked,
        about=about,
        image_ids=encoded.images.ids,
    )


def _line(label: str, encoded: EncodedCollection, reranked: Path | None) -> str:
    more = "" if reranked is None else f"; candidates of {reranked}"
    return (
        f"{label}: {encoded.about['dataset']} {encoded.about['split'] or 'all'}, {len(encoded.images):,} images, "
        f"{len(encoded.texts):,} captions; encoder {encoded.images.encoder}; data {encoded.about['data']}{more}"
    )
