"""Jain and Verma, Contrastive Learning of Visual-Semantic Embeddings (2021): ConVSE and ConVSE++.

diptych study run convse.table-3 --quick                               1–2 min; on a processor
diptych study run convse.table-3 --data FLICKR8K                       under an hour on a processor
diptych study run convse.table-3 --data coco                           the paper's own training, on a GPU

A base network (VSE++, fine-tuned), then projection heads on it trained with one loss or another.
Expect R@sum 483.6 for ConVSE++ on COCO's five folds of 1,000 (table 3). The three tables share their
runs: the base is trained once, in the folder of table 3.

ConVSE++'s value is VSE++'s loss divided by N·τ, so that what sets the two apart is the clipping of
gradients, the optimiser's ε, the heads and the thirty more epochs. Two rows that the paper does not
have, the heads with VSE's and VSE++'s loss, tell the loss from the rest.
"""

from __future__ import annotations

from dataclasses import replace

from diptych.studies.claims import (
    I2T,
    T2I,
    Claim,
    all_of,
    beats,
    more_at_the_top,
    narrow,
    similar,
    small_spreads,
)
from diptych.studies.published import published_table
from diptych.studies.retrieval import Retrieval
from diptych.studies.study import STUDIES, Column, Row, Setting, SettingName, Study

# How it is trained ------------------------------------------------------------------------------

PAPER = Setting(
    description="the paper's: 30 + 15 epochs for the base, 30 for a head",
    recipes={"base": "convse.paper.base.toml", "head": "convse.paper.head.toml"},
    time="GPU days; a day or more for the base, half a day per head",
)
DATA = Setting(
    description="for a processor: a frozen MobileNetV2 with cached views, 10 epochs for the base, 6 for a head",
    recipes={"base": "convse.data.base.toml", "head": "convse.data.head.toml"},
    changes={"mvn": {"model.width": 512}},
    time="1 h; on a processor with Flickr8k",
)
QUICK = Setting(
    description="scenes: a small network whose random image features stay as they are, 6 epochs, 2 for a head",
    recipes={"base": "convse.quick.base.toml", "head": "convse.quick.head.toml"},
    changes={"mvn": {"model.width": 128}},
    time="1–2 min; on a processor",
)
_SETTINGS: dict[SettingName, Setting] = {"paper": PAPER, "data": DATA, "quick": QUICK}
_FIVE_RUNS: dict[SettingName, Setting] = {
    "paper": replace(PAPER, seeds=(0, 1, 2, 3, 4)),
    "data": replace(DATA, seeds=(0, 1, 2)),
    "quick": replace(QUICK, seeds=(0, 1)),
}

_HOME = "convse.table-3"
_MARGIN, _TEMPERATURE = 0.2, 0.1


BASE = Row("vse++", "VSE++, the base network", "base", home=_HOME)


def _head(
    name: str,
    label: str,
    objective: dict[str, object],
    changes: dict[str, object] | None = None,
    extra: str = "",
) -> Row:
    """A row that starts from the base network."""
    values = {"objective": objective, **(changes or {})}
    return Row(name, label, "head", values, base=BASE.name, home=_HOME, extra=extra)


VSE = Row("vse", "VSE", "base", {"objective": {"name": "triplet", "margin": _MARGIN}}, home=_HOME)
# The published code gives this loss no head: it goes on with the base network itself, whose width it keeps.
MVN = _head("mvn", "MVN", {"name": "mvn", "temperature": _TEMPERATURE}, {"model.projection": None})
CONVSE = _head("convse", "ConVSE", {"name": "convse", "temperature": _TEMPERATURE})
_PLUS = {"name": "convse++", "temperature": _TEMPERATURE, "margin": _MARGIN}
CONVSE_PLUS = _head("convse++", "ConVSE++", _PLUS)
_WHY = "not in the paper: the head and its epochs with {}'s own loss, to tell the loss from the rest"
VSE_HEAD = _head(
    "vse-head", "VSE's loss with a head", {"name": "triplet", "margin": _MARGIN}, extra=_WHY.format("VSE")
)
VSE_PLUS_HEAD = _head(
    "vse++-head",
    "VSE++'s loss with a head",
    {"name": "triplet-hardest", "margin": _MARGIN},
    extra=_WHY.format("VSE++"),
)
_TEMPERATURES = tuple(
    _head(f"convse++-t{tau}", f"ConVSE++, τ = {tau}", {**_PLUS, "temperature": tau})
    for tau in (0.05, 0.5, 1.0)
)
_WIDTHS = tuple(
    _head(f"convse++-d{width}", f"ConVSE++, d = {width}", _PLUS, {"model.width": width})
    for width in (64, 128, 256, 512, 2048)
)

