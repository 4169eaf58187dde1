"""The command ``diptych``: every verb, by the module that is imported when it is used."""

from typing import Annotated

import typer

from diptych.cli.verbs import group
from diptych.core.registry import plug_ins

_DATA = group(
    "data",
    "Know, check, generate and change datasets.",
    {
        "list": "diptych.cli.data:list_",
        "show": "diptych.cli.data:show_dataset",
        "check": "diptych.cli.data:check",
        "scenes": "diptych.cli.data:scenes",
        "products": "diptych.cli.data:products",
        "shop-log": "diptych.cli.data:shop_log",
        "shortcuts": "diptych.cli.perturb:shortcuts",
        "perturb": "diptych.cli.perturb:perturb",
        "resources": "diptych.cli.data:resources",
        "vectors": "diptych.cli.data:vectors",
    },
)
_ANALYSE = group(
    "analyse",
    "Find out what an encoder learned, what it suppressed, and what breaks it.",
    {
        "stress": "diptych.cli.analyse:stress",
        "audit": "diptych.cli.analyse:audit",
        "cocos": "diptych.cli.analyse:cocos",
        "granularity": "diptych.cli.analyse:granularity",
        "protocol": "diptych.cli.analyse:protocol",
    },
)
_SPARSE = group(
    "sparse",
    "Turn dense embeddings into bags of weighted terms.",
    {
        "train": "diptych.cli.sparse:train",
        "terms": "diptych.cli.sparse:terms",
        "explain": "diptych.cli.sparse:explain",
    },
)
_STUDY = group(
    "study",
    "Run the tables of the papers and compare them with what is printed.",
    {
        "list": "diptych.cli.study:list_",
        "show": "diptych.cli.study:show",
        "run": "diptych.cli.study:run",
        "verdict": "diptych.cli.study:verdict",
    },
)


def _version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        typer.echo(f"diptych {version('diptych')}")
        raise typer.Exit


def _settings(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Take what belongs to no verb."""


app = group(
    "diptych",
    "Image–text retrieval: train dual encoders, measure what they learned, index and search.",
    {
        "demo": "diptych.cli.demo:demo",
        "train": "diptych.cli.train:train",
        "adapt": "diptych.cli.adapt:adapt",
        "embed": "diptych.cli.embed:embed",
        "evaluate": "diptych.cli.evaluate:evaluate",
        "compare": "diptych.cli.evaluate:compare",
        "index": "diptych.cli.embed:index",
        "index add": "diptych.cli.updating:add",
        "index delete": "diptych.cli.updating:delete",
        "index compact": "diptych.cli.updating:compact",
        "index duplicates": "diptych.cli.updating:duplicates",
        "watch": "diptych.cli.updating:watch",
        "search": "diptych.cli.search:search",
        "serve": "diptych.cli.serve:serve",
        "report": "diptych.cli.report:report",
        "export": "diptych.cli.export:export",
        "info": "diptych.cli.info:info",
        "data": _DATA,
        "analyse": _ANALYSE,
        "sparse": _SPARSE,
        "study": _STUDY,
        **dict(plug_ins("diptych.verbs")),
    },
    callback=_settings,
    add_completion=True,
    epilog="Begin with: diptych demo",
)
