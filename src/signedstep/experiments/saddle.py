"""The paper's Figure 1 as numbers: on a non-convex function of two variables, which direction decreases f most?

The function is Himmelblau's. At a point the directions are steepest descent, Newton's (exact Hessian) and its negative;
each gets the same Wolfe search and, independently of any search, the lowest value on its ray before f first rises.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from signedstep.linesearch import Wolfe

POINT = (0.6, 2.5)
DIRECTIONS = ("gradient", "Newton", "negated Newton")
REACH = 5.0
"""How far a ray is followed."""
EXTENT = 5.0
"""The map shows the square from -EXTENT to EXTENT."""


@dataclass(frozen=True)
class Ray:
    """One direction from a point, of unit length."""

    name: str
    direction: np.ndarray
    slope: float
    step: float
    """The step of the Wolfe search; 0 where it refuses because the direction points uphill."""
    decrease: float
    """f at the point minus f after that step."""
    lowest: float
    """f at the point minus the lowest f on the ray before it first rises: 0 along an ascent direction."""


def f(x: Tensor) -> Tensor:
    """Himmelblau's function, of the last dimension."""
    u, v = x[..., 0], x[..., 1]
    return (u**2 + v - 11) ** 2 + (u + v**2 - 7) ** 2


def directions(x: Tensor) -> Tensor:
    """The unit directions, [3, 2], in the order of `DIRECTIONS`."""
    g = torch.func.grad(f)(x)
    newton = -torch.linalg.solve(torch.func.jacrev(torch.func.grad(f))(x), g)
    rows = torch.stack([-g, newton, -newton])
    return rows / rows.norm(dim=1, keepdim=True)


@lru_cache
def rays(point: tuple[float, float] = POINT) -> list[Ray]:
    """The three directions from a point and what each of them brings."""
    x = torch.tensor(point, dtype=torch.float64)
    found = []
    for name, p in zip(DIRECTIONS, directions(x), strict=True):
        slope = (torch.func.grad(f)(x) @ p).item()

        def phi(t: float, p: Tensor = p) -> tuple[float, float]:
            at = x + t * p
            return f(at).item(), (torch.func.grad(f)(at) @ p).item()

        search = Wolfe()(phi, f(x).item(), slope, 1.0)
        found.append(Ray(name, p.numpy(), slope, search.t, f(x).item() - search.f, _lowest(x, p).item()))
    return found


@lru_cache
def mixed(point: tuple[float, float] = POINT, shares: int = 99) -> float:
    """The most that any non-negative combination of steepest descent and Newton's direction can decrease f."""
    x = torch.tensor(point, dtype=torch.float64)
    gradient, newton, _ = directions(x)
    share = torch.linspace(0, 1, shares + 2, dtype=torch.float64)[1:-1, None]
    return _lowest(x, share * gradient + (1 - share) * newton).max().item()


@lru_cache
def winners(size: int = 121) -> tuple[np.ndarray, np.ndarray]:
    """Over a grid of points, [size, size]: which direction goes down farthest, and where Newton's points uphill."""
    line = torch.linspace(-EXTENT, EXTENT, size, dtype=torch.float64)
    grid = torch.stack(torch.meshgrid(line, line, indexing="xy"), dim=-1).reshape(-1, 2)
    three = torch.func.vmap(directions)(grid)
    gains = _lowest(grid[:, None], three)
    uphill = (torch.func.vmap(torch.func.grad(f))(grid) * three[:, 1]).sum(dim=1) > 0
    return gains.argmax(dim=1).reshape(size, size).numpy(), uphill.reshape(size, size).numpy()


def _lowest(x: Tensor, p: Tensor) -> Tensor:
    """f(x) minus the lowest f on the rays x + t p, t from 0 to REACH, before f first rises."""
    t = torch.linspace(0, REACH, 201, dtype=torch.float64)[:, None]
    length = p.norm(dim=-1, keepdim=True).clamp_min(math.ulp(1.0))
    values = f(x[..., None, :] + t * (p / length)[..., None, :])
    rises = (values.diff(dim=-1) > 0).cumsum(dim=-1)
    return f(x) - torch.where(rises == 0, values[..., 1:], f(x)[..., None]).amin(dim=-1)
