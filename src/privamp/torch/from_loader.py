"""Read a run's rate, steps and number of records from a data loader, as Opacus does, and check the loader's options."""

from typing import Any

from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

from ..core.design import Design
from ..core.log import logger
from ..core.schedule import Schedule
from ..errors import InvalidInput, NoTheorem
from .records import refuse_loader

SIZE_IS_PUBLIC = "the number of records, from which the rate and the divisor of sums were taken, is public"


def check_loader(loader: Any) -> None:
    """Reject loader options that are not supported, and say what to use instead."""
    if not isinstance(loader, DataLoader):
        return
    if loader.batch_sampler is not None and type(loader.batch_sampler) is not BatchSampler:
        raise NoTheorem(
            f"the data loader has its own batch sampler ({type(loader.batch_sampler).__name__}), for which no "
            "theorem is known; omit it, and choose how batches are drawn with sampler="
        )
    sampler, _, drops_last = _asked(loader)
    if loader.batch_size is None and loader.batch_sampler is not None and type(sampler) is not SequentialSampler:
        refuse_loader(loader, sampler)
    if drops_last:
        raise InvalidInput(
            "drop_last=True has no meaning here, because batches are drawn at random and vary in size; omit it, or use "
            "sampler=TruncatedPoisson(...) to limit their size"
        )
    if loader.num_workers:
        logger.info("records are read in this process, by position; num_workers of the data loader is ignored")


def _asked(loader: DataLoader[Any]) -> tuple[Any, int | None, bool]:
    """Sampler, batch size and drop_last, which a batch sampler may have in place of its loader."""
    inside = loader.batch_sampler
    if loader.batch_size is not None or not isinstance(inside, BatchSampler):
        return loader.sampler, loader.batch_size, loader.drop_last
    return inside.sampler, inside.batch_size, inside.drop_last


def filled(loader: Any, epochs: Any, sampler: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The sizes of a run of so many epochs, where `given` are those that were given. A design knows its rate, and a
    schedule its steps, which must be those of the loader."""
    taken = sizes_of(loader, epochs)
    if not isinstance(sampler, str):
        del taken["sample_rate"]
    if isinstance(sampler, Design) and (sampler.rates_by_class or getattr(sampler, "public_size", None)):
        del taken["population"]
    if isinstance(sampler, Schedule) and sampler.steps != taken["steps"]:
        raise InvalidInput(
            f"{sampler} has {sampler.steps} steps, but {epochs} epochs of the data loader have {taken['steps']}; "
            "change the batch size, epochs or sampler"
        )
    per_epoch = taken.pop("steps_per_epoch")
    twice = [name for name in ("sample_rate", "steps", "population") if name in taken and given[name] is not None]
    if twice:
        raise InvalidInput(f"epochs takes {', '.join(taken)} from the data loader; omit {twice[0]}")
    return {**given, **taken, "steps_per_epoch": given["steps_per_epoch"] or per_epoch}


def sizes_of(loader: Any, epochs: Any) -> dict[str, Any]:
    """Rate, steps, population and length of an epoch for a loader's batch size and this number of epochs."""
    if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 1:
        raise InvalidInput(f"epochs must be a whole number from 1, got {epochs!r} instead")
    batch_size = _asked(loader)[1] if isinstance(loader, DataLoader) else None
    if batch_size is None:
        raise InvalidInput(
            "epochs needs a DataLoader with a batch_size, which sets the rate; give one, or sample_rate, "
            "steps and population"
        )
    try:
        records, steps = len(loader.dataset), len(loader)
    except TypeError:
        raise InvalidInput(
            "the data set has no length, so records cannot be drawn by position; use a map-style Dataset"
        ) from None
    if not records:
        raise InvalidInput("the data set is empty, so it does not determine a rate; give sample_rate and population")
    return {
        "sample_rate": min(1.0, batch_size / records), "steps": epochs * steps, "population": records,
        "steps_per_epoch": steps,
    }  # fmt: skip
