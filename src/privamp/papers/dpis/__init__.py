"""DPIS: importance sampling for private training."""
