"""Floor 0, the ground: errors, registries, whole files, fingerprints, progress."""
