"""``diptych analyse protocol``: which choice of protocol would explain a printed number."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from diptych.cli.console import next_step, say, show, warn
from diptych.cli.sources import DataSpec, OutOption, SplitOption, encoded_of
from diptych.core.errors import UsageError
from diptych.core.options import parameter

if TYPE_CHECKING:
    from diptych.evaluation.printed import Target
    from diptych.evaluation.variants import Exploration
    from diptych.studies.published import EvaluatedOn

_ROWS = 12  # variants in the table


class ProtocolOptions(DataSpec, SplitOption, OutOption):
    """What was printed, and what it is computed again from."""

    source: str | None = parameter(
        None,
        "A run, embeddings, a saved encoder, a name such as hf:NAME, or scores: SCORES.npy (images, "
        "captions). Without one, the digits alone are read.",
        argument=True,
        metavar="RUN",
    )
    published: str | None = parameter(
        None, "The printed row, PAPER:TABLE:ROW; a part of it lists what could follow."
    )
    target: list[str] = parameter([], "A printed cell instead: 'i2t R@1=64.6', 'rsum=411.62'. Repeatable.")
    decimals: int | None = parameter(
        None, "Digits after the point of targets; of the recall with the most.", ge=0, le=4
    )
    also: list[str] = parameter(
        [], "Other embeddings of the same model: another split or prompt. Repeatable.", metavar="LABEL=FOLDER"
    )
    reranked: Path | None = parameter(
        None, "Re-ranked candidates of RUN's embeddings; those stored with them by default."
    )
    matching: list[str] = parameter(
        [],
        "Of SCORES.npy: matching scores of all pairs, or i2t=FILE and t2i=FILE, a row per query, -100 "
        "where there is none.",
        metavar="FILE",
    )
    caption_image: Path | None = parameter(
        None, "Of SCORES.npy: the image row of each caption; else those of an image are in a row."
    )
    tolerance: float = parameter(0.05, "Relative distance that counts as explained.", gt=0, lt=1)
    changes: int = parameter(4, "Up to how many changes of protocol are combined.", ge=1)

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

    def printed(self) -> tuple[Target, EvaluatedOn | None, list[str]]:
        """Return what was printed, what it was measured on where that is known, and lines about both."""
        from diptych.evaluation.printed import as_target, parse_target
        from diptych.studies.published.references import published_row, target_of

        if self.published is None:
            return parse_target(self.target, self.decimals), None, []
        row = published_row(self.published)
        found, left = target_of(row)
        lines = [f"printed: {found.label}; {row.on.describe()}"]
        lines += [f"left out, no measures of retrieval: {', '.join(left)}"] if left else []
        return as_target(found, self.decimals), row.on, lines

    def explored(self, target: Target, on: EvaluatedOn | None) -> tuple[Exploration | None, list[str]]:
        """Return what scores or embeddings say of it, and lines about them; nothing of the digits alone."""
        from diptych.evaluation.variants.files import explore_embedded, explore_files
        from diptych.studies.published.references import other_data

        if self.source is None:
            return None, []
        how = self.model_dump(include={"tolerance", "changes"})
        if self.is_matrix:
            return explore_files(Path(self.source), target, self.matching, self.caption_image, **how)
        kept = None if self.out is None else self.out / "embeddings"
        return explore_embedded(
            encoded_of(self.source, self, self.split, kept),
            target,
            self.also,
            self.reranked,
            lambda folder: encoded_of(folder, DataSpec(), None),
            (lambda known: ()) if on is None else partial(other_data, on),
            **how,
        )


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

    wanted, on, lines = options.printed()
    source, home = options.source, options.out
    found, more = options.explored(wanted, on)
    lines += more
    digits = read_digits(wanted, None if found is None else found.galleries)
    signs, explained = digits.sentences(), [] if found is None else explain(found)
    warnings = () if found is None else found.warnings
    for line in warnings:
        warn(f"{line}.")
    show(printed_table(wanted) if found is None else variants_table(found, _ROWS))
    hints = []
    is_alone = found is not None and found.default["k_test"] == "none"
    if is_alone and any(one.kind == "truncated" for one in digits.signs):
        give = (
            "--matching FILE" if options.is_matrix else "--reranked FOLDER (or diptych evaluate --rerank K)"
        )
        hints = [f"these may be re-ranked numbers: with {give}, matching scores are tried too"]
    head = "the digits:" if signs else "the digits: nothing that other digits would not say as well"
    for line in (*explained[len(warnings) :], head, *(f"  {sign}" for sign in signs), *hints, *lines):
        say(line)
    if home is None:
        next_step(
            "diptych analyse protocol RUN with the same target: which protocol would explain it"
            if found is None
            else "the same with --out FOLDER: every variant, and a page"
        )
        return
    content = {"format": 1, "target": wanted.to_dict(), "of": lines, "says": explained, "digits say": signs}
    content |= {} if found is None else {"exploration": found.to_dict()}
    write_json(home / "protocol.json", {**content, "digits": digits.to_dict()})
    page = protocol_page(wanted, digits, found, name=source or "", lines=lines).save(home / "report.html")
    say(f"{'' if found is None else 'with every variant '}in {home / 'protocol.json'}")
    next_step(["open", page])
