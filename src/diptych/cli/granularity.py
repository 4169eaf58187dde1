"""``diptych analyse granularity``: how much captions say and how specifically, of one collection or of two compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sources import (
    CaptionsOption,
    LanguageSpec,
    OutOption,
    SamplesOption,
    SeedOption,
    SplitOption,
)
from diptych.cli.study_data import DataChoices
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.data.collection import Collection


class GranularityOptions(
    DataChoices, CaptionsOption, SplitOption, LanguageSpec, SamplesOption, SeedOption, OutOption
):
    """What is counted, of which captions."""

    data: list[str] = Field(
        description="A dataset: folder or file, or NAME=DATASET; and another one to compare it with.",
        json_schema_extra={"argument": True, "metavar": "COLLECTION"},
    )
    feature: list[str] = Field([], description="A feature. Repeatable.", json_schema_extra={"default": "all"})
    compat: Literal["none", "published"] = Field(
        "none", description="published: as the numbers of thesis Table 5.1 are counted."
    )
    pairing: Literal["auto", "images", "none"] = Field(
        "auto",
        description="By image: auto, where one collection has all of the other's; images, those in common.",
    )
    examples: int = Field(
        2,
        ge=0,
        le=5,
        description="Captions at each extreme, to show.",
        json_schema_extra={"flags": ["--examples", "-n"]},
    )

    def parts(self) -> list[tuple[Collection, str]]:
        """Return what is measured of each collection, under the name that was given, and its split's name."""
        from dataclasses import replace

        from diptych.data.captions import choose_captions
        from diptych.encoders.embeddings import read_data

        if len(self.data) > 2:
            raise UsageError(f"{len(self.data)} collections are given", "one, or two to compare")
        parts = []
        for name, section in self.several():
            whole = read_data(section)
            split = self.split or ("test" if "test" in whole.split_sizes else "all")
            part = whole if split == "all" else whole.split(split)
            parts.append((replace(choose_captions(part, self.captions), name=name or whole.name), split))
        if len(parts) == 2 and parts[0][0].name == parts[1][0].name:
            both = parts[0][0].name
            raise UsageError(f"both collections are called {both!r}", "name them: NAME=DATASET")
        return parts


def granularity(options: GranularityOptions) -> None:
    """Count adjectives, phrases, determiners, concepts and words of captions; compare two collections.

    Every feature has an interval over images; two collections of the same images are compared in pairs, with
    effect sizes and corrected p-values.

    Examples:
        diptych analyse granularity coco=dataset_coco.json fg=MSCOCO_FG_ann.json
        diptych analyse granularity a=scenes b=scenes --reader-option b.finer=2
    """
    from diptych.analysis.granularity import compare_granularity
    from diptych.analysis.granularity import granularity as measure
    from diptych.analysis.granularity.result import Granularity
    from diptych.analysis.granularity.tables import comparison_table, granularity_tables
    from diptych.core.files import check_replaceable, safe_name
    from diptych.data.language.open import is_of_scenes
    from diptych.metrics.bootstrap import Bootstrap
    from diptych.report.analysis import granularity_page

    how, out = Bootstrap(options.samples, seed=options.seed), options.out
    with progress():
        parts = options.parts()
        # one language for all: that of scenes where all are scenes
        language = options.open(parts[0][0] if all(is_of_scenes(part) for part, _ in parts) else None)
        folders = [None if out is None else out / safe_name(part.name) for part, _ in parts]
        for folder in folders:
            if folder is not None:
                check_replaceable(folder, Granularity.marker())  # all of them before the work
        measured = [
            measure(
                part,
                language=language,
                features=options.feature or None,
                compat=options.compat,
                split=split,
                bootstrap=how,
                folder=folder,
            )
            for (part, split), folder in zip(parts, folders, strict=True)
        ]
        compared = None
        if len(measured) == 2:
            compared = compare_granularity(*measured, pairing=options.pairing, bootstrap=how)
    show(*granularity_tables(measured, options.examples))
    if compared is not None:
        show(comparison_table(compared))
    for line in [*(() if compared is None else compared.notes), *(one.line() for one in measured)]:
        say(line)
    if out is None:
        next_step(["diptych", "analyse", "granularity", *options.data, "--out", "FOLDER"])
        return
    if compared is not None:
        compared.save(out / "comparison.json")
    page = granularity_page(measured, compared).save(out / "report.html")
    say(f"written to {out}")
    next_step(["open", page])
