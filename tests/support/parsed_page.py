"""Pages of HTML read back, and pictures for them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from PIL import Image

from diptych.core.errors import ImageError


class Parsed(HTMLParser):
    """A well-formed page as a list of ``(tag, attributes, text inside it until the next tag)``."""

    VOID = frozenset({"meta", "img", "br", "link"})
    FETCHES = ("src", "href", "srcset", "xlink:href", "action", "poster", "data")

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str], list[str]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []
        ids = [have["id"] for _, have, _ in self.elements if "id" in have]
        assert len(ids) == len(set(ids))
        # Nothing is fetched from elsewhere.
        fetched = {have.get(name, "") for _, have, _ in self.elements for name in self.FETCHES}
        assert not [value for value in fetched if re.match(r"\s*(\w+:)?//", value)]
        assert not re.search(r"url\(['\"]?(?!#|data:)|@import", text)

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


def picture(colour: str = "#336699", size: tuple[int, int] = (40, 30)) -> Image.Image:
    return Image.new("RGB", size, colour)


def broken() -> Image.Image:
    raise ImageError("photo.jpg is empty (0 bytes)", "fetch the file again")
