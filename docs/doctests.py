"""Show the examples of docstrings as code: an extension of Griffe, which mkdocstrings reads the sources with."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Doctests(griffe.Extension):
    """Put lines that begin with ``>>>``, and what follows them, into fences; leave out ``::`` above code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            text = re.sub(r"^::$", "", obj.docstring.value, flags=re.MULTILINE)
            obj.docstring.value = re.sub(
                r"^(>>> .*(?:\n.+)*)", r"```pycon\n\1\n```", text, flags=re.MULTILINE
            )
