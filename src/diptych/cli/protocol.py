"""``diptych analyse protocol``: which choice of protocol would explain a printed number."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import Field, model_validator

from diptych.cli.console import next_step, progress, say, show, warn
from diptych.cli.sources import DataSpec, OutOption, SplitOption, encoded_of
from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.core.reading import map_array

if TYPE_CHECKING:
    import numpy as np

    from diptych.encoders.embeddings import EncodedCollection
    from diptych.evaluation.printed import Target
    from diptych.evaluation.variants import Exploration, RowScores
    from diptych.studies.published import EvaluatedOn

_ROWS = 12  # variants in the table


class ProtocolOptions(DataSpec, SplitOption, OutOption):
    """What was printed, and what it is computed again from."""

    source: str | None = Field(
        None,
        description="A run, embeddings, a saved encoder, a name such as hf:NAME, or scores: SCORES.npy (images, "
        "captions). Without one, the digits alone are read.",
        json_schema_extra={"argument": True, "metavar": "RUN"},
    )
    published: str | None = Field(
        None, description="The printed row, PAPER:TABLE:ROW; a part of it lists what could follow."
    )
    target: list[str] = Field(
        [], description="A printed cell instead: 'i2t R@1=64.6', 'rsum=411.62'. Repeatable."
    )
    decimals: int | None = Field(
        None, ge=0, le=4, description="Digits after the point of targets; of the recall with the most."
    )
    also: list[str] = Field(
        [],
        description="Other embeddings of the same model: another split or prompt. Repeatable.",
        json_schema_extra={"metavar": "LABEL=FOLDER"},
    )
    reranked: Path | None = Field(
        None, description="Re-ranked candidates of RUN's embeddings; those stored with them by default."
    )
    matching: list[str] = Field(
        [],
        description="Of SCORES.npy: matching scores of all pairs, or i2t=FILE and t2i=FILE, a row per query, -100 "
        "where there is none.",
        json_schema_extra={"metavar": "FILE"},
    )
    caption_image: Path | None = Field(
        None, description="Of SCORES.npy: the image row of each caption; else those of an image are in a row."
    )
    tolerance: float = Field(0.05, gt=0, lt=1, description="Relative distance that counts as explained.")
    changes: int = Field(4, ge=1, description="Up to how many changes of protocol are combined.")

    @property
    def is_matrix(self) -> bool:
        """Whether a file of scores is named instead of a run."""
        return self.source is not None and self.source.endswith(".npy")

    @model_validator(mode="after")
    def _belong_together(self) -> Self:
        if bool(self.published) == bool(self.target):
            raise UsageError(
                "both --published and --target are given" if self.published else "no printed number is given",
                "give one: --published PAPER:TABLE:ROW, or --target 'i2t R@1=64.6' for each cell",
            )
        of_run, of_scores = ("also", "reranked", "data", "split"), ("matching", "caption_image")
        if self.source is None or self.is_matrix:
            self._leave_out(of_run, "a RUN", "name the run or the embeddings first")
        if not self.is_matrix:
            self._leave_out(of_scores, "a score matrix", "name a file of scores (.npy) first")
        self.check_used()
        return self

    def _leave_out(self, names: tuple[str, ...], what: str, fix: str) -> None:
        given = [f"--{name.replace('_', '-')}" for name in names if getattr(self, name)]
        if given:
            raise UsageError(f"{' and '.join(given)} without {what}", fix)

    def printed(self, lines: list[str]) -> tuple[Target, EvaluatedOn | None]:
        """Return what was printed, and what it was measured on where that is known; ``lines`` say more."""
        from diptych.evaluation.printed import as_target, parse_target
        from diptych.studies.published.references import published_row, target_of

        if self.published is None:
            return parse_target(self.target, self.decimals), None
        row = published_row(self.published)
        found, left = target_of(row)
        lines.append(f"printed: {found.label}; {row.on.describe()}")
        if left:
            lines.append(f"left out, no measures of retrieval: {', '.join(left)}")
        return as_target(found, self.decimals), row.on


def protocol(options: ProtocolOptions) -> None:
    """Find which choice of protocol would explain a printed number, and what its digits say.

    Recall is computed again under every choice of captions, galleries, ties, re-ranked candidates, counting and
    columns. The fewest changes that bring all printed cells within tolerance are named; that is no proof of them.

    Examples:
        diptych analyse protocol embedded --published svl:table-4.2:F5
        diptych analyse protocol test --also val=val --target 'i2t R@1=77.02'
        diptych analyse protocol itc.npy --matching itm.npy --target 'i2t R@5=8'
    """
    from diptych.core.files import write_json
    from diptych.evaluation.printed import read_digits
    from diptych.evaluation.variants import explain
    from diptych.evaluation.variants.tables import printed_table, variants_table
    from diptych.report.analysis import protocol_page

    lines: list[str] = []
    wanted, on = options.printed(lines)
    source, home, found = options.source, options.out, None
    with progress():
        if source is not None:
            if options.is_matrix:
                found = _of_matrices(options, source, wanted, lines)
            else:
                found = _of_embeddings(options, source, wanted, on, lines)
            home = home or (Path(source).parent if options.is_matrix else Path(source)) / "protocol"
        digits = read_digits(wanted, None if found is None else found.galleries)
    explained = [] if found is None else explain(found)
    if found is None:
        show(printed_table(wanted))
    else:
        for line in found.warnings:
            warn(f"{line}.")
        show(variants_table(found, _ROWS))
        for line in explained[len(found.warnings) :]:
            say(line)
    signs = digits.sentences()
    say("the digits:" if signs else "the digits: nothing that other digits would not say as well")
    for line in signs:
        say(f"  {line}")
    is_alone = found is not None and found.default["k_test"] == "none"
    if is_alone and any(one.kind == "truncated" for one in digits.signs):
        more = (
            "--matching FILE" if options.is_matrix else "--reranked FOLDER (or diptych evaluate --rerank K)"
        )
        say(f"these may be re-ranked numbers: with {more}, matching scores are tried too")
    for line in lines:
        say(line)
    if home is None:
        next_step("diptych analyse protocol RUN with the same target: which protocol would explain it")
        return
    content = {"format": 1, "target": wanted.to_dict(), "of": lines, "says": explained, "digits say": signs}
    content |= {} if found is None else {"exploration": found.to_dict()}
    write_json(home / "protocol.json", {**content, "digits": digits.to_dict()})
    page = protocol_page(wanted, digits, found, name=source or "", lines=lines).save(home / "report.html")
    say(f"{'' if found is None else 'with every variant '}in {home / 'protocol.json'}")
    next_step(["open", page])


def _of_matrices(options: ProtocolOptions, source: str, wanted: Target, lines: list[str]) -> Exploration:
    """Explore files of scores; ``lines`` say which."""
    from diptych.core.fingerprint import fingerprint_file
    from diptych.evaluation.variants import as_ground_truth, explore_scores

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
    scores = _loaded(Path(source))
    home = None if options.caption_image is None else _loaded(options.caption_image)
    truth, assumed = as_ground_truth(home, scores.shape)
    sides = {side: _loaded(file) for side, file in files.items()}
    marks = ", ".join(f"{file} ({fingerprint_file(file)})" for file in (Path(source), *files.values()))
    lines.append(f"scores of {truth.n_images:,} images and {truth.n_texts:,} captions: {marks}")
    if assumed:
        lines.append(f"captions: {assumed}")
    return explore_scores(
        scores,
        truth,
        wanted,
        matching=sides.get("", sides or None),
        tolerance=options.tolerance,
        changes=options.changes,
    )


def _loaded(file: Path) -> np.ndarray:
    return map_array(file, error=DataError, fix="give a file that numpy.save wrote")


def _of_embeddings(
    options: ProtocolOptions, source: str, wanted: Target, on: EvaluatedOn | None, lines: list[str]
) -> Exploration:
    """Explore embeddings, made now where they are of a run; ``lines`` say which."""
    from diptych.evaluation.variants import Inputs, Scored, explore
    from diptych.studies.published.references import other_data

    kept = None if options.out is None else options.out / "embeddings"
    encoded, origin, folder = encoded_of(source, options, options.split, kept)
    label = origin.split or "all"
    named: dict[str, Path] = {}
    for text in options.also:
        key, _, other = text.partition("=")
        if not key or not other:
            raise UsageError(f"--also {text!r} is not LABEL=FOLDER", "e.g. --also val=embedded/val")
        if key in named or key == label:
            raise UsageError(f"--also: two sets of embeddings are called {key!r}", "give each its own label")
        named[key] = Path(other)
    sources: dict[str, Scored] = {label: _scored(label, encoded, folder, lines, options.reranked)}
    for key, path in named.items():
        more, _, place = encoded_of(str(path), DataSpec(), None)
        sources[key] = _scored(key, more, place, lines)
        if more.similarity != encoded.similarity:
            raise MismatchError(
                f"{label} is compared by {encoded.similarity}, {key} by {more.similarity}",
                "give embeddings of the same model",
            )
        encoders = (more.images.encoder, encoded.images.encoder)
        if encoders[0] != encoders[1]:
            lines.append(
                f"{key} is of another encoder or other preprocessing than {label}: {' and '.join(encoders)}"
            )
    known = {key: (one.about, one.truth.n_images) for key, one in sources.items()}
    inputs = Inputs(sources, wanted, () if on is None else other_data(on, known))
    exhaustive = min(2, options.changes)
    return explore(inputs, tolerance=options.tolerance, exhaustive=exhaustive, changes=options.changes)


def _scored(
    label: str, encoded: EncodedCollection, folder: Path, lines: list[str], reranked: Path | None = None
) -> RowScores:
    """Return a test set; ``lines`` say what it is.

    Candidates that lie in ``folder`` need not belong to it, those in ``reranked`` must.
    """
    from diptych.evaluation.evaluate_encoder import ground_truth_of
    from diptych.evaluation.variants import RowScores
    from diptych.metrics.candidates import Reranked

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
