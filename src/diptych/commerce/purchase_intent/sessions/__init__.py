"""From events to sessions, their first pages and their queries."""

from diptych.commerce.purchase_intent.sessions.schema import SessionOptions
from diptych.commerce.purchase_intent.sessions.session_tables import KEYS, SessionTables
from diptych.commerce.purchase_intent.sessions.sessionise import sessionise

__all__ = ["KEYS", "SessionOptions", "SessionTables", "sessionise"]
