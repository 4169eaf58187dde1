"""Show the examples of docstrings as code: an extension of Griffe, which mkdocstrings reads the sources with."""

from __future__ import annotations

import re
from textwrap import dedent
from typing import Any

import griffe


class Doctests(griffe.Extension):
    """Put what begins with ``>>>``, and what is indented below ``::``, into fences."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is None:
            return
        text = re.sub(r"^(>>> .*(?:\n.+)*)", r"```pycon\n\1\n```", obj.docstring.value, flags=re.MULTILINE)
        code = r"^::\n\n((?: {4}.*\n?|\n)+)"
        fenced = re.sub(
            code, lambda one: f"```python\n{dedent(one[1]).strip()}\n```\n", text, flags=re.MULTILINE
        )
        obj.docstring.value = fenced
