"""Adapters for other libraries: one module per library, each with its own extra.

`dp_accounting` and `dp_events` (dp-accounting), `opacus`, `torch` (samplers of PyTorch), `opendp`, `jax_privacy`. A
module imports its library when it is imported itself; nothing else in privamp imports an adapter.
"""
