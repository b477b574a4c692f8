"""What banded noise does to accuracy: DP-SGD, banded noise, balls in bins and Opacus, tuned alike.

    python benchmarks/bands_accuracy.py [--quick | --full] [--task mnist adult] [--epsilon 1 2 4 8] [--seeds 3]
    python benchmarks/bands_accuracy.py --full --device cuda --jobs 8     # the sizes for a machine with a GPU

Rows, all with the same rate, steps, clip, epsilon and delta, each with the least noise that its theorem allows:

    DP-SGD          Poisson batches, independent noise
    banded          cyclic Poisson batches, noise correlated in as many bands as `plan_bands` chooses
    balls in bins   every record once an epoch, independent noise
    Opacus          Poisson batches by Opacus' ghost clipping with the noise of the first row, where Opacus is installed

Every row is trained with every learning rate of the task and the first --tuning seeds (all when not given). The
learning rate of a row is the one with their best mean accuracy on one half of the test part; with that learning rate,
and with twice that, every seed is trained, and the accuracy on the other half is printed. Differences are paired by
seed. The tasks: bands_tasks.py.

Every run is added to --save as soon as it ends, and one that is there is not made again. Data: see dpis_comparison.py.
"""

import argparse
import math
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from bands_tasks import BALLS, BANDED, CLIP, DELTA, FULL, GHOST, POISSON, ROWS, SMALL, Cell, Task, planned, trained
from dpis_comparison import find_folder, mean_and_error
from kept_runs import Facts, KeptRuns


