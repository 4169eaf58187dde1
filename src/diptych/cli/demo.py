"""``diptych demo``: the main job in one command."""

import time
from pathlib import Path

from diptych.cli.console import next_step, say
from diptych.core.options import Options, parameter


class DemoOptions(Options):
    """Options of the demo."""

    out: Path = parameter(Path("demo"), "Where the run goes; a finished one is shown again.", "--out", "-o")
    quick: bool = parameter(False, "Half the training, and a lower score.")


def demo(options: DemoOptions) -> None:
    """Generate scenes, train, evaluate, index, search and report.

    Examples:
        diptych demo
    """
    from diptych.cli.embed import index
    from diptych.cli.evaluate import evaluate
    from diptych.cli.report import ReportOptions, report
    from diptych.cli.search import SearchOptions, search
    from diptych.cli.train import TrainOptions, train
    from diptych.data.source import DataSpec, PartSpec
    from diptych.evaluation.options import EvaluateOptions
    from diptych.service.indexing import IndexOptions

    begun, out = time.monotonic(), options.out
    say("1/5  training a dual encoder on generated scenes")
    if (out / "run.json").is_file():
        train(DataSpec(), TrainOptions(resume=out))
    else:
        changes = ["stages.0.epochs=1"] if options.quick else []
        train(DataSpec(), TrainOptions(recipe="scenes", out=out, set_=changes))
    say("\n2/5  evaluating it on scenes it has not seen")
    evaluate(str(out), PartSpec(), EvaluateOptions())
    say("\n3/5  indexing their images")
    index(str(out), DataSpec(), IndexOptions())
    say("\n4/5  searching")
    images = out / "index-images-exact"
    search(str(images), SearchOptions(query="a green cross", k=5, sheet=out / "search.png"))
    say("\n5/5  writing the report")
    report(out, ReportOptions())
    say(f"\nthe demo took {time.monotonic() - begun:.0f} s")
    next_step(["open", out / "report.html"], ["diptych", "serve", out])
