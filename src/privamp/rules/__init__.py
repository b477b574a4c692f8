"""Rules: public functions that give each record its probability of being kept and its weight."""
