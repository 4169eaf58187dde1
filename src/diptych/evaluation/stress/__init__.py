"""Stress: an encoder queried with perturbed captions and images over a gallery that stays as it is."""
