"""Many rounds, a fresh draw each: compose, read both bounds, then solve for the noise."""

from privamp import Gaussian, Poisson, amplify, calibrate, compose
from privamp.numerics.printing import shown_down, shown_up

delta = 1e-5
one_round = amplify(Gaussian(sigma=1.0), Poisson(rate=0.01))
for rounds in (1, 10, 100, 1000):
    print(f"{rounds:5d} rounds: epsilon at most {shown_up(compose(one_round, rounds).epsilon(delta), decimals=4)}")
assert 1.8282 <= compose(one_round, 1000).epsilon(delta) <= 1.8292

hundred = compose(one_round, 100)
least, most = hundred.lower.epsilon(delta), hundred.epsilon(delta)
print(f"  100 rounds: the truth is between {shown_down(least)} (an attack) and {shown_up(most)} (certified)")
assert 0.98 * most < least < most

mixed = compose([hundred, compose(amplify(Gaussian(2.0), Poisson(0.02)), 50)])
print(f"  100 rounds of one kind and 50 of another: epsilon {shown_up(mixed.epsilon(delta))}")

noise = calibrate(Gaussian, Poisson(rate=0.01), epsilon=0.5, delta=delta, steps=10, within=(0.5, 2.0))
reached = compose(amplify(noise, Poisson(rate=0.01)), 10).epsilon(delta)
print(f"for epsilon 0.5 over 10 rounds take sigma {noise.sigma:.4f} (it reaches {reached:.6f})")
assert reached <= 0.5
