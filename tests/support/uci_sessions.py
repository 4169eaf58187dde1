"""Made-up tables with the columns of UCI 468."""

from __future__ import annotations

from pathlib import Path

import numpy as np

HEADER = (
    "Administrative,Administrative_Duration,Informational,Informational_Duration,ProductRelated,"
    "ProductRelated_Duration,BounceRates,ExitRates,PageValues,SpecialDay,Month,OperatingSystems,Browser,"
    "Region,TrafficType,VisitorType,Weekend,Revenue"
)


def made_up_table(file: Path, n: int, seed: int = 0) -> Path:
    """``n`` sessions, three in ten of buyers: they look at more products, and PageValues tells them all."""
    random = np.random.default_rng(seed)
    lines = [HEADER]
    for _ in range(n):
        bought = random.random() < 0.3
        products = random.poisson(22 if bought else 15)
        value = 20 + random.random() if bought else 0
        lines.append(
            f"1,2.5,0,0,{products},{products * 20},0.01,0.02,{value:.3f},0,Nov,2,2,1,{random.integers(1, 4)},"
            f"Returning_Visitor,{'TRUE' if random.random() < 0.3 else 'FALSE'},{'TRUE' if bought else 'FALSE'}"
        )
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file
