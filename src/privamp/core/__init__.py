"""The nouns: neighbours, populations, profiles, mechanisms, designs, theorems, guarantees, samples."""
