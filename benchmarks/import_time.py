"""How long `import privamp` takes beside `import numpy`: medians of 7 fresh interpreters each, in one run."""

import statistics
import subprocess
import sys
import time

RUNS = 7


def seconds(statement: str) -> float:
    """Wall time of one fresh interpreter that runs `statement`."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - started


def main() -> None:
    statements = {"nothing": "pass", "numpy": "import numpy", "privamp": "import privamp"}
    times: dict[str, list[float]] = {name: [] for name in statements}
    for _ in range(RUNS):  # interleaved, so that a busy moment touches all three
        for name, statement in statements.items():
            times[name].append(seconds(statement))
    median = {name: statistics.median(values) for name, values in times.items()}
    base = median["nothing"]
    for name in ("numpy", "privamp"):
        print(f"import {name:8s} {1000 * (median[name] - base):7.1f} ms above a bare interpreter")
    print(f"ratio privamp / numpy: {(median['privamp'] - base) / (median['numpy'] - base):.2f}")


if __name__ == "__main__":
    main()
