"""The best pictures for every category of a tree."""

from diptych.commerce.category_to_image.picking.distinct import DISTINCT, Distinct
from diptych.commerce.category_to_image.picking.pick import Among, pick, pick_rows
from diptych.commerce.category_to_image.picking.picks import Picks

__all__ = ["DISTINCT", "Among", "Distinct", "Picks", "pick", "pick_rows"]
