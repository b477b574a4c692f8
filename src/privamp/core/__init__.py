"""The basic types: neighbours, populations, profiles, mechanisms, designs, theorems, guarantees, samples."""
