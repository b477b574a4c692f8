"""Engines: where the data is. One kernel (kernel.py) decides in all of them who is drawn."""
