"""Our methods as SciPy's own `minimize` takes them: as callables."""

from collections.abc import Callable
from dataclasses import dataclass

from signedstep.methods import full_name
from signedstep.minimize import minimize
from signedstep.result import Result


def method(name: str = "auto") -> Callable[..., Result]:
    """A method of ours, by its name in `signedstep.methods()`, as the `method` of `scipy.optimize.minimize`.

    SciPy hands over `jac`, `hess`, `hessp`, `tol`, `callback` and `options`, which mean what they do in
    `signedstep.minimize`, and returns our `Result`. The callable can be pickled.

    >>> import scipy.optimize, signedstep
    >>> found = scipy.optimize.minimize(scipy.optimize.rosen, [-1.2, 1.0], method=signedstep.method("lsr1/wolfe+-"))
    >>> found.x.round(3).tolist()
    [1.0, 1.0]
    """
    full_name(name)  # complains now, not at the first use
    return _Method(name)


@dataclass(frozen=True)
class _Method:
    """A method as SciPy calls it; can be pickled, as pools of processes need it."""

    name: str

    def __call__(self, fun, x0, **given) -> Result:
        names = ("args", "jac", "hess", "hessp", "bounds", "constraints", "tol", "callback")
        ours = {key: given.pop(key) for key in names if key in given}
        return minimize(fun, x0, method=self.name, options=given, **ours)

    def __repr__(self) -> str:
        return f"signedstep.method({self.name!r})"
