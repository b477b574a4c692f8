"""Training neural networks on importance-sampled batches. Nothing here imports torch until an engine is asked for."""
