"""Physics-informed networks: the mean squared residual of a differential equation plus that of its conditions.

tanh networks, Glorot's start, fixed points. Derivatives are carried forward through the layers (`Layers.jets`).
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from signedstep.experiments.bench.meter import Objective, by_autograd
from signedstep.experiments.bench.problems.base import BenchProblem
from signedstep.experiments.bench.problems.layers import Layers
from signedstep.experiments.problems import Place

Network = Callable[..., list[Tensor]]
"""Outputs and derivatives at points: `net(points, first, second)`, each [points, 1]."""
Residual = Callable[[Network], Tensor]
"""The loss of a network."""
X, T = 0, 1
"""The inputs of a network in space and time."""


class Domain(NamedTuple):
    """Points in a rectangle of space and time (or of the plane) and on its sides, in one precision."""

    inside: Tensor
    begin: Tensor
    """Where the second coordinate is least."""
    left: Tensor
    right: Tensor

    @classmethod
    def rectangle(cls, x: tuple[float, float], t: tuple[float, float], points: int, dtype: torch.dtype) -> "Domain":
        low, high = torch.tensor([x[0], t[0]]), torch.tensor([x[1], t[1]])
        unit = torch.quasirandom.SobolEngine(2, scramble=True, seed=0).draw(points, dtype=torch.float64)
        side = torch.linspace(0, 1, max(8, points // 8), dtype=torch.float64)[:, None]
        zero, one = torch.zeros_like(side), torch.ones_like(side)
        corners = (unit, torch.cat([side, zero], 1), torch.cat([zero, side], 1), torch.cat([one, side], 1))
        return cls(*((low + (high - low) * part).to(dtype) for part in corners))


def _square(*residuals: Tensor) -> Tensor:
    return torch.stack([residual.square().mean() for residual in residuals]).sum()


def poisson(frequency: int, points: int, dtype: torch.dtype) -> Residual:
    """-u'' = f on (0, 1), u = sin(k pi x); u = x (1 - x) net vanishes at the ends by construction."""
    x = torch.linspace(0, 1, points, dtype=dtype)[:, None]
    k = frequency * math.pi
    force, bubble, slope = k**2 * torch.sin(k * x), x * (1 - x), 1 - 2 * x

    def loss(net: Network) -> Tensor:
        N, N_x, N_xx = net(x, (X,), (X,))
        return _square((bubble * N_xx + 2 * slope * N_x - 2 * N + force) / k**2)

    return loss


def poisson_square(points: int, dtype: torch.dtype) -> Residual:
    """-u_xx - u_yy = 2 pi^2 sin(pi x) sin(pi y) on the unit square, 0 on its sides."""
    d = Domain.rectangle((0, 1), (0, 1), points, dtype)
    force = 2 * math.pi**2 * (torch.sin(math.pi * d.inside)).prod(1, keepdim=True)
    top = d.begin + torch.tensor([0.0, 1.0], dtype=dtype)
    sides = torch.cat([d.begin, top, d.left, d.right])

    def loss(net: Network) -> Tensor:
        *_, u_xx, u_yy = net(d.inside, (X, T), (X, T))
        return _square((u_xx + u_yy + force) / math.pi**2, net(sides)[0])

    return loss


def convection(speed: float, points: int, dtype: torch.dtype) -> Residual:
    """u_t + beta u_x = 0, periodic on (0, 2 pi), u(x, 0) = sin x."""
    d = Domain.rectangle((0, 2 * math.pi), (0, 1), points, dtype)

    def loss(net: Network) -> Tensor:
        _, u_x, u_t = net(d.inside, (X, T))
        initial = net(d.begin)[0] - torch.sin(d.begin[:, :1])
        return _square(u_t + speed * u_x, initial, net(d.left)[0] - net(d.right)[0])

    return loss


def burgers(points: int, dtype: torch.dtype) -> Residual:
    """u_t + u u_x = (0.01 / pi) u_xx on (-1, 1), u(x, 0) = -sin(pi x), 0 at the ends."""
    d = Domain.rectangle((-1, 1), (0, 1), points, dtype)

    def loss(net: Network) -> Tensor:
        u, u_x, u_t, u_xx = net(d.inside, (X, T), (X,))
        initial = net(d.begin)[0] + torch.sin(math.pi * d.begin[:, :1])
        return _square(u_t + u * u_x - 0.01 / math.pi * u_xx, initial, net(d.left)[0], net(d.right)[0])

    return loss


def reaction_diffusion(rate: float, diffusion: float, points: int, dtype: torch.dtype) -> Residual:
    """u_t = nu u_xx + rho u (1 - u), periodic on (0, 2 pi), from a Gaussian bump."""
    d = Domain.rectangle((0, 2 * math.pi), (0, 1), points, dtype)
    bump = torch.exp(-((d.begin[:, :1] - math.pi) ** 2) / (2 * (math.pi / 4) ** 2))

    def loss(net: Network) -> Tensor:
        u, _, u_t, u_xx = net(d.inside, (X, T), (X,))
        reacted = rate * u * (1 - u)
        return _square(u_t - diffusion * u_xx - reacted, net(d.begin)[0] - bump, net(d.left)[0] - net(d.right)[0])

    return loss


def allen_cahn(points: int, dtype: torch.dtype) -> Residual:
    """u_t = 1e-3 u_xx + 5 (u - u^3) on (-1, 1), u(x, 0) = x^2 cos(pi x), -1 at the ends."""
    d = Domain.rectangle((-1, 1), (0, 1), points, dtype)
    x = d.begin[:, :1]
    begin = x.square() * torch.cos(math.pi * x)

    def loss(net: Network) -> Tensor:
        u, _, u_t, u_xx = net(d.inside, (X, T), (X,))
        reacted = 5 * (u - u**3)
        return _square(u_t - 1e-3 * u_xx - reacted, net(d.begin)[0] - begin, net(d.left)[0] + 1, net(d.right)[0] + 1)

    return loss


def wave(speed: float, points: int, dtype: torch.dtype) -> Residual:
    """u_tt = c^2 u_xx on (0, 1), u(x, 0) = sin(pi x), at rest, 0 at the ends."""
    d = Domain.rectangle((0, 1), (0, 1), points, dtype)

    def loss(net: Network) -> Tensor:
        *_, u_xx, u_tt = net(d.inside, (X, T), (X, T))
        begin, moving = net(d.begin, (T,))
        initial = begin - torch.sin(math.pi * d.begin[:, :1])
        return _square(u_tt - speed**2 * u_xx, initial, moving, net(d.left)[0], net(d.right)[0])

    return loss


class Case(NamedTuple):
    """An equation with the network that is to solve it."""

    short: str
    equation: Callable[[int, torch.dtype], Residual]
    points: int
    inputs: int
    width: int
    hidden: int


CASES = (
    Case("poisson-k1", partial(poisson, 1), 101, 1, 20, 2),
    Case("poisson-k4", partial(poisson, 4), 101, 1, 20, 3),
    Case("poisson-square", poisson_square, 256, 2, 20, 2),
    Case("convection-5", partial(convection, 5.0), 256, 2, 20, 3),
    Case("convection-30", partial(convection, 30.0), 400, 2, 40, 3),
    Case("burgers", burgers, 400, 2, 20, 3),
    Case("burgers", burgers, 256, 2, 10, 2),
    Case("reaction-diffusion", partial(reaction_diffusion, 5.0, 0.5), 256, 2, 20, 2),
    Case("allen-cahn", allen_cahn, 256, 2, 20, 3),
    Case("wave-2", partial(wave, 2.0), 256, 2, 20, 2),
)


def problems() -> list[BenchProblem]:
    """All problems of the family."""
    return [_problem(case) for case in CASES]


def _problem(case: Case) -> BenchProblem:
    layers = Layers((case.inputs, *[case.width] * case.hidden, 1))
    return BenchProblem(
        family="pinns",
        short=f"{case.short}-{case.hidden}x{case.width}",
        build=partial(_solved, case, layers),
        unknowns=layers.unknowns,
        work=1.5 + 3e-6 * case.points * layers.unknowns,
    )


def _solved(case: Case, layers: Layers, place: Place, dtype: torch.dtype, seed: int) -> Objective:
    residual = case.equation(case.points, dtype)

    def loss(x: Tensor) -> Tensor:
        return residual(lambda points, first=(), second=(): layers.jets(x, points, first, second))

    return by_autograd(loss, layers.glorot(seed, dtype))
