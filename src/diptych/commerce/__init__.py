"""Shops: purchase intent from logs."""
