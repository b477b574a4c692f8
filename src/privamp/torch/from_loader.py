"""What a data loader says about a run, as Opacus takes it: rate, steps and number of records; and its options."""

from typing import Any

from torch.utils.data import BatchSampler, DataLoader

from ..core.log import logger
from ..errors import InvalidInput, NoTheorem

SIZE_IS_PUBLIC = "the number of records, from which the rate and the divisor of sums were taken, is public"


def check_loader(loader: Any) -> None:
    """Options of a loader that have no place here are named, with what to use instead."""
    if not isinstance(loader, DataLoader):
        return
    if loader.batch_sampler is not None and type(loader.batch_sampler) is not BatchSampler:
        raise NoTheorem(
            f"the data loader has a batch sampler of its own ({type(loader.batch_sampler).__name__}) for which no "
            "theorem is known; leave it out, and say how batches are drawn by sampler="
        )
    if loader.drop_last:
        raise InvalidInput(
            "drop_last=True has no meaning here, since batches are drawn anew and vary in size; leave it off, or take "
            "sampler=TruncatedPoisson(...) for a largest size"
        )
    if loader.num_workers:
        logger.info("records are read in this process, by their position; num_workers of the data loader is not used")


def sizes_of(loader: Any, epochs: Any) -> dict[str, Any]:
    """Rate, steps, population and length of an epoch that belong to a loader's batch size and so many epochs."""
    if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 1:
        raise InvalidInput(f"epochs must be a whole number from 1, got {epochs!r} instead")
    if not isinstance(loader, DataLoader) or loader.batch_size is None:
        raise InvalidInput(
            "epochs needs a DataLoader with a batch_size, from which the rate is taken; give one, or sample_rate, "
            "steps and population"
        )
    try:
        records, steps = len(loader.dataset), len(loader)
    except TypeError:
        raise InvalidInput(
            "the data set has no length, so records cannot be drawn by position; use a map-style Dataset"
        ) from None
    if not records:
        raise InvalidInput("the data set is empty, so no rate can be taken from it; give sample_rate and population")
    return {
        "sample_rate": min(1.0, loader.batch_size / records), "steps": epochs * steps, "population": records,
        "steps_per_epoch": steps,
    }  # fmt: skip
