"""Tables of whole sessions: somebody else has computed the columns, when the sessions were over."""

from diptych.commerce.purchase_intent.features.whole.declaration import (
    SESSION_TABLES,
    SessionTable,
    recognise_session_table,
)
from diptych.commerce.purchase_intent.features.whole.make import make_whole_features

__all__ = ["SESSION_TABLES", "SessionTable", "make_whole_features", "recognise_session_table"]
