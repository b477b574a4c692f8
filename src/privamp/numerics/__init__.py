"""Arithmetic that errs on the stated side: log domain, outward rounding, bracketed roots."""
