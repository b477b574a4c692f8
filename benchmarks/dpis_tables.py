"""Train every cell of DPIS Tables 3 to 6 on a GPU, several at a time, and keep each run as a line of JSON.

    python benchmarks/dpis_tables.py --save runs.jsonl [--data MNIST FMNIST] [--seeds 5] [--jobs 12] [--minutes 8.5]
    python benchmarks/dpis_tables.py --collect runs.jsonl more.jsonl > src/privamp/papers/dpis/measured.json

All cells are trained with seed 1, then all with seed 2, and so on; what the file already has is left out, so a run that
was stopped goes on with the same command. --optimizer Adam --learning-rate 0.01 takes another optimiser than the tables
(the paper has SGD and Adam, and does not print which where); --change keeps cells of DPIS with one of these options
("" for none). --minutes starts nothing that might not end in time. --collect keeps the
seeds that every cell of a data set has, with where and when they were run: `privamp reproduce dpis-table-3` prints
those numbers as measured there. --tiny tries the script on a processor.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))
for threads in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

from privamp.papers.dpis.cells import Cell, every_cell  # noqa: E402
from privamp.papers.dpis.settings import DATA, FULL  # noqa: E402

Asked = tuple[Cell, int]
Noise = tuple[str, str, float]
TINY = {"records": 400, "tests": 200, "batch": 40, "steps": 8}


def one(cell: Cell, seed: int, device: str, changes: dict[str, Any], noises: dict[Noise, Any]) -> dict[str, Any]:
    """One run, as a line of the file."""
    import torch

    from privamp.errors import Infeasible
    from privamp.papers.dpis import training
    from privamp.testing import seeded_key

    torch.set_num_threads(1)
    training.constant_noise = lambda rate, steps, epsilon, delta: noises["constant", cell.data, epsilon]
    training.decaying = lambda setting, epsilon: noises["falling", cell.data, epsilon]
    torch.manual_seed(seed)
    began = time.perf_counter()
    try:
        key = seeded_key(seed)
        setting = replace(FULL[cell.data], **changes)
        found = training.trained(cell.method, setting, cell.epsilon, device=device, key=key, **cell.options)
        result = asdict(found)
    except Infeasible as error:
        result = {"accuracy": None, "steps": 0, "gradients": 0, "why": str(error)}
    return {**asdict(cell), "seed": seed, **result, "seconds": round(time.perf_counter() - began, 2)}


def changes_of(options: argparse.Namespace) -> dict[str, Any]:
    """What is other than in the settings of the tables."""
    given = {"optimizer": options.optimizer, "learning_rate": options.learning_rate}
    return (TINY if options.tiny else {}) | {name: value for name, value in given.items() if value is not None}


def calibrated(cells: list[Cell], pool: ProcessPoolExecutor, file: Path | None) -> dict[Noise, Any]:
    """The noise of every cell of DP-SGD, each question once; those that the file answers are not asked again."""
    found = {tuple(question): answer for question, answer in json.loads(file.read_text())} if file else {}
    asked = [(kind_of(c), c.data, c.epsilon) for c in cells if c.method != "DPIS"]
    new = [question for question in dict.fromkeys(asked) if question not in found]
    return found | dict(zip(new, pool.map(noise, new), strict=True))


def kind_of(cell: Cell) -> str:
    return "falling" if cell.method == "DP-SGD-Decay" else "constant"


def noise(question: Noise) -> Any:
    from privamp.papers.dpis import training

    kind, data, epsilon = question
    setting = FULL[data]
    if kind == "falling":
        return training.decaying(setting, epsilon)
    return training.constant_noise(setting.rate, setting.steps, epsilon, setting.delta)


def calibrate(options: argparse.Namespace) -> None:
    """Print what --noises reads."""
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        found = calibrated([cell for cell in every_cell() if cell.data in options.data], pool, options.noises)
    print(json.dumps([[list(question), answer] for question, answer in found.items()]))


def known(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def asked_for(options: argparse.Namespace) -> list[Asked]:
    cells = [cell for cell in every_cell() if cell.data in options.data]
    if options.method:
        cells = [cell for cell in cells if cell.method in options.method]
    if options.change:
        cells = [cell for cell in cells if cell.change in options.change]
    done = {(Cell(r["data"], r["method"], r["epsilon"], r["change"]), r["seed"]) for r in known(options.save)}
    return [(cell, seed) for seed in range(1, options.seeds + 1) for cell in ordered(cells) if (cell, seed) not in done]


def ordered(cells: list[Cell]) -> list[Cell]:
    """Those of one input together, since each process keeps the inputs it has read."""
    return sorted(cells, key=lambda c: (c.data, c.method in ("DPIS", "DP-SGD-HF")))


def finished(options: argparse.Namespace, stop: float) -> Iterator[dict[str, Any]]:
    waiting = asked_for(options)
    print(f"{len(waiting)} runs to make", flush=True)
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        noises = calibrated([cell for cell, _ in waiting], pool, options.noises)
        print(f"noise calibrated after {options.began():.0f} s", flush=True)
        running: set[Future[dict[str, Any]]] = set()
        longest: dict[str, float] = {}
        while running or waiting:
            while waiting and len(running) < options.jobs:
                cell, seed = waiting[0]
                if time.monotonic() + 1.3 * longest.get(cell.data, 0.0) > stop:
                    print(f"{len(waiting)} runs are left for another time", flush=True)
                    waiting.clear()
                    break
                waiting.pop(0)
                running.add(pool.submit(one, cell, seed, options.device, changes_of(options), noises))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                result = future.result()
                longest[result["data"]] = max(longest.get(result["data"], 0.0), result["seconds"])
                yield result


def train(options: argparse.Namespace) -> None:
    import torch

    stop = time.monotonic() + 60.0 * options.minutes
    where = torch.cuda.get_device_name() if options.device != "cpu" else platform.processor() or "a processor"
    facts = {"device": where, "torch": torch.__version__, "date": time.strftime("%Y-%m-%d", time.gmtime())}
    facts |= changes_of(options)
    with options.save.open("a") as file:
        for count, result in enumerate(finished(options, stop), 1):
            file.write(json.dumps({**result, **facts}) + "\n")
            file.flush()
            if count % 20 == 1:
                print(f"{options.began():.0f} s: {count} runs, the last one {result}", flush=True)


def collect(files: list[Path]) -> None:
    """One file with the seeds that every cell of a data set has."""
    runs = [run for file in files for run in known(file)]
    kept = []
    for data in DATA:
        cells = [cell for cell in every_cell() if cell.data == data]
        of = {
            (c, s): r for r in runs for c, s in [(Cell(r["data"], r["method"], r["epsilon"], r["change"]), r["seed"])]
        }
        seeds = [s for s in range(1, 100) if all((cell, s) in of for cell in cells)]
        kept += [of[cell, seed] for cell in cells for seed in seeds]
    facts = sorted({(r["device"], r["torch"], r["date"]) for r in kept})
    names = ("data", "method", "epsilon", "change", "seed", "accuracy", "steps", "gradients", "seconds")
    lines = ",\n".join("  " + json.dumps([r[name] for name in names]) for r in kept)
    about = {
        "measured": [", ".join(("torch " + t, d, w)) for w, t, d in facts],
        "command": " ".join(__doc__.split("\n")[2:3]).strip(),
    }
    settings = {data: asdict(setting) for data, setting in FULL.items()}
    print(f'{{"about": {json.dumps(about)},\n "settings": {json.dumps(settings)},')
    print(f' "columns": {json.dumps(names)},\n "runs": [\n{lines}\n]}}')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", type=Path, default=Path("dpis-runs.jsonl"))
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--method", nargs="+")
    parser.add_argument("--change", nargs="+")
    parser.add_argument("--optimizer", choices=("SGD", "Adam"))
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--noises", type=Path, help="a file that --calibrate printed")
    parser.add_argument("--calibrate", action="store_true", help="print the noise multipliers and end")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--collect", type=Path, nargs="+")
    options = parser.parse_args()
    if options.collect:
        collect(options.collect)
        return
    if options.calibrate:
        calibrate(options)
        return
    start = time.monotonic()
    options.began = lambda: time.monotonic() - start
    train(options)


if __name__ == "__main__":
    main()
