"""``diptych export``: evaluations and datasets in the forms that the field's other tools read."""

from pathlib import Path
from typing import Literal

from diptych.cli.console import next_step, show
from diptych.cli.sources import run_of
from diptych.core.errors import UsageError
from diptych.core.options import parameter
from diptych.data.source import OutOption, PartSpec


class ExportOptions(PartSpec, OutOption):
    """Options of an export: what, to which form, where."""

    source: str | None = parameter(
        None, "A run, an evaluation, or a saved encoder that was evaluated.", argument=True, metavar="SOURCE"
    )
    to: Literal["mteb", "model-card", "trec", "beir", "croissant"] = parameter(..., "The form.")
    evaluation: str | None = parameter(None, "Which evaluation of the source, e.g. coco-test-cxc.")
    language: str = parameter("eng-Latn", "Of the captions, as mteb names it.")


def export(options: ExportOptions) -> None:
    """Write an evaluation (mteb, model-card, trec) or a dataset (beir, croissant) as other tools read it.

    mteb: a result in mteb's layout. model-card: numbers and protocol in the model index of the saved encoder's
    README.md. trec: runs and qrels. beir: corpus, queries and qrels of each direction. croissant: metadata over a
    table of pairs.

    Examples:
        diptych export runs/flickr8k --to mteb --out mteb
        diptych export runs/flickr8k --to model-card
        diptych export runs/flickr8k --to trec --out trec
        diptych export --data flickr30k --to beir --out beir
        diptych export --data flickr8k --split all --to croissant --out croissant
    """
    from diptych.api.exchange import DATASET_FORMS, export_collection, export_evaluation
    from diptych.data.captions import choose_captions
    from diptych.encoders.embeddings import read_data
    from diptych.training.folders import the_evaluation

    if options.to in DATASET_FORMS:
        if options.evaluation is not None:
            raise UsageError(f"--evaluation with --to {options.to}: that is of data", "leave it out")
        if options.source is not None and options.data is not None:
            text = f"both {options.source} and --data {options.data} are given"
            raise UsageError(text, "give one of them: a run stands for its own data")
        run = None if options.source is None else run_of(options.source)
        whole = read_data(options.section(run))
        part, split = whole.part(options.split or (None if run is None else run.recipe.data.test))
        path, look = export_collection(
            options.to, choose_captions(part, options.captions), split, options.out
        )
    elif options.data is not None or options.source is None:
        text = f"--to {options.to} needs a run or an evaluation as SOURCE, and no --data"
        raise UsageError(text, "an evaluation holds what data it is of")
    else:
        options.check_used()
        if options.split is not None or options.captions != "all":
            text = f"--split and --captions with --to {options.to}: an evaluation is of one split already"
            raise UsageError(text, "leave them out, and name one of several evaluations with --evaluation")
        folder = the_evaluation(Path(options.source), options.evaluation)
        path, look = export_evaluation(options.to, folder, options.out, options.language)
    show(f"{options.to} in {path}")
    next_step(look)
