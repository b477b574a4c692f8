"""Privacy-loss distributions from profiles and back, composition, and mechanisms that share a sample."""
