"""A page of category-to-image retrieval: what :mod:`intent_page` has, and galleries of pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from diptych.core.files import write_bytes
from diptych.report.intent_page import Page
from diptych.report.intent_series import DARK, LIGHT
from diptych.report.palette import judgement
from diptych.report.pictures import Thumbnail


@dataclass(frozen=True)
class Shown:
    """One product that came first for a category.

    Attributes:
        asked: the category that asked.
        found: the category that the product is in.
        right: whether it is relevant.
        kind: what one category is to the other.
        name: the product's id.
        title: the product's title.
        score: as printed.
        picture: None where it has none, or none that can be read.
    """

    asked: str
    found: str
    right: bool
    kind: str
    name: str
    title: str
    score: str
    picture: Thumbnail | None

    @property
    def state(self) -> str:
        """``right`` or ``wrong``."""
        return judgement(self.right)

    @property
    def mark(self) -> str:
        """Of the state, for those who see no colours."""
        return "✓" if self.right else "✗"


@dataclass(frozen=True)
class Gallery:
    """Pictures side by side.

    Attributes:
        caption: what they are.
        items: in order.
    """

    caption: str
    items: Sequence[Shown]
    kind: ClassVar[str] = "gallery"


def render_categories_page(page: Page) -> str:
    """The text of one self-contained HTML page; everything but figures is escaped."""
    from markupsafe import Markup

    from diptych.report.templating import templates

    colours: Sequence[Mapping[str, str]] = (LIGHT, DARK)
    template = templates().get_template("categories.html.j2")
    return template.render(page=page, drawn=Markup, light=colours[0], dark=colours[1])


def write_page(path: Path | str, page: Page) -> Path:
    """Write a page as one HTML file, whole or not at all."""
    write_bytes(path, render_categories_page(page).encode("utf-8", "replace"))
    return Path(path)
