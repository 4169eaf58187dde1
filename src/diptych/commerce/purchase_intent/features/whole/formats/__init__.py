"""Known tables of whole sessions; adding one is one file here."""
