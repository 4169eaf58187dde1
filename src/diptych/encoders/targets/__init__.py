"""Latent targets: what a caption means, as a vector that another model made."""
