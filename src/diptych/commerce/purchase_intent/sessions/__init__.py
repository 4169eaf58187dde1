"""From events to sessions, their first pages and their queries."""

from diptych.commerce.purchase_intent.sessions.sessionise import sessionise
from diptych.commerce.purchase_intent.sessions.tables import KEYS, SessionOptions, SessionTables

__all__ = ["KEYS", "SessionOptions", "SessionTables", "sessionise"]
