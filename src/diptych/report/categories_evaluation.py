"""An evaluation of category-to-image retrieval as a page (thesis chapter 7)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.errors import MismatchError
from diptych.report.categories_findings import evaluation_headlines
from diptych.report.categories_page import write_page
from diptych.report.categories_sections import evaluated_sections
from diptych.report.categories_tables import setting_name
from diptych.report.intent_page import Page
from diptych.report.pictures import Thumbnails
from diptych.report.words import shorten

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation

_SIDE = 220

Numbers = Mapping[str, Any]


def write_categories_page(path: Path | str, found: ModelsEvaluation, test: Catalogue | None = None) -> Path:
    """Write the page as one HTML file, whole or not at all."""
    return write_page(path, categories_page(found, test))


def categories_page(found: ModelsEvaluation, test: Catalogue | None = None) -> Page:
    """The page; arguments as of :func:`write_categories_page`."""
    if test is not None and test.fingerprint != found.protocol.test:
        raise MismatchError(
            f"the evaluation ranked products {found.protocol.test}, these are {test.fingerprint}",
            "give the products that were evaluated",
        )
    settings: dict[str, Numbers] = dict(found.numbers["settings"])
    thumbnails = Thumbnails(_SIDE)
    sections = evaluated_sections(found, settings, test, thumbnails)
    unread = thumbnails.note()
    notes = [*found.notes, *([unread] if unread else [])]
    about, protocol = found.about, found.protocol
    return Page(
        "Pictures for categories",
        f"{len(found.models)} {'model' if len(found.models) == 1 else 'models'} in "
        f"{len(settings)} {'setting' if len(settings) == 1 else 'settings'}: {shorten(str(about['data']), 300)}",
        evaluation_headlines(settings),
        sections,
        {
            "data": str(about["data"]),
            "encoders": str(about["encoders"]),
            "protocol": protocol.line(),
            **{setting_name(name): str(said["line"]) for name, said in settings.items()},
            "intervals": _intervals(found.numbers["intervals"]),
            "fingerprint": str(about["key"]),
            "made with": f"diptych {about['diptych']}",
        },
        [shorten(note, 300) for note in notes],
        [_command(found)],
    )


def _intervals(how: Mapping[str, Any]) -> str:
    if not how["samples"]:
        return "none"
    return f"{100 * how['confidence']:g} %, {how['samples']:,} resamples of categories, seed {how['seed']}"


def _command(found: ModelsEvaluation) -> str:
    """The evaluation again."""
    protocol = found.protocol
    words = ["diptych", "categories", "evaluate", "DATA", "--out", "EVALUATION"]
    if protocol.given:
        words += ["--run", "RUN"]
    else:
        words += ["--model", ",".join(protocol.models), "--seeds", str(len(protocol.seeds))]
        words += ["--query", protocol.query] + (["--published"] if protocol.published else [])
    words += ["--setting", ",".join(protocol.settings), "--relevance", protocol.relevance]
    for what, value in found.about.get("encoders asked for", ()):
        words += [f"--{what.replace(' ', '-')}" + ("" if "option" in what else "-encoder"), str(value)]
    return shlex.join(words)
