"""``diptych sparse``: train a head, show images and captions as terms, explain scores."""

from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.console import next_step, say, show, stop_on_signal
from diptych.cli.sources import Source
from diptych.core.options import command_line
from diptych.data.source import DataSpec
from diptych.sparse.options import ExplainOptions, TermsOptions, TrainOptions

_HEAD = "A folder that diptych sparse train wrote, an index of its rows, or what was embedded with it."
Head = Annotated[Path, typer.Argument(help=_HEAD, show_default=False)]
_QUERY = "A sentence, the path of an image, or an id of the split."


def train(source: Source, data: DataSpec, options: TrainOptions) -> None:
    """Train a head that turns an encoder's dense rows into sparse ones over a vocabulary (D2S).

    No labels are needed and the encoder stays as it is: the head learns from the encoder's own scores. Then the
    test split is measured, dense and sparse. Ctrl-C stops after the current step; the same command resumes.

    Examples:
        diptych sparse train runs/flickr8k --eta 1e-3
        diptych sparse train hf:openai/clip-vit-base-patch32 --data coco --out bags
        diptych sparse train rows:vectors --data flickr30k.json --out sparse
    """
    from diptych.report.sparse import sparse_page
    from diptych.sparse.training import train_head

    with stop_on_signal():
        found = train_head(source, data, options)
    command = command_line(("diptych", "sparse", "train", source), data, options)
    vocabulary, folder = found.sparsifier.vocabulary, found.folder
    page = sparse_page(vocabulary, found.rows, found.collection, found.measures, command)
    page.save(folder / "report.html")
    head, *protocol = found.lines()
    show(head, *found.tables(), *protocol)
    steps = ["diptych", "sparse", "terms", folder], ["diptych", "index", folder]
    next_step(["open", folder / "report.html"], *steps)


def terms(sparse: Head, options: TermsOptions) -> None:
    """Print the heaviest terms of images and captions, and draw them.

    Terms that the caption, or one of the image's captions, contains have an asterisk: the others are expansion.

    Examples:
        diptych sparse terms runs/flickr8k/sparse --sheet terms.png
        diptych sparse terms sparse "two dogs play in the snow" holiday.jpg -k 20
    """
    from diptych.report.sheets import write_sheet
    from diptych.report.sparse import term_gallery
    from diptych.sparse.explain import BagReader

    reader = BagReader(sparse, options.split)
    bags = reader.bags(options.what, options.count)
    show(reader.table(bags, options.k))
    if options.sheet is not None:
        gallery = term_gallery(reader.vocabulary, bags, options.k)
        write_sheet(options.sheet, f"The heaviest terms, {sparse.name}", [gallery])
        say(f"drawn in {options.sheet}")
    next_step(["diptych", "sparse", "explain", sparse, "what to look for"])


def explain(
    sparse: Head,
    query: Annotated[str, typer.Argument(help=_QUERY, show_default=False)],
    options: ExplainOptions,
) -> None:
    """Print which terms gave a match its score: a score is the sum of query weight × item weight.

    Examples:
        diptych sparse explain sparse "two dogs play in the snow" --sheet why.png
        diptych sparse explain sparse/index-images-inverted "a kayak" --item 287.jpg
    """
    from diptych.report.sheets import write_sheet
    from diptych.report.sparse import match_gallery
    from diptych.sparse.explain import BagReader, Match

    reader = BagReader(sparse, options.split)
    bag = reader.bag(query)
    found = reader.best(bag, options.of, options.k, options.item)
    for place, one in enumerate(found, 1):
        match = Match.of(reader.vocabulary, bag, one, options.terms)
        text = next(iter(one.captions), "no caption")
        show(match.table(f"{place}. {one.name}, score {match.score:.3f}: {text}"))
    if not found:
        say(f"nothing shares a term with {query!r}")
    elif options.sheet is None:
        next_step(["diptych", "sparse", "explain", sparse, query, "--sheet", "why.png"])
    else:
        galleries = [match_gallery(reader.vocabulary, bag, one, options.terms) for one in found]
        write_sheet(options.sheet, f"What scores for {query!r} are made of", galleries)
        say(f"drawn in {options.sheet}")
