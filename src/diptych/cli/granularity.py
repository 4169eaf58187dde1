"""``diptych analyse granularity``: how much captions say and how specifically, of one collection or of two compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sources import Captions, LanguageName, NltkData, OutFolder, SkipBadImages, WordNetPath
from diptych.cli.study_data import DataChoices
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.data.collection import Collection


def granularity(
    collections: Annotated[
        list[str],
        typer.Argument(
            metavar="COLLECTION",
            help="A dataset: folder or file, or NAME=DATASET; and another one to compare it with.",
            show_default=False,
        ),
    ],
    feature: Annotated[
        list[str] | None,
        typer.Option(help="A feature; all by default. Repeatable.", show_default=False),
    ] = None,
    compat: Annotated[
        str, typer.Option(help="none, or published: as the numbers of thesis Table 5.1 are counted.")
    ] = "none",
    split: Annotated[
        str | None,
        typer.Option(help="The part of the data; test where there is one, or all.", show_default=False),
    ] = None,
    captions: Captions = "all",
    pairing: Annotated[
        str,
        typer.Option(
            help="auto: by image where every image of one collection is in the other; images: by those in common; "
            "none."
        ),
    ] = "auto",
    language: LanguageName = "auto",
    wordnet: WordNetPath = None,
    nltk_data: NltkData = None,
    samples: Annotated[
        int, typer.Option(min=0, help="Bootstrap resamples of images for 95 % intervals; 0 for none.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of resamples and swaps.")] = 0,
    images: Annotated[
        list[str] | None,
        typer.Option(help="Folder of pictures, or NAME=FOLDER; none are read.", show_default=False),
    ] = None,
    reader: Annotated[
        list[str] | None,
        typer.Option(help="The data's format, or NAME=READER; diptych info lists them.", show_default=False),
    ] = None,
    reader_option: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE for the reader, or NAME.KEY=VALUE. Repeatable.", show_default=False),
    ] = None,
    skip_bad_images: SkipBadImages = False,
    examples: Annotated[
        int, typer.Option("--examples", "-n", min=0, max=5, help="Captions at each extreme, to show.")
    ] = 2,
    out: OutFolder = None,
) -> None:
    """Count adjectives, phrases, determiners, concepts and words of captions, and compare two collections.

    Every feature has an interval over images; two collections of the same images are compared in pairs, with
    effect sizes and corrected p-values.

    Examples:

      [bold]diptych analyse granularity flickr8k[/bold]

      [bold]diptych analyse granularity coco=dataset_coco.json coco-fg=MSCOCO_FG_ann.json --out granularity[/bold]

      [bold]diptych analyse granularity coarse=scenes finer=scenes --reader-option finer.finer=2[/bold]
    """
    from diptych.analysis.granularity import compare_granularity
    from diptych.analysis.granularity import granularity as measure
    from diptych.analysis.granularity.tables import comparison_table, granularity_tables
    from diptych.data.language.open import is_of_scenes, open_language
    from diptych.metrics.bootstrap import Bootstrap
    from diptych.report.analysis import granularity_page

    if len(collections) > 2:
        raise UsageError(f"{len(collections)} collections are given", "one, or two to compare")
    reading = {"images": images or [], "reader": reader or [], "reader_option": reader_option or []}
    given = DataChoices(data=collections, **reading, skip_bad_images=skip_bad_images)
    how = Bootstrap(samples, seed=seed)
    with progress():
        parts = _parts(given, split, captions)
        # one language for all: that of scenes where all are scenes
        scenes = parts[0][0] if all(is_of_scenes(part) for part, _ in parts) else None
        known = open_language(language, wordnet=wordnet, nltk_data=nltk_data, collection=scenes)
        folders = [None] * len(parts) if out is None else _folders(out, [part.name for part, _ in parts])
        measured = [
            measure(
                part,
                language=known,
                features=feature or None,
                compat=compat,
                split=name,
                bootstrap=how,
                folder=folder,
            )
            for (part, name), folder in zip(parts, folders, strict=True)
        ]
        compared = (
            compare_granularity(*measured, pairing=pairing, bootstrap=how) if len(measured) == 2 else None
        )
    show(*granularity_tables(measured, examples))
    if compared is not None:
        show(comparison_table(compared))
    for line in [*(() if compared is None else compared.notes), *(one.line() for one in measured)]:
        say(line)
    if out is None:
        next_step(["diptych", "analyse", "granularity", *collections, "--out", "FOLDER"])
        return
    if compared is not None:
        compared.save(out / "comparison.json")
    page = granularity_page(measured, compared).save(out / "report.html")
    say(f"written to {out}")
    next_step(["open", page])


def _parts(given: DataChoices, split: str | None, captions: str) -> list[tuple[Collection, str]]:
    """The parts that are measured, under the names that were given, each with its split's name."""
    from dataclasses import replace

    from diptych.data.captions import check_caption_choice, choose_captions
    from diptych.training.recipe import collection_of
    from diptych.training.sections import Data

    check_caption_choice(captions)
    parts = []
    for name, section in given.several():
        whole = collection_of(Data.model_validate(section))
        asked = split or ("test" if "test" in whole.split_sizes else "all")
        part = whole if asked == "all" else whole.split(asked)
        parts.append((replace(choose_captions(part, captions), name=name or whole.name), asked))
    if len(parts) == 2 and parts[0][0].name == parts[1][0].name:
        both = parts[0][0].name
        raise UsageError(f"both collections are called {both!r}", "name them: NAME=DATASET")
    return parts


def _folders(out: Path, names: list[str]) -> list[Path | None]:
    from diptych.analysis.granularity.result import Granularity
    from diptych.core.files import check_replaceable, safe_name

    folders = [out / safe_name(name) for name in names]
    for folder in folders:
        check_replaceable(folder, Granularity.marker())
    return list(folders)
