"""From events to sessions, their first pages and their queries."""

from diptych.commerce.purchase_intent.options import SessionOptions
from diptych.commerce.purchase_intent.sessions.sessionise import sessionise
from diptych.commerce.purchase_intent.sessions.tables import SessionTables

__all__ = ["SessionOptions", "SessionTables", "sessionise"]
