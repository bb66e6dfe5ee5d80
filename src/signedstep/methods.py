"""Methods by name: `"<curvature>"` or `"<curvature>/<globalization>"`, and what they are made of."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from signedstep.catalogue import CURVATURES, GLOBALIZATIONS, PARTS, Knobs, Model, Settings
from signedstep.curvature import Curvature, Gamma
from signedstep.globalization import Globalization
from signedstep.linesearch import Armijo, Wolfe, Zoom
from signedstep.rounding import UNITS
from signedstep.space import Space

AUTO = "mix/wolfe"
"""The best method by our own benchmarks (docs/benchmarks.md)."""


class Method(NamedTuple):
    """A method ready to run: `name` in full, its parts and its policy after a failed search."""

    name: str
    curvature: Curvature
    globalization: Globalization
    on_failure: str


def methods() -> dict[str, str]:
    """All names of methods, each with a description in one line.

    `"<curvature>/<globalization>"` says which model of the Hessian is learned or evaluated, and how it is made into a
    step that is safe; `"<curvature>"` alone takes the globalization that suits it best. `"auto"` is the method we
    recommend, and takes a globalization, too, as in `"auto/trust"`. docs/methods.md compares them.

    >>> import signedstep
    >>> signedstep.methods()["lsr1"]
    'limited-memory symmetric rank one; short for lsr1/flip'
    >>> [name for name in signedstep.methods() if name.startswith("cg/")]
    ['cg/wolfe', 'cg/wolfe+-']
    """
    names = {"auto": f"the best method we have, now {AUTO}; may change between versions"}
    for name, model in CURVATURES.items():
        names[name] = f"{model.text}; short for {name}/{model.globalization}"
        for how in globalizations(name):
            strategy = GLOBALIZATIONS[how]
            names[f"{name}/{how}"] = f"{model.text}; {strategy.text}"
    return names


def globalizations(curvature: str) -> list[str]:
    """The globalizations that a curvature model can be combined with."""
    no_spectrum = CURVATURES[curvature].no_spectrum
    return [how for how, strategy in GLOBALIZATIONS.items() if not (no_spectrum and strategy.needs_spectrum)]


def full_name(name: str | None) -> str:
    """The full name of a method: `auto` resolved, the default globalization added."""
    if name is None:
        name = "auto"
    if not isinstance(name, str):
        raise TypeError(f"method must be a name such as 'lsr1/wolfe+-', got {name!r}")
    name = name.lower()
    curvature, slash, globalization = (AUTO if name == "auto" else name).partition("/")
    curvature = AUTO.partition("/")[0] if curvature == "auto" else curvature
    model = CURVATURES.get(curvature)
    if model is None or (slash and globalization not in GLOBALIZATIONS):
        raise ValueError(
            f"unknown method {name!r}; valid are 'auto', a curvature model ({', '.join(CURVATURES)}) "
            f"or '<curvature>/<globalization>' with a globalization of {', '.join(GLOBALIZATIONS)}"
        )
    if slash and globalization not in globalizations(curvature):
        raise ValueError(
            f"method {name!r}: {model.no_spectrum}, and {globalization!r} needs eigenvalues; "
            f"valid are {', '.join(f'{curvature}/{how}' for how in globalizations(curvature))}"
        )
    return f"{curvature}/{globalization if slash else model.globalization}"


def model_of(name: str) -> Model:
    """The curvature model of a method, by its full name."""
    return CURVATURES[name.partition("/")[0]]


def parts_in_words(name: str) -> str:
    """The parts of f that a method, by its full name, needs to see, for a message."""
    return " or ".join(PARTS[kind] for kind in model_of(name).needs_parts)


def _search(settings: Settings, model: Model, rounding: float) -> Armijo | Wolfe:
    limits = {"max_evals": settings.max_linesearch, "rounding": rounding}
    condition = model.condition if settings.condition is None else settings.condition
    if condition == "armijo":
        return Armijo(settings.c1, **limits)
    c2 = model.c2 if settings.c2 is None else settings.c2
    kind = Zoom if settings.search == "zoom" else Wolfe
    return kind(settings.c1, c2, condition, narrow=rounding, **limits)


def build(name: str | None, x0: Tensor, space: Space, options: Mapping[str, Any]) -> Method:
    """The parts of a method, shaped by options (the fields of `Settings`) and by size and precision of x0."""
    settings = Settings(**options)
    name = full_name(name)
    curvature, globalization = name.split("/")
    model, strategy = CURVATURES[curvature], GLOBALIZATIONS[globalization]
    eps = torch.finfo(x0.dtype).eps
    B = model.make(settings, Gamma.parse(model.gamma if settings.gamma is None else settings.gamma), space)
    rounding = UNITS * eps
    knobs = Knobs(
        space=space,
        floor=model.floor if settings.floor is None else settings.floor,
        delta=eps ** (2 / 3) if settings.delta is None else settings.delta,
        c1=settings.c1,
        rounding=rounding,
        trials=settings.max_linesearch,
        make_search=lambda: _search(settings, model, rounding),
    )
    how = strategy.make(knobs)
    if not space.whole and (B.dense or how.dense):
        raise ValueError(
            f"the method {name!r} works on an n x n matrix and needs whole vectors, here they are in slices over "
            "several ranks; use a model without one, such as 'lsr1'"
        )
    # A positive-only search over an indefinite model is what the paper shows to fail; let it, unless told otherwise.
    default = "stop" if globalization == "wolfe" and B.has_matrix and not B.definite else "restart"
    return Method(
        name,
        B,
        how,
        default if settings.on_failure is None else settings.on_failure,
    )
