"""Sampling designs of official statistics."""
