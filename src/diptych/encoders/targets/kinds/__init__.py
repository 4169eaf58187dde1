"""Models that make latent targets, one file each."""
