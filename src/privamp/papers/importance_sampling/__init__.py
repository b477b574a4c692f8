"""Importance sampling with privacy guarantees."""
