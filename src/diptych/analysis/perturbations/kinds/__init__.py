"""One file per family of perturbations; importing it adds its declarations to the registry."""
