"""Where two captions differ."""

from __future__ import annotations

from diptych.report.stress import differing


def test_differing_words() -> None:
    clean, changed = differing("a dog runs fast .", "a god runs very fast .")
    assert [piece for piece in clean if piece.differs] == [("dog", True)]
    assert [piece.text for piece in changed if piece.differs] == ["god", "very"]
    assert " ".join(piece.text for piece in changed) == "a god runs very fast ."
    assert differing("", "") == ([], [])
    assert differing("", "word") == ([], [("word", True)])
    assert differing("same words", "same words")[0] == [("same words", False)]
    long = " ".join(f"w{number}" for number in range(2000))
    left, right = differing(long, f"x {long}")
    assert " ".join(piece.text for piece in left) == long
    assert " ".join(piece.text for piece in right) == f"x {long}"
