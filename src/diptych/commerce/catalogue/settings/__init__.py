"""Which category of its paths a product is paired with, by name."""

from diptych.commerce.catalogue.settings.declaration import SETTINGS, Setting
from diptych.commerce.catalogue.settings.targets import asking_nodes, targets_of

__all__ = ["SETTINGS", "Setting", "asking_nodes", "targets_of"]
