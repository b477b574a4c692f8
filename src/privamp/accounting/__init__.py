"""Profiles into privacy-loss distributions and back, composition, and mechanisms that share a sample."""
