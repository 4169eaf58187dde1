"""From the options of ``diptych protocol`` to what was printed and to test sets with scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.cli.sources import DataChoice, encoded_of
from diptych.core.errors import MismatchError, UsageError

if TYPE_CHECKING:
    from diptych.encoders.encode import EncodedCollection
    from diptych.evaluation.printed import Target
    from diptych.evaluation.reranked import Reranked
    from diptych.evaluation.variants import RowScores, Scored

__all__ = ["check_alone", "printed_of", "sources_of"]


def printed_of(
    published: str | None, target: list[str] | None, decimals: int | None
) -> tuple[Target, tuple[str, ...]]:
    """What was printed, and what is to be said about it."""
    from diptych.evaluation.printed import parse_target

    if (published is None) == (target is None):
        raise UsageError(
            "both --published and --target are given" if published else "no printed number is given",
            "give one: --published PAPER:TABLE:ROW, or --target 'i2t R@1=64.6' for each cell",
        )
    if published is None:
        return parse_target(target or [], decimals), ()
    from diptych.evaluation.printed import Printed
    from diptych.studies.published.references import published_row, target_of

    row = published_row(published)
    found, left = target_of(row)
    if decimals is not None:
        cells = {name: Printed(cell.value, decimals) for name, cell in found.cells.items()}
        found = replace(found, cells=cells)
    lines = [f"printed: {found.label}; {row.on.describe()}"]
    if left:
        lines.append(f"left out, no measures of retrieval: {', '.join(left)}")
    return found, tuple(lines)


def check_alone(also: list[str] | None, reranked: Path | None, choice: DataChoice, split: str | None) -> None:
    """Options about embeddings need some."""
    given = {
        "--also": bool(also),
        "--reranked": reranked is not None,
        "--data": choice.data is not None,
        "--split": split is not None,
    }
    if any(given.values()):
        named = " and ".join(name for name, there in given.items() if there)
        raise UsageError(f"{named} without a RUN", "name the run or the embeddings first")


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
    sources: dict[str, Scored] = {label: _scored(encoded, _stored(reranked, encoded))}
    lines = [_line(label, encoded, reranked)]
    for key, path in named.items():
        other_encoded, _, _ = encoded_of(str(path), DataChoice(), None)
        sources[key] = _scored(other_encoded, None)
        lines.append(_line(key, other_encoded, None))
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


def _stored(folder: Path | None, encoded: EncodedCollection) -> Reranked | None:
    """Candidates that belong to the embeddings.

    Raises:
        MismatchError: they were made with another encoder or of other data.
    """
    if folder is None:
        return None
    from diptych.evaluation.reranked import Reranked

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
    from diptych.evaluation.variants import RowScores
    from diptych.training.testing import ground_truth_of

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
    )


def _line(label: str, encoded: EncodedCollection, reranked: Path | None) -> str:
    more = "" if reranked is None else f"; candidates of {reranked}"
    return (
        f"{label}: {encoded.about['dataset']} {encoded.about['split'] or 'all'}, {len(encoded.images):,} images, "
        f"{len(encoded.texts):,} captions; encoder {encoded.images.encoder}; data {encoded.about['data']}{more}"
    )