class Grid:
    """All runs of the options, made or found."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.kept = options, KeptRuns(options.save)
        self.seeds = range(options.first_seed, options.first_seed + options.seeds)
        self.tasks: dict[str, Task] = {name: options.sizes[name] for name in options.task}
        self.plans = {(name, e): self.plan(task, e) for name, task in self.tasks.items() for e in options.epsilon}

    def plan(self, task: Task, epsilon: float) -> Facts:
        asked = {"plan": [task.records, task.batch, task.steps], "epsilon": epsilon}
        return self.kept.found_or_made(asked, lambda: planned(task, epsilon))

    def rows(self) -> list[str]:
        return [row for row in self.options.row if row != GHOST or find_spec("opacus") is not None]

    def cell(self, name: str, row: str, epsilon: float, learning_rate: float, seed: int) -> Cell:
        plan = self.plans[name, epsilon]
        bands = plan["bands"] if row == BANDED else 1
        return Cell(self.tasks[name], row, epsilon, learning_rate, seed, bands, plan["noise"][row])

    def whole(self) -> Iterator[tuple[str, Cell]]:
        """What chooses the learning rates: one seed of everything first, so that a run that is cut short leaves whole
        seeds."""
        for seed in self.seeds[: self.options.tuning]:
            for name, task in self.tasks.items():
                for epsilon in self.options.epsilon:
                    for row in self.rows():
                        for learning_rate in task.learning_rates:
                            yield name, self.cell(name, row, epsilon, learning_rate, seed)

    def runs(self, name: str, row: str, epsilon: float, learning_rate: float) -> list[Facts]:
        made = [self.kept.found(self.cell(name, row, epsilon, learning_rate, seed).asked) for seed in self.seeds]
        return [run for run in made if run is not None]

    def best(self, name: str, row: str, epsilon: float) -> float:
        """The learning rate with the best mean on the half that chooses."""
        seeds = self.seeds[: self.options.tuning]
        found = {rate: self.runs(name, row, epsilon, rate) for rate in self.tasks[name].learning_rates}
        means = {
            rate: float(np.mean([run["chosen_by"] for run in runs if run["seed"] in seeds] or [-1.0]))
            for rate, runs in found.items()
        }
        return max(means, key=lambda rate: means[rate])

    def chosen(self, times: float) -> Iterator[tuple[str, Cell]]:
        """The runs of every seed at so many times the best learning rate."""
        for seed in self.seeds:
            for name in self.tasks:
                for epsilon in self.options.epsilon:
                    for row in self.rows():
                        rate = times * self.best(name, row, epsilon)
                        yield name, self.cell(name, row, epsilon, rate, seed)

    def make(self, cells: Iterable[tuple[str, Cell]], pool: ProcessPoolExecutor | None) -> None:
        left = {cell: name for name, cell in cells if self.kept.found(cell.asked) is None}
        for count, (cell, found) in enumerate(finished(list(left), self.options, pool), 1):
            self.kept.add(cell.asked, {"task": left[cell], **found})
            if count % 20 == 0:
                print(f"{count} of {len(left)} runs", flush=True)


def finished(
    cells: list[Cell], options: argparse.Namespace, pool: ProcessPoolExecutor | None
) -> Iterator[tuple[Cell, Facts]]:
    """The runs as they end."""
    where = options.device, options.folder
    if pool is None:
        yield from ((cell, trained(cell, *where)) for cell in cells)
        return
    running = {pool.submit(trained, cell, *where): cell for cell in cells}
    yield from ((running[future], future.result()) for future in as_completed(running))


def shown(values: list[float], sign: str = "") -> str:
    if not values:
        return ""
    mean, error = mean_and_error(values)
    return f"{mean:{sign}.2f}" + ("" if math.isnan(error) else f" ± {error:.2f}")


def apart(first: list[Facts], second: list[Facts]) -> list[float]:
    others = {run["seed"]: run["accuracy"] for run in second}
    return [run["accuracy"] - others[run["seed"]] for run in first if run["seed"] in others]


def lines_of(grid: Grid, name: str) -> Iterator[list[str]]:
    """The table of a task, row by row."""
    at, rows = grid.options.epsilon, grid.rows()
    plans = [grid.plans[name, e] for e in at]
    yield ["bands (predicted error of prefix sums)", *(f"{p['bands']} ({p['ratio']:.2f})" for p in plans)]
    best = {row: [grid.best(name, row, e) for e in at] for row in rows}
    for times, words in ((1.0, ""), (2.0, ", twice the learning rate")):
        rates = {row: [times * rate for rate in best[row]] for row in rows}
        runs = {row: runs_at(grid, name, row, rates[row]) for row in rows}
        for row in rows:
            texts = [shown([run["accuracy"] for run in some]) for some in runs[row]]
            yield [row + words, *(f"{t} ({rate:g})" if t else "" for t, rate in zip(texts, rates[row], strict=True))]
        for row, other in ((BANDED, POISSON), (BANDED, GHOST), (BALLS, POISSON)):
            if row in runs and other in runs:
                yield [f"{row} − {other}{words}", *differences(runs[row], runs[other])]
    if {BANDED, POISSON} <= set(rows):
        rates_of_both = [2.0 * rate for rate in best[POISSON]]
        both = [runs_at(grid, name, row, rates_of_both) for row in (BANDED, POISSON)]
        yield [f"{BANDED} − {POISSON}, both at twice the learning rate of {POISSON}", *differences(*both)]


def runs_at(grid: Grid, name: str, row: str, rates: list[float]) -> list[list[Facts]]:
    """The runs at one learning rate for each epsilon."""
    return [grid.runs(name, row, e, rate) for e, rate in zip(grid.options.epsilon, rates, strict=True)]


def differences(first: list[list[Facts]], second: list[list[Facts]]) -> list[str]:
    return [shown(apart(*pair), "+") for pair in zip(first, second, strict=True)]


def tell(grid: Grid) -> None:
    for name, task in grid.tasks.items():
        cells = {cell for cells in (grid.whole(), grid.chosen(1.0), grid.chosen(2.0)) for _, cell in cells}
        made = [run for cell in cells if (run := grid.kept.found(cell.asked))]
        seconds = sum(run["seconds"] for run in made if run["task"] == name)
        tuning = grid.options.tuning or grid.options.seeds
        rates = ", ".join(f"{rate:g}" for rate in task.learning_rates)
        print(
            f"\n{name}: {task.model}, {task.records} records, batch {task.batch}, {task.steps} steps, clip {CLIP:g}, "
            f"SGD with momentum 0.9, learning rates {rates}, delta {DELTA:g}, {grid.options.seeds} seeds "
            f"({tuning} tune); {grid.options.device}, torch {torch.__version__}; {seconds:.0f} s\n"
        )
        print(f"| row (learning rate) | {' | '.join(f'ε = {e:g}' for e in grid.options.epsilon)} |")
        print("|---" * (1 + len(grid.options.epsilon)) + "|")
        for line in lines_of(grid, name):
            print(f"| {' | '.join(line)} |")


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", nargs="+", choices=sorted({*SMALL, *FULL}))
    parser.add_argument("--row", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 2.0, 4.0, 8.0])
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--tuning", type=int, help="seeds that choose the learning rates")
    parser.add_argument("--first-seed", type=int, default=1, help="to share the seeds among machines")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder")
    parser.add_argument("--save", type=Path, default=Path("bands-runs.jsonl"))
    parser.add_argument("--table", action="store_true", help="print what is saved, make no runs")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="Adult at two epsilons, one seed: under a minute")
    size.add_argument("--full", action="store_true", help="whole data sets, more steps, five seeds: for a GPU")
    options = parser.parse_args(arguments)
    options.sizes = FULL if options.full else SMALL
    if options.quick:
        options.task, options.epsilon, options.seeds = ["adult"], [1.0, 8.0], 1
    options.task = options.task or list(options.sizes)
    missing = [name for name in options.task if name not in options.sizes]
    if missing:
        parser.error(f"task {missing[0]} has no such size; use {', '.join(options.sizes)}")
    options.seeds = options.seeds or (5 if options.full else 3)
    options.folder = find_folder(options.folder, options.sizes[options.task[0]].data)
    return options


def main(arguments: list[str] | None = None) -> None:
    grid = Grid(parsed(arguments))
    if not grid.options.table:
        jobs = grid.options.jobs
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) if jobs > 1 else nullcontext() as pool:
            grid.make(grid.whole(), pool)
            for times in (1.0, 2.0):
                grid.make(grid.chosen(times), pool)
    tell(grid)


if __name__ == "__main__":
    main()
