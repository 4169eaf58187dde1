"""``diptych analyse protocol``: which choice of protocol would explain a printed number."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import console, next_step, progress, say, show
from diptych.cli.sources import (
    Data,
    DataChoice,
    Images,
    OutFolder,
    ReaderName,
    ReaderOptions,
    SkipBadImages,
    Split,
    encoded_of,
)
from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.core.reading import map_array

if TYPE_CHECKING:
    import numpy as np

    from diptych.encoders.embeddings import EncodedCollection
    from diptych.evaluation.printed import Target
    from diptych.evaluation.variants import Exploration, RowScores, Scored
    from diptych.metrics.candidates import Reranked
    from diptych.studies.published import EvaluatedOn


_ENDING = ".npy"
_WHOLE = ""  # one matrix of both directions
_FORM = "one FILE.npy of all pairs, or i2t=FILE.npy and t2i=FILE.npy"


def is_matrix(source: str | None) -> bool:
    """Whether a file of scores is named instead of a run."""
    return source is not None and source.endswith(_ENDING)


def matrices_of(
    source: str, matching: list[str] | None, caption_image: Path | None, out: Path | None
) -> tuple[dict[str, Scored], list[str], tuple[str, ...], Path]:
    """A test set by its label, what the numbers depend on, warnings, and where results go."""
    from diptych.core.fingerprint import fingerprint_file
    from diptych.evaluation.variants import MatrixScores, already_cut, as_ground_truth, as_matching

    files = _matching_files(matching or [])
    scores = _loaded(Path(source))
    home = None if caption_image is None else _loaded(caption_image)
    truth, assumed = as_ground_truth(home, scores.shape)
    sides = {side: _loaded(file) for side, file in files.items()}
    whole, reranked = as_matching(sides.get(_WHOLE, sides or None), scores, False)
    found: Scored = MatrixScores(scores, truth, matching=whole, reranked=reranked)
    marks = ", ".join(f"{file} ({fingerprint_file(file)})" for file in (Path(source), *files.values()))
    lines = [f"scores of {truth.n_images:,} images and {truth.n_texts:,} captions: {marks}"]
    if assumed:
        lines.append(f"captions: {assumed}")
    return {"given": found}, lines, already_cut(scores), out or Path(source).parent / "protocol"


def _matching_files(given: list[str]) -> dict[str, Path]:
    found = {}
    for text in given:
        side, equals, file = text.partition("=")
        is_side = bool(equals) and side in ("i2t", "t2i")
        found[side if is_side else _WHOLE] = Path(file if is_side else text)
    if len(found) != len(given) or (_WHOLE in found and len(found) > 1):
        raise UsageError(f"--matching is given {len(given)} times: {', '.join(given)}", _FORM)
    return found


def _loaded(file: Path) -> np.ndarray:
    return map_array(file, error=DataError, fix="give a file that numpy.save wrote")


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
    from diptych.metrics.candidates import Reranked

    return folder / "reranked" if Reranked.is_at(folder / "reranked") else None


def _source(
    label: str,
    encoded: EncodedCollection,
    candidates: Path | None,
    lines: list[str],
    asked: Path | None = None,
) -> RowScores:
    """A test set; what it is goes to ``lines``. Candidates nobody asked for need not belong to it."""
    from diptych.evaluation.evaluate_encoder import ground_truth_of
    from diptych.evaluation.variants import RowScores

    about = encoded.about
    marks = {"encoder": encoded.images.encoder, "data": about["data"]}
    try:
        stored = None if candidates is None else _stored(candidates, marks)
    except MismatchError as error:
        if asked is not None:
            raise
        lines.append(f"{candidates} is left aside: {error.message}")
        candidates = stored = None
    split = about["split"] or "all"
    more = "" if candidates is None else f"; candidates of {candidates}"
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
        reranked=stored,
        about={"dataset": about["dataset"], "split": split, **marks},
        image_ids=encoded.images.ids,
    )


def _stored(folder: Path, marks: dict[str, str]) -> Reranked:
    """Candidates that belong to the embeddings."""
    from diptych.metrics.candidates import Reranked

    found = Reranked.open(folder)
    for what, mine in marks.items():
        theirs = found.about.get(what, mine)
        if theirs != mine:
            raise MismatchError(
                f"{folder} was re-ranked with {what} {theirs}, the embeddings are of {mine}",
                "re-rank these embeddings, or name those that were",
            )
    return found


_ROWS = 12  # variants in the table


def protocol(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="A run, a folder that diptych embed wrote, a saved encoder, or a name such as hf:NAME; or a file of "
            "scores, SCORES.npy (images, captions). Without one, the digits alone are read.",
            show_default=False,
        ),
    ] = None,
    published: Annotated[
        str | None,
        typer.Option(
            help="The printed row: PAPER:TABLE:ROW, e.g. 'reproducibility:table-2.1:Repr. X-VLM, COCO'; a part "
            "of it lists what could follow.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="A printed cell instead: 'i2t R@1=64.6', 'txt_r1=64.6', 'rsum=411.62'. Repeatable.",
            show_default=False,
        ),
    ] = None,
    decimals: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=4,
            help="Digits after the point of every target; those of the recall with the most by default.",
            show_default=False,
        ),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            help="LABEL=FOLDER: other embeddings of the same model: another split, text cut or prompt. Repeatable.",
            show_default=False,
        ),
    ] = None,
    reranked: Annotated[
        Path | None,
        typer.Option(
            help="Re-ranked candidates of RUN's embeddings; by default those that diptych evaluate --rerank "
            "stored with them.",
            show_default=False,
        ),
    ] = None,
    matching: Annotated[
        list[str] | None,
        typer.Option(
            help="Beside SCORES.npy: FILE.npy of matching scores of all pairs; or i2t=FILE.npy and t2i=FILE.npy, "
            "one row per query, -100 where nothing was scored.",
            show_default=False,
        ),
    ] = None,
    caption_image: Annotated[
        Path | None,
        typer.Option(
            help="Beside SCORES.npy: the image row of each caption, FILE.npy; by default the captions of an image "
            "stand next to each other.",
            show_default=False,
        ),
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Relative distance that counts as explained.")] = 0.05,
    changes: Annotated[
        int, typer.Option(min=1, help="Up to how many changes of protocol are combined; two of any kind.")
    ] = 4,
    data: Data = None,
    split: Split = None,
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    skip_bad_images: SkipBadImages = False,
    out: OutFolder = None,
) -> None:
    """Say which choice of protocol would explain a printed number, and what its digits give away.

    Recall is computed again from stored embeddings under every choice of captions, galleries, tie rule,
    number of re-ranked candidates, counting and columns, and the fewest changes that bring all printed cells
    within tolerance are named. That a change explains a number is no proof that it was made.

    Examples:

      [bold]diptych analyse protocol xvlm/embeddings --published 'reproducibility:table-2.1:Repr. X-VLM, COCO'[/bold]

      [bold]diptych analyse protocol clip/test --also val=clip/val --target 'i2t R@1=77.02' --target 't2i R@1=74.95'[/bold]

      [bold]diptych analyse protocol itc.npy --matching itm.npy --target 'i2t R@5=84.48' --target 'i2t R@10=84.50'[/bold]

      [bold]diptych analyse protocol --published 'reproducibility:table-2.1:Repr. CLIP, Flickr30k'[/bold]
    """
    from diptych.core.files import write_json
    from diptych.evaluation.printed import read_digits
    from diptych.evaluation.variants import Inputs, explain, explore
    from diptych.evaluation.variants.tables import printed_table, variants_table
    from diptych.report.analysis import protocol_page

    wanted, about, on = printed_of(published, target, decimals)
    found, name, lines, home = None, "", list(about), out
    choice = DataChoice(data, images, reader, reader_option, skip_bad_images)
    check_alone(source, also, reranked, choice, split, matching, caption_image)
    with progress():
        if source is not None:
            if is_matrix(source):
                sources, said, warnings, home = matrices_of(source, matching, caption_image, out)
            else:
                sources, said, home = sources_of(source, choice, split, also or [], reranked, out)
                warnings = warnings_of(on, sources)
            lines += said
            name = source
            inputs = Inputs(sources, wanted, warnings)
            found = explore(inputs, tolerance=tolerance, exhaustive=min(2, changes), changes=changes)
        digits = read_digits(wanted, None if found is None else found.galleries)
    if found is not None:
        _warn(found)
        show(variants_table(found, _ROWS))
        for line in explain(found)[len(found.warnings) :]:
            say(line)
    else:
        show(printed_table(wanted))
    signs = digits.sentences()
    say("the digits:" if signs else "the digits: nothing that other digits would not say as well")
    for line in signs:
        say(f"  {line}")
    is_alone = found is not None and found.default["k_test"] == "none"
    if is_alone and any(one.kind == "truncated" for one in digits.signs):
        option = (
            "--matching FILE" if is_matrix(source) else "--reranked FOLDER (or diptych evaluate --rerank K)"
        )
        say(f"these may be re-ranked numbers: with {option}, matching scores are tried too")
    for line in lines:
        say(line)
    if home is None:
        next_step("diptych analyse protocol RUN with the same target: which protocol would explain it")
        return
    content = {"format": 1, "target": wanted.to_dict(), "of": lines}
    content |= {"says": [] if found is None else explain(found), "digits say": signs}
    content |= {} if found is None else {"exploration": found.to_dict()}
    write_json(home / "protocol.json", {**content, "digits": digits.to_dict()})
    page = protocol_page(wanted, digits, found, name=name, lines=lines).save(home / "report.html")
    say(f"{'' if found is None else 'with every variant '}in {home / 'protocol.json'}")
    next_step(["open", page])


def _warn(found: Exploration) -> None:
    from rich.text import Text

    for line in found.warnings:
        console().print(Text("warning: ", style="bold red").append(f"{line}.", style="bold not red"))
