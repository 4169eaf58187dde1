"""The pins, by subject; importing a file registers its pins."""
