"""One file per way of searching; each declares itself to ``diptych.index.engine.ENGINES``."""
