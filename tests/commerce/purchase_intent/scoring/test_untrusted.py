"""Sessions of untrusted clients: refused in short messages."""

from __future__ import annotations

from typing import Any

import pytest

from diptych.commerce.purchase_intent.scoring import Scorer
from diptych.core.errors import DataError

SESSION: dict[str, Any] = {
    "visitor_id": "v",
    "events": [{"t": 0, "page_type": "home"}, {"t": 5, "page_type": "home"}],
}


def test_long_words_are_shown_in_short(scorer: Scorer) -> None:
    long = "x" * 10**5
    answers = [
        scorer.score(
            {**SESSION, "device": long, "channel": long, "events": [{"t": 0, "page_type": long}] * 2}
        )
    ]
    assert all(len(str(answer.to_dict())) < 5000 for answer in answers)
    for session in ({long: 1}, {"events": [{"t": long}]}, {"events": [{"t": 0, "action": long}]},
                    {**SESSION, "history": {"devices": [1] * 10**5}}, {**SESSION, "history": {"orders": long}},
                    dict.fromkeys(map(str, range(10**4)))):  # fmt: skip
        with pytest.raises(DataError) as refused:
            scorer.score(session)
        assert len(refused.value.message) < 400
