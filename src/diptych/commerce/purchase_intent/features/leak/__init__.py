"""Whether features look into the future: later events are altered, and nothing may change."""

from diptych.commerce.purchase_intent.features.leak.comparison import ShiftChange
from diptych.commerce.purchase_intent.features.leak.shift import ShiftFinding, shift_test

__all__ = ["ShiftChange", "ShiftFinding", "shift_test"]
