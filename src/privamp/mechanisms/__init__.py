"""Mechanisms: what is computed on the sample and the noise that hides one record, one file per kind."""
