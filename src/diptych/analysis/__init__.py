"""Analyses of a trained encoder and its objective; what needs torch is imported when it is used."""
