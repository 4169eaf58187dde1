"""One file per kind of perturbation; each adds its declarations to the registry when imported."""
