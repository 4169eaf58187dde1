"""Variants: which choice of protocol would explain a printed number."""
