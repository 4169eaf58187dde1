"""Feed corrupt and hostile inputs to every reader: ``python -m fuzz``; see :mod:`fuzz.campaign` for what counts."""
