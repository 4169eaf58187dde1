"""Shop logs: generated sessions of visitors, with planted effects, so that every statistic's truth is known.

``effects`` says what can be planted, ``usual`` what usually is, and ``world`` makes arrays of it; ``people``,
``sessions`` and ``paths`` draw who comes, when and what for, and which pages follow (``visits``, a block of
visitors); ``events`` are the rows of that, ``dirt`` spoils them, ``raw`` and ``writing`` put them into files.
``counts`` and ``statistics`` are the truth, ``expected`` what the planted parameters say in closed form, ``oracle``
the best possible probabilities, and ``columns`` what an importer has to know.
"""

from diptych.data.scenes.shop_log.chance import MARKER, RAW_COLUMNS, TRUTH
from diptych.data.scenes.shop_log.effects import DEFAULT, Chain, DeviceSet, Effects, Pages
from diptych.data.scenes.shop_log.make import make_shop_log

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
