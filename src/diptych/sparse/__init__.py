"""From dense rows to bags of weighted terms, and what that keeps and loses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diptych.core.extras import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

if TYPE_CHECKING:
    from diptych.sparse.explain import explain_match as explain_match
