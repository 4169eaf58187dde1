"""``diptych intent``: from raw shop logs to a calibrated, explained probability of a purchase."""
