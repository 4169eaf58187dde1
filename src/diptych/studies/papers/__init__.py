"""Papers: what they print and what is run of it, as data; and in Python what formulas cannot say."""
