"""``diptych evaluate`` and ``compare``: recall and its relatives, with chance, intervals and protocol."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.console import next_step, show
from diptych.cli.sources import Source, named, run_of
from diptych.core.options import parameter
from diptych.data.source import OutOption, PartSpec
from diptych.evaluation.options import CompareOptions, EvaluateOptions


def evaluate(source: Source, data: PartSpec, options: EvaluateOptions) -> None:
    """Measure retrieval in both directions on a split, and compare with chance.

    A run that was trained with shortcuts on both sides is measured without and with them.

    Examples:
        diptych evaluate runs/flickr8k
        diptych evaluate hf:NAME --data coco --protocol coco-1k --out clip
        diptych evaluate runs/coco --positives cxc:crisscrossed/data
        diptych evaluate runs/coco --measure DCG_CM@10 --relevance st:NAME
        diptych evaluate albef:flickr30k.pth --data flickr30k --rerank 128 -o albef
    """
    from diptych.encoders.embeddings import Origin
    from diptych.evaluation.sources import evaluate_named

    run, named_data = run_of(source), named(source, data, data.split, sparse=True)
    found = evaluate_named(named_data, options)
    for one in found.each:
        show(*one.tables(), *one.lines())
    if run is None:  # the penalty of order embeddings cannot be indexed
        place = found.folder if Origin.read(found.folder) is not None else source  # the rows of a sparse head
        next_step(["diptych", "info" if found.encoded.similarity == "order" else "index", place])
        return
    if run.recipe.shortcuts is not None:
        from diptych.training.evaluations import shortcuts_to_evaluate

        begun = run.begun_with.get("shortcuts")
        both = found.with_shortcuts(named_data, partial(shortcuts_to_evaluate, run.recipe, begun_with=begun))
        show(*([] if both is None else both.tables()))
    next_step(["diptych", "report", source])


class Compared(CompareOptions, OutOption):
    """The comparison, and where its numbers go."""

    out: Path | None = parameter(None, "The numbers, as JSON; of stress with a page.", "--out", "-o")


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Runs, evaluations' folders, folders of runs (seeds of one recipe), or folders of stress.",
            metavar="RUN",
        ),
    ],
    options: Compared,
) -> None:
    """Compare two or more evaluated runs on the same test set.

    Images are resampled and swapped, each with its captions. Of a folder of runs the mean and the standard
    deviation are shown. Of folders of diptych analyse stress: under which perturbation one loses less.

    Examples:
        diptych compare runs/triplet runs/infonce
        diptych compare seeds/baseline seeds/ltd --measures R@1,rsum --out ltd.json
        diptych compare stress/gru stress/bag-of-words
    """
    from diptych.core.files import short_names, write_json
    from diptych.evaluation import Comparison
    from diptych.evaluation import compare as compare_runs
    from diptych.evaluation.stress.comparison import StressComparison, compare_stress, is_stressed
    from diptych.report.stress import comparison_page
    from diptych.training.folders import evaluations_of

    folders = dict(zip(short_names(runs), runs, strict=True))
    out, page = options.out, None
    found: Comparison | StressComparison
    if is_stressed(runs):
        found = under_stress = compare_stress(folders, **options.values(stressed=True))
        if out is not None:
            page = comparison_page(under_stress).save(out.with_name(f"stress-{out.stem}.html"))
    else:
        groups = {name: evaluations_of(run, options.evaluation) for name, run in folders.items()}
        found = compare_runs(groups, **options.values(stressed=False))
    show(*found.tables(), *found.lines())
    if out is not None:
        write_json(out, found.to_dict())
        size = "" if page is None else f"; page {page.stat().st_size / 1e6:.1f} MB, no other files needed"
        show(f"with everything in {out}{size}")
    if (runs[0] / "run.json").is_file():
        next_step(["diptych", "report", runs[0]])
    elif out is None:
        next_step(["diptych", "compare", *runs, "--out", "comparison.json"])
    else:
        next_step(["open", page or out])
