"""Granularity: how much captions say and how specifically, by features that are counted (thesis section 5.3)."""
