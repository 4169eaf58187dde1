"""Pins: what a user runs, and the numbers it gave, stored and held bit for bit.

``python -m pins`` runs every pin in fixed-environment processes and compares it with ``pins/stored/NAME.json``;
``--fast`` runs those that ``tests/test_pins.py`` runs too; ``--update NAME …`` stores anew; ``--list`` lists.

=============== ==========================================================================================
registry.py     what a pin is: a name and a function that returns numbers as JSON
numbers.py      how an array becomes a short record, and how two records are compared
environment.py  the processes a pin runs in: one thread, one instruction set, no network, its own cache
worker.py       runs pins by name inside such a process
world.py        the small data sets and runs that pins share, made by the command line
adapters.py     the only file that knows module paths of the package and the files its verbs write
catalogue/      the pins, by subject
=============== ==========================================================================================
"""
