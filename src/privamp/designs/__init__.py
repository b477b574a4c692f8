"""Sampling designs, one file each: how it draws, its exact law, its theorems."""
