"""A module is tried on made-up records once for every training mode in which it is used, and again when it gets hooks.

What mixes records may do so only after `model.train()`, or only after `model.eval()`; hooks may change what goes
forward and what comes back.
"""

from typing import TYPE_CHECKING, Any

from . import measuring, records_apart, wider

if TYPE_CHECKING:
    from .run import Run

Modes = tuple[bool, ...]
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Trial:
    """Which modes of the module were tried, and with which hooks."""

    def __init__(self, run: "Run", batch: Any) -> None:
        self._run, self._batch = run, batch
        self._tried: set[tuple[Modes, Any]] = set()
        self.is_trying = False

    def modes(self) -> Modes:
        """Which layers are in training mode now; norms that always stay in evaluation mode are left out."""
        still = {id(layer) for layer in self._run.recorder.layout.still}
        return tuple(layer.training and id(layer) not in still for layer in self._run.module.modules())

    def require(self, modes: Modes | None = None) -> None:
        """Try the module in these modes, or as it is, unless that was done; raise if it does not keep records apart."""
        now = self.modes()
        modes = now if modes is None else modes
        if (modes, self._hooks()) in self._tried:
            return
        run, recorder = self._run, self._run.recorder
        self.is_trying = True
        try:
            self._set(modes)
            with run.placed("made up", 0):
                before = run.unchanged.totals()
                measuring.settle(run, self._batch)
                records_apart.check(run, self._batch)
                wider.check(run, self._batch)
                run.unchanged.require_same(before)
        finally:
            self.is_trying = False
            self._set(now)
        if run.recorder is not recorder:
            self._tried = set()  # the others were tried with another way of measuring
        self._tried.add((modes, self._hooks()))

    def _hooks(self) -> Any:
        """The numbers of each layer's hooks, which are never used twice, whether its forward pass is another, and how
        pictures lie in memory."""
        hooks = tuple(
            (*(tuple(getattr(layer, kind)) for kind in _HOOKS), id(vars(layer).get("forward")))
            for layer in self._run.module.modules()
        )
        return hooks, self._run.recorder.is_channels_last

    def _set(self, modes: Modes) -> None:
        for layer, mode in zip(self._run.module.modules(), modes, strict=False):
            layer.training = mode
