"""Rules by which events are dropped, and counted: one file of ``kinds/`` each."""

from diptych.data.logs.rules.declaration import RULES, UNREADABLE_ROW, BucketRule, RowRule, Rule, asked_rules

__all__ = ["RULES", "UNREADABLE_ROW", "BucketRule", "RowRule", "Rule", "asked_rules"]
