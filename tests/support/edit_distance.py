"""How far two texts are apart, written from the definition."""

from __future__ import annotations

from functools import cache


@cache
def edit_distance(one: str, other: str) -> int:
    """Fewest insertions, deletions, substitutions and exchanges of neighbours (optimal string alignment)."""
    table = [[max(i, j) if not i or not j else 0 for j in range(len(other) + 1)] for i in range(len(one) + 1)]
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            best = min(
                table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (one[i - 1] != other[j - 1])
            )
            if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
                best = min(best, table[i - 2][j - 2] + 1)
            table[i][j] = best
    return table[-1][-1]
