"""A statement at the end that says nothing of the picture: ``and true is true``, ``and false is false``.

It comes before the caption's last full stop, exclamation or question mark, with which the caption goes on
ending; a caption without one gets none. It is English whatever the caption's language.

The published code took full stops off both ends, put the statement behind all else, with a full stop, and wrote
the first statement "and true it true".
"""

from __future__ import annotations

from collections.abc import Callable

from diptych.analysis.perturbations.caption import Caption, Unchanged
from diptych.analysis.perturbations.declaration import PERTURBATIONS, NoOptions, TextPerturbation
from diptych.analysis.perturbations.published_typos import published_form
from diptych.core.draws import Draws

_LAST = " \t\r\n\u00a0\u3000.!?…。！？؟।"


def _with(statement: str) -> Callable[[Caption, Draws, NoOptions], str]:
    def apply(caption: Caption, draws: Draws, options: NoOptions) -> str:
        said = caption.text.rstrip(_LAST)
        if not said.strip():
            raise Unchanged("nothing is said")
        return f"{said} {statement}{caption.text[len(said) :]}"

    return apply


def _published(statement: str) -> Callable[[str, int], str]:
    def change(text: str, seed: int) -> str:
        return f"{text.strip('.')} {statement}."

    return change


for _name, _statement, _printed in (
    ("distraction-true", "and true is true", "and true it true"),
    ("distraction-false", "and false is false", "and false is false"),
):
    PERTURBATIONS.add(
        TextPerturbation(
            name=_name,
            description=f'"{_statement}" at the end',
            group="distraction",
            source="thesis §5.4.1",
            keeps_meaning=True,
            apply=_with(_statement),
            published=published_form(_published(_printed)),
            suite=True,
        )
    )
