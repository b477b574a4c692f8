"""A thousand rounds, a fresh draw each: compose, read both bounds, then solve for the noise."""

from privamp import Gaussian, Poisson, amplify, calibrate, compose

delta = 1e-5
one_round = amplify(Gaussian(sigma=1.0), Poisson(rate=0.01))
for rounds in (1, 10, 100):
    print(f"{rounds:5d} rounds: epsilon at most {compose(one_round, rounds).epsilon(delta):.4f}")

thousand = compose(one_round, 1000)
least, most = thousand.lower.epsilon(delta), thousand.epsilon(delta)
print(f" 1000 rounds: epsilon at most {most:.4f} and, by an attack, at least {least:.4f}")
assert 1.8282 <= most <= 1.8292
assert 0.98 * 1.8282 <= least <= 1.8283

mixed = compose([compose(one_round, 500), compose(amplify(Gaussian(2.0), Poisson(0.02)), 500)])
print(f"500 of one kind and 500 of another: epsilon {mixed.epsilon(delta):.4f}")

noise = calibrate(Gaussian, Poisson(rate=0.01), epsilon=1.0, delta=delta, steps=100, within=(0.5, 2.0))
reached = compose(amplify(noise, Poisson(rate=0.01)), 100).epsilon(delta)
print(f"for epsilon 1 over 100 rounds take sigma {noise.sigma:.4f} (it reaches {reached:.6f})")
assert reached <= 1.0
