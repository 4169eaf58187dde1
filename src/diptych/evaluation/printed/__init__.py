"""Conclusions from printed numbers: of how many queries they are shares, and what cannot be."""
