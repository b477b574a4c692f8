"""Randomness: keys, the keyed function that decides who is drawn, the cryptographic noise stream."""
