"""Ratios in one run: what is fast is measured against its floor and a peer, never against yesterday."""
