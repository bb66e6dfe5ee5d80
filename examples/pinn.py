"""A physics-informed network: the class name is all that changes from torch.optim.LBFGS.

Helmholtz's equation, u_xx + u_yy + k^2 u = q on the unit square, u = 0 on its boundary, with a known solution. The
network is multiplied by x (1 - x) y (1 - y), so that the boundary values hold and the loss is the residual alone.
"""

import argparse
import math

import torch
from torch import Tensor, nn

import signedstep

K = 2.0


def solution(xy: Tensor) -> Tensor:
    return torch.sin(math.pi * xy[:, 0]) * torch.sin(2 * math.pi * xy[:, 1])


def predicted(model: nn.Module, xy: Tensor) -> Tensor:
    return model(xy)[:, 0] * (xy * (1 - xy)).prod(dim=1)


def residual(model: nn.Module, xy: Tensor) -> Tensor:
    xy = xy.requires_grad_()
    u = predicted(model, xy)
    (gradient,) = torch.autograd.grad(u.sum(), xy, create_graph=True)
    curvature = sum(torch.autograd.grad(gradient[:, i].sum(), xy, create_graph=True)[0][:, i] for i in range(2))
    return curvature + K**2 * u - (K**2 - 5 * math.pi**2) * solution(xy.detach())


def error_after(calls: int, make: type[torch.optim.Optimizer]) -> float:
    """The error of the solution, relative to its size, after so many calls of the closure."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1)).double()
    points = torch.rand(600, 2, dtype=torch.float64)
    optimizer = make(
        model.parameters(), lr=1, max_iter=calls, max_eval=calls, history_size=50, tolerance_grad=0,
        tolerance_change=0, line_search_fn="strong_wolfe",
    )  # fmt: skip

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = residual(model, points).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    side = torch.linspace(0, 1, 41, dtype=torch.float64)
    grid = torch.cartesian_prod(side, side)
    with torch.no_grad():
        off = predicted(model, grid) - solution(grid)
    return (off.norm() / solution(grid).norm()).item()


def main(calls: int = 500) -> dict[str, float]:
    errors = {}
    for make in (torch.optim.LBFGS, signedstep.LBFGS, signedstep.Mix):
        name = f"{make.__module__.partition('.')[0]}.{make.__name__}"
        errors[name] = error_after(calls, make)
        print(f"{name:17} relative error {errors[name]:.1e} after {calls} closure calls")
    return errors


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=500)
    main(parser.parse_args().calls)
