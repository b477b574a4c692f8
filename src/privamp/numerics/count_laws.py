"""Distributions of counts, loaded from scipy.stats when first used: the import takes longer than most answers."""

from typing import Any


class _Law:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(attribute)  # copying and pickling look for these
        from scipy import stats

        return getattr(getattr(stats, self._name), attribute)


binom, hypergeom, poisson = _Law("binom"), _Law("hypergeom"), _Law("poisson")
