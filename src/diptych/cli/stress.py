"""``diptych analyse stress``: which changes of captions and pictures hurt an encoder, whom, and whether it is significant."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import next_step, progress, say, show, stop_on_signal
from diptych.cli.sources import (
    Captions,
    Data,
    DataChoice,
    Images,
    LanguageName,
    Model,
    NltkData,
    OutFolder,
    ReaderName,
    ReaderOptions,
    SkipBadImages,
    Split,
    WordNetPath,
    encoder_of,
    options_by_name,
)
from diptych.core.errors import UsageError
from diptych.core.files import safe_name

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.encoders.embeddings import Origin
    from diptych.evaluation.stress import StressResult
    from diptych.training.run import Run


def show_stress(found: StressResult) -> None:
    """Print what a run found: tables, what they are read with, protocol."""
    from diptych.evaluation.stress import stress_summary, stress_tables
    from diptych.evaluation.stress.tables import COST_LEGEND, same_to_the_encoder

    show(*(table for table in stress_tables(found) if not table.folded))
    notes = (*same_to_the_encoder(found), *found.notes)
    for line in (COST_LEGEND, stress_summary(found), *notes, found.protocol_line(), found.method):
        say(line)


def stress(
    model: Model,
    collection: Annotated[
        Path | None,
        typer.Argument(help="A dataset; the same as --data. A run's own when not given.", show_default=False),
    ] = None,
    data: Data = None,
    split: Split = None,
    captions: Captions = "all",
    perturb: Annotated[
        list[str] | None,
        typer.Option(
            help="Perturbations or groups of them, or text, pictures, thesis (its thirteen), all; all by default. "
            "See diptych info. Repeatable, or with commas.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many seeds, from 0; 3, or with --compat published its one.", show_default=False
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="PERTURBATION.OPTION=VALUE, e.g. blur.severity=5. Repeatable.", show_default=False
        ),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="Shares or gains, e.g. R@1, nDCG_CM@10; rsum is of one direction. Repeatable.",
            show_default="R@1, R@5, R@10, rsum, DCG_CM@10, nDCG_CM@10",
        ),
    ] = None,
    gallery: Annotated[
        str, typer.Option(help="Pictures that captions ask for: of the split, or all of the data.")
    ] = "split",
    relevance: Annotated[
        str | None,
        typer.Option(
            help="A model whose similarity is the gain of DCG_CM; the stressed one's own by default.",
            show_default=False,
        ),
    ] = None,
    compat: Annotated[
        str, typer.Option(help="none, or published: perturbations as the thesis's published code made them.")
    ] = "none",
    language: LanguageName = "auto",
    wordnet: WordNetPath = None,
    nltk_data: NltkData = None,
    samples: Annotated[
        int, typer.Option(min=0, help="Bootstrap resamples for 95 % intervals; 0 for none.")
    ] = 1000,
    flips: Annotated[int, typer.Option(min=1, help="Random swaps for p-values.")] = 100_000,
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    skip_bad_images: SkipBadImages = False,
    out: OutFolder = None,
) -> None:
    """Perturb queries and see what it costs: recall, rsum and DCG_CM with intervals and corrected p-values.

    Captions with typos, synonyms, shuffled words and other meanings ask for pictures; blurred, cropped and
    covered pictures ask for captions. The gallery stays clean. Ctrl-C stops at the next batch, and the same
    command goes on; so it does after kill -9.

    Examples:

      [bold]diptych analyse stress runs/flickr8k[/bold]

      [bold]diptych analyse stress runs/flickr8k --perturb typos --perturb shuffle-all-words --seeds 1[/bold]

      [bold]diptych analyse stress hf:openai/clip-vit-base-patch32 flickr30k --perturb thesis --out clip[/bold]

      [bold]diptych analyse stress hf:kakaobrain/align-base coco --perturb thesis --compat published --gallery all \
--relevance hf:openai/clip-vit-base-patch32 --out align[/bold]
    """
    from diptych.analysis.perturbations import choose_perturbations
    from diptych.core.files import write_json
    from diptych.data.language.open import open_language
    from diptych.encoders.embeddings import Origin
    from diptych.evaluation.stress import stress as stressed
    from diptych.report.stress import stress_page

    if collection is not None and data is not None:
        raise UsageError(f"both {collection} and --data {data} are given", "give one of them")
    names = [name for text in perturb or ["all"] for name in text.split(",") if name]
    chosen = choose_perturbations(names)
    options = options_by_name(set_)
    choice = DataChoice(data or collection, images, reader, reader_option, skip_bad_images, captions)
    embedded = Origin.read(Path(model))
    if embedded is not None:
        raise UsageError(
            f"{model} holds rows, no encoder: perturbed queries cannot be encoded",
            f"name the encoder that made them, {embedded.model}",
        )
    with progress(), stop_on_signal():
        encoder, run = encoder_of(model)
        origin, whole = stressed_collection(model, choice, split, run)
        folder = _folder(out, model, whole, origin)
        found = stressed(
            encoder,
            whole,
            folder,
            perturbations=chosen,
            seeds=None if seeds is None else range(seeds),
            split=origin.split,
            language=open_language(language, wordnet=wordnet, nltk_data=nltk_data, collection=whole),
            compat=compat,
            options=options,
            gallery=gallery,
            relevance=None if relevance is None else encoder_of(relevance)[0],
            measures=measure or None,
            samples=samples,
            flips=flips,
            required={one.name for one in chosen} & set(names),
            embeddings=_embeddings(run, out, whole, origin, gallery),
            about=origin.said(),
        )
        write_json(folder / "origin.json", asdict(origin))
        page = stress_page(found, whole).save(folder / "report.html")
    show_stress(found)
    if found.opened:
        say(f"{folder} held this run, finished, of the same content: opened, not run again")
    say(f"everything in {folder}; page {page.stat().st_size / 1e6:.1f} MB, no other files needed")
    next_step(["open", page])


def stressed_collection(
    model: str, choice: DataChoice, split: str | None, run: Run | None = None
) -> tuple[Origin, Collection]:
    """What is stressed on, and where it came from: all of the data, the split in the origin."""
    from dataclasses import replace

    from diptych.data.captions import check_caption_choice
    from diptych.encoders.embeddings import Origin
    from diptych.encoders.family import rooted

    check_caption_choice(choice.captions)
    origin = Origin(rooted(model), choice.section(run), None, choice.captions)
    whole = origin.collection()
    if split is None:
        default = run.recipe.data.test if run is not None else "test"
        split = default if default in whole.split_sizes else None
    elif split == "all":
        split = None
    return replace(origin, split=split, centric=whole.centric), whole


def _folder(out: Path | None, model: str, whole: Collection, origin: Origin) -> Path:
    if out is not None:
        return out
    if not Path(model).is_dir():
        raise UsageError("nowhere to write", f"{model} is no folder: name one with --out")
    return Path(model) / "stress" / safe_name(f"{whole.name}-{origin.part}")


def _embeddings(
    run: Run | None, out: Path | None, whole: Collection, origin: Origin, gallery: str
) -> Path | None:
    """Where clean rows are kept: with those of evaluations, where a run's own data is asked."""
    if run is None or out is not None or gallery != "split":
        return None
    return run.folder / "embeddings" / safe_name(f"{whole.name}-{origin.part}")
