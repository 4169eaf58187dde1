"""One spelling of a query, the same on every engine.

Engines' own ways differ. Final sigma is a letter of its own to Spark and Python and none to DuckDB, the dotted capital
I becomes one character or two, a regular expression's ``\\s`` is another set of blanks in each, and Ibis's ``strip``
cuts the letters f and v on Spark. What is done here was compared on every character of Unicode 14; capitals of
alphabets that came later may be left as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir

# What Python's str.split takes for a blank, character by character: escapes are read differently by engines.
_BLANKS = "[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
_ODD = "[^ -~]|^ | $|  "


def normalised(text: ir.StringValue) -> ir.StringValue:
    """Lower case, without blanks at the ends, others made one space; null stays null.

    The capital İ becomes i, and ς, a sigma at the end of a word, σ.
    """
    import ibis

    # Most queries are words of ASCII with one space between them, and need no more than lower case.
    letters = text.replace("İ", "i").lower().replace("ς", "σ")
    spaced = letters.re_replace(_BLANKS, " ").re_replace("^ | $", "")
    return ibis.ifelse(text.re_search(_ODD), spaced, text.lower())
