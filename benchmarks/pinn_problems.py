"""Physics-informed networks: Poisson's and Burgers' equation, their losses, and their errors against known solutions.

Boundary and initial values hold by construction, so the loss is the mean squared residual alone, with no weights to
choose. Networks are tanh, float64.

- Poisson: -u'' = f on (0, 1) with u = sin(pi x) + sin(4 pi x)/4, u(0) = u(1) = 0. 2 layers of 20 units.
- Burgers: u_t + u u_x = (0.01/pi) u_xx on (-1, 1) x (0, 1), u(x, 0) = -sin(pi x), u = 0 at the ends. 3 layers of 20
  units. A shock of width 0.01 forms at x = 0, so two points of three lie close to it; with points spread evenly the
  residual falls between them, and the error stays near 0.1 whatever the optimizer.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

VISCOSITY = 0.01 / math.pi


class Problem(NamedTuple):
    """A network, its loss, and its relative L2 error against the known solution."""

    net: nn.Module
    loss: Callable[[], Tensor]
    error: Callable[[], float]


def network(inputs: int, width: int, layers: int) -> nn.Sequential:
    sizes = [inputs, *[width] * layers]
    hidden = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.Tanh())]
    net = nn.Sequential(*hidden, nn.Linear(width, 1)).double()
    for module in net:
        if isinstance(module, nn.Linear):
            nn.init.xavier_normal_(module.weight)
            nn.init.zeros_(module.bias)
    return net


def derivative(u: Tensor, x: Tensor) -> Tensor:
    return torch.autograd.grad(u.sum(), x, create_graph=True)[0]


def relative(u: Tensor, exact: Tensor) -> float:
    return float((u.detach() - exact).norm() / exact.norm())


def poisson_solution(x: Tensor) -> Tensor:
    return torch.sin(math.pi * x) + torch.sin(4 * math.pi * x) / 4


def poisson_residual(u: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    force = math.pi**2 * (torch.sin(math.pi * x) + 4 * torch.sin(4 * math.pi * x))
    return derivative(derivative(u(x), x), x) + force.detach()


def poisson(points: int) -> Problem:
    net = network(1, 20, 2)
    x = torch.linspace(0, 1, points, dtype=torch.float64)[:, None].requires_grad_(True)
    fine = torch.linspace(0, 1, 1001, dtype=torch.float64)[:, None]

    def u(x: Tensor) -> Tensor:
        return x * (1 - x) * net(x)

    return Problem(
        net, lambda: poisson_residual(u, x).square().mean(), lambda: relative(u(fine), poisson_solution(fine))
    )


def cole_hopf(x: Tensor, t: Tensor) -> Tensor:
    """The solution of Burgers' equation at t > 0, a quotient of Gaussian integrals (Basdevant et al. 1986)."""
    nodes, weights = map(torch.from_numpy, np.polynomial.hermite.hermgauss(100))
    shifted = x - nodes * torch.sqrt(4 * VISCOSITY * t)
    kernel = weights * torch.exp(-(torch.cos(math.pi * shifted) + 1) / (2 * math.pi * VISCOSITY))
    return -(torch.sin(math.pi * shifted) * kernel).sum(1, keepdim=True) / kernel.sum(1, keepdim=True)


def burgers_residual(u: Callable[[Tensor, Tensor], Tensor], x: Tensor, t: Tensor) -> Tensor:
    value = u(x, t)
    u_x = derivative(value, x)
    return derivative(value, t) + value * u_x - VISCOSITY * derivative(u_x, x)


def near_the_shock(x: Tensor, width: float = 0.02) -> Tensor:
    """Points spread evenly over (-1, 1), moved so that their density falls like 1/(width + |x|)."""
    return torch.sign(x) * width * ((1 + 1 / width) ** x.abs() - 1)


def burgers(points: int) -> Problem:
    net = network(2, 20, 3)
    sobol = torch.quasirandom.SobolEngine(2, scramble=True, seed=0).draw(points, dtype=torch.float64)
    x, t = 2 * sobol[:, :1] - 1, sobol[:, 1:].clone().requires_grad_(True)
    x[points // 3 :] = near_the_shock(x[points // 3 :])
    x.requires_grad_(True)
    grid = torch.cartesian_prod(
        torch.linspace(0.01, 1, 50, dtype=torch.float64), torch.linspace(-1, 1, 401, dtype=torch.float64)
    )
    fine_t, fine_x = grid.split(1, dim=1)
    exact = cole_hopf(fine_x, fine_t)

    def u(x: Tensor, t: Tensor) -> Tensor:
        return -torch.sin(math.pi * x) + t * (1 - x**2) * net(torch.cat((x, 2 * t - 1), dim=1))

    return Problem(net, lambda: burgers_residual(u, x, t).square().mean(), lambda: relative(u(fine_x, fine_t), exact))


PROBLEMS: dict[str, Callable[[int], Problem]] = {"Poisson": poisson, "Burgers": burgers}
