"""`privamp train`: the command, its data, its run."""
