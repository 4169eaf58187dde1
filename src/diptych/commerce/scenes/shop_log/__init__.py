"""Shop logs: generated sessions of visitors, with planted effects.

``effects`` says what is planted and ``world`` makes arrays of it; ``sessions`` draws who comes, when and what for, and
which pages follow; ``events`` are the rows of that, and ``raw`` spoils them and writes them into files.
"""

from diptych.commerce.scenes.shop_log.chance import MARKER, RAW_COLUMNS, TRUTH
from diptych.commerce.scenes.shop_log.effects import DEFAULT, Chain, DeviceSet, Effects, Pages
from diptych.commerce.scenes.shop_log.make import make_shop_log

__all__ = [
    "DEFAULT",
    "MARKER",
    "RAW_COLUMNS",
    "TRUTH",
    "Chain",
    "DeviceSet",
    "Effects",
    "Pages",
    "make_shop_log",
]
