"""Arithmetic that rounds in a stated direction: log domain, outward rounding, bracketed roots."""
