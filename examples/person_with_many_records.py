"""Protecting a person who has several records, and the coin that must not be shared."""

import math

from privamp import InvalidInput, Neighbors, Poisson, Population, PureDP, amplify

design, mechanism = Poisson(rate=0.01), PureDP(1.0)
for records in (1, 2, 5, 10):
    person = Neighbors.ADD_REMOVE.for_person(records)
    print(f"{records:2d} records, independent coins: epsilon {amplify(mechanism, design, person).epsilon():.4f}")
ten = amplify(mechanism, design, Neighbors.ADD_REMOVE.for_person(10)).epsilon()
assert math.isclose(ten, 10 * math.log1p(0.01 * math.expm1(1.0)), rel_tol=1e-9)

# If the ten records share an id they share a coin: all are in the sample, or none.
shared = amplify(PureDP(10.0), design).epsilon()
print(f"10 records, one shared coin:  epsilon {shared:.4f}")
assert shared > 30 * ten

try:
    Population(["ann", "bob", "ann"])
except InvalidInput as error:
    print("so ids must be unique:", error)
