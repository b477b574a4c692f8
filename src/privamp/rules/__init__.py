"""Rules: public functions of a record alone that say how likely it is kept, and what weight it gets then."""
