from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from PIL import Image

from diptych.core.errors import ImageError


class Page(HTMLParser):
    """A page as a list of ``(tag, attributes, text inside it until the next tag)``."""

    VOID = frozenset({"meta", "img", "br", "link"})

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str], list[str]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attributes}, []))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attributes}, []))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if self.elements:
            self.elements[-1][2].append(data)

    def all(self, tag: str, **attributes: str) -> list[dict[str, str]]:
        """The attributes of every such element; ``class_`` asks for one of its classes."""
        wanted = attributes.pop("class_", None)
        return [
            have
            for name, have, _ in self.elements
            if name == tag
            and (wanted is None or wanted in have.get("class", "").split())
            and all(have.get(key) == value for key, value in attributes.items())
        ]

    @property
    def text(self) -> str:
        """All words outside ``style``."""
        return " ".join("".join(words) for tag, _, words in self.elements if tag != "style")


@pytest.fixture
def parse() -> Callable[[str], Page]:
    return Page


@pytest.fixture
def picture() -> Callable[..., Image.Image]:
    def make(colour: str = "#336699", size: tuple[int, int] = (40, 30)) -> Image.Image:
        return Image.new("RGB", size, colour)

    return make


@pytest.fixture
def broken() -> Callable[[], Image.Image]:
    def read() -> Image.Image:
        raise ImageError("photo.jpg is empty (0 bytes)", "fetch the file again")

    return read