_COLUMNS = (*(Column(name) for name in (*I2T, *T2I)), Column("rsum", short="R@sum"))
_ALL = tuple(column.name for column in _COLUMNS)
_MEASURE = Retrieval(protocols={"coco": "coco-1k"})
_NOTES = (
    "Base and heads share their seeds' data order; the base is trained once, with seed 0, for all heads.",
    "Word embeddings are learned from scratch, as in the published code; the paper's text says word2vec.",
    "Heads are trained at 2e-5 as the text says; the published command leaves the default of 2e-4 "
    "(--set stages.0.learning_rate=2e-4).",
)

# Table I ----------------------------------------------------------------------------------------


TABLE_1 = STUDIES.add(
    Study(
        name="convse.table-1",
        asks="How much do ConVSE and ConVSE++ vary from run to run?",
        topic="ConVSE and ConVSE++ in five runs",
        rows=(CONVSE, CONVSE_PLUS),
        bases=(BASE,),
        columns=_COLUMNS,
        published=(published_table("convse", "table-1"),),
        claims=(
            Claim(
                "stable",
                "Five runs differ little: a standard deviation below 0.5 in almost all cases",
                all_of(small_spreads("convse"), small_spreads("convse++")),
                "Section IV-B, of MS-COCO",
            ),
        ),
        settings=_FIVE_RUNS,
        measure=_MEASURE,
        notes=_NOTES,
    )
)

# Table II ---------------------------------------------------------------------------------------

_BY_TAU = ("convse++-t0.05", "convse++", "convse++-t0.5", "convse++-t1.0")
_BY_WIDTH = ("convse++-d64", "convse++-d128", "convse++-d256", "convse++-d512", "convse++", "convse++-d2048")


TABLE_2 = STUDIES.add(
    Study(
        name="convse.table-2",
        asks="What do temperature and width of the space do to ConVSE++?",
        topic="temperature and width of ConVSE++",
        rows=(CONVSE_PLUS, *_TEMPERATURES, *_WIDTHS),
        bases=(BASE,),
        columns=_COLUMNS,
        published=(published_table("convse", "table-2"),),
        claims=(
            Claim(
                "temperature",
                "Results hardly depend on the temperature",
                narrow("rsum over four temperatures within 1 %", _BY_TAU, 0.01),
                "Section IV-B",
            ),
            Claim(
                "width",
                "Narrow spaces are worse; the score rises quickly with the width and then stays",
                all_of(
                    beats("convse++-d128", "convse++-d64", "rsum"),
                    beats("convse++-d256", "convse++-d128", "rsum"),
                    narrow("rsum from d = 256 within 1 %", _BY_WIDTH[2:], 0.01),
                ),
                "Section IV-B",
            ),
            Claim(
                "optimum",
                "τ = 0.1 and d = 1024 are best",
                all_of(
                    *(beats("convse++", row, "rsum") for row in (*_BY_TAU, *_BY_WIDTH) if row != "convse++")
                ),
                "Section IV-A3",
            ),
        ),
        settings=_SETTINGS,
        measure=_MEASURE,
        notes=_NOTES,
    )
)

# Table III --------------------------------------------------------------------------------------


_OTHERS = ("mvn", "vse", "vse++", "convse")

TABLE_3 = STUDIES.add(
    Study(
        name="convse.table-3",
        asks="Do contrastive losses on a trained VSE++ beat VSE++ and VSE, and negatives of the other modality MVN's?",
        topic="ConVSE and ConVSE++ beside VSE++",
        rows=(MVN, VSE, BASE, CONVSE, CONVSE_PLUS, VSE_HEAD, VSE_PLUS_HEAD),
        columns=_COLUMNS,
        published=(published_table("convse", "table-3"),),
        claims=(
            Claim(
                "(a)",
                "ConVSE++ has the best R@sum",
                all_of(*(beats("convse++", row, "rsum") for row in _OTHERS)),
                "Section IV-C1",
            ),
            Claim(
                "(b)",
                "MVN is comparable to VSE and always below ConVSE",
                all_of(similar("mvn", "vse", "rsum", share=0.02), beats("convse", "mvn", *_ALL)),
                "Section IV-C1; comparable: within 2 %",
            ),
            Claim(
                "(c)",
                "ConVSE always beats VSE, and ConVSE++ always beats VSE++",
                all_of(beats("convse", "vse", *_ALL), beats("convse++", "vse++", *_ALL)),
                "Section IV-C1",
            ),
            Claim(
                "(d)",
                "The hardest negative helps: ConVSE++ beats ConVSE and VSE++ beats VSE, most at R@1 and R@5",
                all_of(
                    beats("convse++", "convse", "rsum"),
                    beats("vse++", "vse", "rsum"),
                    more_at_the_top("convse++", "convse"),
                    more_at_the_top("vse++", "vse"),
                ),
                "Section IV-C1",
            ),
            Claim(
                "the loss alone",
                "With the same head and epochs, ConVSE++'s loss beats VSE++'s",
                beats("convse++", "vse++-head", "rsum"),
                "not in the paper, whose text explains the gain by the loss",
            ),
        ),
        settings=_SETTINGS,
        measure=_MEASURE,
        notes=_NOTES,
    )
)
