"""What several test files share: small problems and points along a path."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import settings
from torch import Tensor

from signedstep.objective import Point

torch.set_num_threads(1)  # the tests run side by side; more threads would only wait for each other
settings.register_profile("fast", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("fast")

Function = Callable[[Tensor], Tensor]


def evaluated(f: Function, x: Tensor) -> Point:
    """The point of a function at x, by autograd."""
    leaf = x.detach().clone().requires_grad_(True)
    value = f(leaf)
    (g,) = torch.autograd.grad(value, leaf)
    return Point(x, value.item(), g)


def path(f: Function, n: int, steps: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> list[Point]:
    """Points of a random walk: their differences are pairs that no line search has tidied up."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, generator=generator, dtype=dtype)
    points = [evaluated(f, x)]
    for _ in range(steps):
        x = x + torch.randn(n, generator=generator, dtype=dtype)
        points.append(evaluated(f, x))
    return points


def indefinite(n: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Function:
    """A quadratic with eigenvalues of both signs plus a quartic that bounds it below."""
    A = torch.randn(n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    A = (A + A.T).to(dtype)
    return lambda x: 0.5 * x @ (A @ x) + 0.05 * (x**4).sum()


def convex(n: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Function:
    """A strictly convex quadratic plus a quartic."""
    A = torch.randn(n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    A = (A @ A.T + torch.eye(n)).to(dtype)
    return lambda x: 0.5 * x @ (A @ x) + 0.05 * (x**4).sum()


def rosenbrock(x: Tensor) -> Tensor:
    """The chained Rosenbrock function."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def network(seed: int = 0) -> tuple[Function, Tensor]:
    """A small network of two hidden layers on made-up labels, non-convex as they come: loss and start."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(60, 5, generator=generator, dtype=torch.float64)
    labels = torch.sign(X[:, 0] * X[:, 1] + 0.3 * X[:, 2])
    shapes = [(6, 5), (6,), (6, 6), (6,), (1, 6), (1,)]
    sizes = [torch.Size(shape).numel() for shape in shapes]
    start = torch.randn(sum(sizes), generator=generator, dtype=torch.float64) * 0.5

    def loss(x: Tensor) -> Tensor:
        W1, b1, W2, b2, W3, b3 = (part.view(shape) for part, shape in zip(x.split(sizes), shapes, strict=True))
        hidden = torch.tanh(torch.tanh(X @ W1.T + b1) @ W2.T + b2)
        return 0.5 * ((hidden @ W3.T + b3)[:, 0] - labels).square().mean()

    return loss, start


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param
