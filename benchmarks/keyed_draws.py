"""What the cryptographic draws cost next to plain NumPy ones, in one run.

    python benchmarks/keyed_draws.py

Every line is a ratio to a named baseline measured in the same run, so the machine cancels; the nanoseconds
beside it are for orientation only and nothing is asserted about them.
"""

import time

import numpy as np

from privamp.chance.discrete import discrete_gaussian, discrete_laplace
from privamp.chance.keyed import keep, keyed_numbers, keyed_pairs, smallest
from privamp.chance.keys import Key
from privamp.chance.stream import Stream
from privamp.chance.texts import Texts

RECORDS = 2_000_000
TEXTS = 100_000
DRAWS = 200_000


def cost(work, n, repeats=5):
    """Best of a few runs, in nanoseconds of processor time an item; the first run warms up."""
    work()
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best / n * 1e9


def main():
    key, stream, rng = Key.generate(), Stream.from_os(), np.random.default_rng()
    ids = np.arange(RECORDS, dtype=np.uint64)
    texts = ids[:TEXTS].astype(str)
    as_read = Texts.of(texts)  # bytes in a row, as Arrow holds a column of text
    codes = Texts.of(np.array([f"{i:08x}-0000-4000-8000-{i:012x}" for i in range(TEXTS)]))  # as long as a UUID
    strings = texts.astype(object)
    high, low = keyed_pairs(key, ids)

    def numpy_words():
        return rng.integers(0, 2**64, RECORDS, dtype=np.uint64)

    baselines = {
        "NumPy 64-bit words": cost(numpy_words, RECORDS),
        "NumPy normal": cost(lambda: rng.standard_normal(RECORDS), RECORDS),
        "NumPy Laplace": cost(lambda: rng.laplace(size=RECORDS), RECORDS),
        "NumPy argpartition": cost(lambda: np.argpartition(high, 999), RECORDS),
    }
    rows = [
        ("keyed numbers, whole ids", "NumPy 64-bit words", cost(lambda: keyed_numbers(key, ids), RECORDS)),
        ("keyed pairs, whole ids", "NumPy 64-bit words", cost(lambda: keyed_pairs(key, ids), RECORDS)),
        ("keyed numbers, text of a column", "NumPy 64-bit words", cost(lambda: keyed_numbers(key, as_read), TEXTS)),
        ("keyed numbers, 36 letters", "NumPy 64-bit words", cost(lambda: keyed_numbers(key, codes), TEXTS)),
        ("keyed numbers, NumPy text", "NumPy 64-bit words", cost(lambda: keyed_numbers(key, texts), TEXTS)),
        ("keyed numbers, Python strings", "NumPy 64-bit words", cost(lambda: keyed_numbers(key, strings), TEXTS)),
        ("keep at p = 0.01", "NumPy 64-bit words", cost(lambda: keep(high, 0.01), RECORDS)),
        ("1000 smallest", "NumPy argpartition", cost(lambda: smallest(high, low, 1000), RECORDS)),
        ("stream words", "NumPy 64-bit words", cost(lambda: stream.words(RECORDS), RECORDS)),
        ("stream normals", "NumPy normal", cost(lambda: stream.normals(RECORDS), RECORDS)),
        ("stream Laplaces", "NumPy Laplace", cost(lambda: stream.laplaces(RECORDS), RECORDS)),
    ]
    for scale in (10.0, 1000.3):
        laplace = cost(lambda s=scale: discrete_laplace(stream, s, DRAWS), DRAWS)
        gaussian = cost(lambda s=scale: discrete_gaussian(stream, s, DRAWS), DRAWS)
        rows.append((f"discrete Laplace, scale {scale:g}", "NumPy Laplace", laplace))
        rows.append((f"discrete Gaussian, sigma {scale:g}", "NumPy normal", gaussian))

    for name, nanoseconds in baselines.items():
        print(f"{name:32} {nanoseconds:8.1f} ns   baseline")
    for name, baseline, nanoseconds in rows:
        print(f"{name:32} {nanoseconds:8.1f} ns   {nanoseconds / baselines[baseline]:6.1f} x {baseline}")


if __name__ == "__main__":
    main()
