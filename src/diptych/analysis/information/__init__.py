"""The information audit: how much of what images and captions say their embeddings hold.

``answers`` is what is true of them, ``questions`` codes it; ``probes`` are fitted by ``probing``, which runs them with
their controls; ``audit`` does all of it and turns costs into shares with intervals; ``gap_of`` reads Theorem 1's gap.
"""
