"""Events of bots that say so."""

from __future__ import annotations

from diptych.data.logs.rules.declaration import RULES, RowRule
from diptych.data.logs.sql import literal
from diptych.data.logs.words import BOT_WORDS, NO_BOT

__all__: list[str] = []

_IS_BOT = f"regexp_matches(replace(lower(agent), {literal(NO_BOT)}, ''), {literal('|'.join(BOT_WORDS))})"

RULES.add(
    RowRule(
        "agent",
        "the user agent is a bot's, by a list of patterns (diptych.data.logs.words.BOT_WORDS)",
        80,
        lambda cleaning: not cleaning.bots,
        lambda cleaning, period: f"coalesce({_IS_BOT}, false)",
        "left(agent, 80)",
    )
)
