"""Encoder families, one declaration per file; see :mod:`diptych.encoders.family`."""
