"""An optimizer around an engine that can be saved, loaded, copied and pickled between any two steps."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch.nn.parameter import is_lazy
from torch.optim.optimizer import Optimizer

from signedstep.distributed.link import lost_as_error
from signedstep.distributed.parallel import Parallel
from signedstep.engine import Engine
from signedstep.flat import Flat
from signedstep.history import History
from signedstep.optim import options as group_options
from signedstep.optim.snapshots import COUNTERS, check_loadable, copied, mapped, others, own, shapes
from signedstep.status import Status


class Resumable(Optimizer):
    """What an optimizer keeps between steps: an engine, the flat vector of its parameters, and counters.

    torch's `state` holds the counters only; the engine's own state joins them while somebody saves.
    """

    _parallel: Parallel | None = None  # of optimizers that were unpickled, too
    _method: str
    """The full name of the engine's method."""
    _built_with: dict[str, Any]
    """The method as it was asked for, and the options that shape it."""

    def state_dict(self) -> dict[str, Any]:
        """A snapshot: later steps do not change it. Load it, and training goes on bit for bit."""
        with lost_as_error():  # sums that were not needed before
            self._save()
        snapshot = super().state_dict()
        for group in snapshot["param_groups"]:  # a learning rate may be a tensor
            group.update({name: value.clone() for name, value in group.items() if isinstance(value, torch.Tensor)})
        self._note()  # the snapshot keeps what was saved to itself
        return snapshot

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a snapshot of the same method over parameters of the same shapes."""
        final: dict[str, Any] = {}

        def check(_: Any, given: dict[str, Any]) -> None:
            check_loadable(given, self._parameters(), self._options["method"], type(self).__name__)
            final.update(given)

        handle = self.register_load_state_dict_pre_hook(check)  # the last one: it sees what the others made of it
        try:
            super().load_state_dict(dict(state_dict))
        finally:
            handle.remove()
        for saved in final["state"].values():
            if "n_iter" in saved:  # not as torch has cast it: Gram matrices stay in double precision
                self._keep(copied(own(saved)))
        self._forget()

    def __getstate__(self) -> dict[str, Any]:
        if self._parallel:
            raise TypeError("an optimizer on several ranks cannot be copied or pickled; use state_dict()")
        self._save()
        given = {**super().__getstate__(), "state": self.state.copy()}
        self._note()  # what was saved is for the copy alone
        return given

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.defaults.pop("differentiable", None)  # torch adds it to optimizers that have loaded something
        self._forget()

    def _parameters(self) -> Flat:
        """The parameters as they are now, as one flat vector."""
        if self._are_lazy():
            raise ValueError("parameters of lazy modules have no shape before the model is used: call it once first")
        params = (p for group in self.param_groups for p in group["params"])
        return self._parallel.flat(params) if self._parallel else Flat(params)

    def _are_lazy(self) -> bool:
        return any(is_lazy(p) for group in self.param_groups for p in group["params"])

    @property
    def _options(self) -> dict[str, Any]:
        """Those of the first group, which all share; one that is younger than a loaded state has its default."""
        return {**self.defaults, **self.param_groups[0]}

    @property
    def _settings(self) -> dict[str, Any]:
        """The method and what shapes it."""
        return {"method": self._options["method"], **group_options.settings(self._options)}

    @property
    def _first(self) -> torch.Tensor:
        """The parameter under which the state is kept, as `torch.optim.LBFGS` does."""
        params = [group["params"] for group in self.param_groups if group["params"]]
        if not params:
            raise ValueError("there is nothing to train: no parameter group of this optimizer holds a parameter")
        return params[0][0]

    @property
    def _saved(self) -> dict[str, Any]:
        return next((own(kept) for kept in self.state.values() if "n_iter" in kept), {})

    def _keep(self, state: dict[str, Any]) -> None:
        """Keep a state under the first parameter, and under no other that was the first before: it may be gone."""
        for p, kept in [(p, kept) for p, kept in self.state.items() if "n_iter" in kept]:
            self.state[p] = others(kept)  # a new dict: snapshots have the old one
            if not self.state[p]:
                del self.state[p]
        self.state[self._first] = {**self.state[self._first], **state}

    def _forget(self) -> None:
        """Drop the engine; the next step makes one, from the saved state if there is one."""
        self._engine: Engine | None = None
        self._flat: Flat | None = None
        self._history = History(math.nan, math.nan)
        self._status = Status.RUNNING
        self._n_evals = self._saved.get("func_evals", 0)

    def _outdated(self, flat: Flat) -> bool:
        """Whether the engine, or the state to make one from, is for other parameters or options than those now."""
        saved = self._saved
        if self._engine and self._flat:  # users clear the state of torch's LBFGS to start it again
            return not saved or not flat.same(self._flat) or self._built_with != self._settings
        return "engine" in saved and (
            shapes(flat.layout) != shapes(saved["layout"]) or saved.get("shape") != self._settings
        )

    def _past(self, flat: Flat) -> str:
        """From what the next step starts: ranks that start from something else do other sums at other times."""
        engine, saved = self._engine, self._saved.get("engine")
        if engine and not self._outdated(flat):
            return f"a curvature model {_reached(engine.k, engine.evals, engine.at.f, engine.status.name)}"
        if saved and not self._outdated(flat):
            return f"a loaded curvature model {_reached(saved['k'], saved['evals'], saved['f'], saved['status'])}"
        return "no curvature model"

    def _drop(self) -> None:
        """Keep nothing but the counters."""
        self._note()
        counters = {name: self._saved[name] for name in COUNTERS if name in self._saved}
        self._engine, self._flat = None, None
        self._keep(counters)

    def _note(self) -> None:
        """Keep the counters that users of `torch.optim.LBFGS` read from its state; the engine has all the rest."""
        if self._engine:
            self._keep({"n_iter": self._engine.k, "func_evals": self._n_evals})
        elif self._saved:
            self._keep({**self._saved, "func_evals": self._n_evals})

    def _save(self) -> None:
        if (self._engine or self._saved) and self._outdated(self._parameters()):
            self._drop()
        if self._saved:
            self._keep(self._saved)
        if self._engine and self._flat:
            self._note()
            layout = [[list(shape), dtype] for shape, dtype in self._flat.layout]
            engine = mapped(self._flat.saved, self._engine.state())
            self.state[self._first].update(method=self._method, layout=layout, shape=self._built_with, engine=engine)


def _reached(k: int, evals: int, f: float, status: str) -> str:
    """How far an engine has come."""
    return f"after {k} iterations and {evals} evaluations at {f!r} ({status})"
