"""The references of the PINN benchmark: independent of any network, they satisfy their equations."""

import math

import numpy as np
import pytest
import torch

from pinn_problems import (
    PROBLEMS,
    VISCOSITY,
    burgers_residual,
    cole_hopf,
    near_the_shock,
    poisson_residual,
    poisson_solution,
)


def by_trapezoids(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The quotient of integrals by another rule of quadrature."""
    z = np.linspace(-14, 14, 6001)
    shifted = x - z * np.sqrt(4 * VISCOSITY * t)
    logarithm = -np.cos(math.pi * shifted) / (2 * math.pi * VISCOSITY) - z * z
    kernel = np.exp(logarithm - logarithm.max(1, keepdims=True))
    return -(np.sin(math.pi * shifted) * kernel).sum(1) / kernel.sum(1)


def places(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points of the strip, many of them inside the shock."""
    generator = torch.Generator().manual_seed(0)
    x = near_the_shock(2 * torch.rand(count, 1, generator=generator, dtype=torch.float64) - 1)
    t = 0.01 + 0.99 * torch.rand(count, 1, generator=generator, dtype=torch.float64)
    return x.requires_grad_(True), t.requires_grad_(True)


def test_cole_hopf_by_another_quadrature():
    x, t = (part.detach() for part in places(400))
    np.testing.assert_allclose(cole_hopf(x, t)[:, 0].numpy(), by_trapezoids(x.numpy(), t.numpy()), atol=1e-12)


def test_cole_hopf_solves_burgers_equation():
    x, t = places(400)
    assert burgers_residual(cole_hopf, x, t).abs().max() < 1e-8
    assert burgers_residual(lambda x, t: 1.01 * cole_hopf(x, t), x, t).abs().max() > 0.1
    start = cole_hopf(x, torch.full_like(t, 1e-9))
    assert (start + torch.sin(math.pi * x)).abs().max() < 1e-6
    ends = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    assert cole_hopf(ends, torch.full_like(ends, 0.5)).abs().max() < 1e-12


def test_poissons_solution_solves_its_equation():
    x = torch.linspace(0, 1, 50, dtype=torch.float64, requires_grad=True)
    assert poisson_residual(poisson_solution, x).abs().max() < 1e-10
    assert poisson_solution(x)[[0, -1]].abs().max() < 1e-12


@pytest.mark.parametrize("make", PROBLEMS.values(), ids=list(PROBLEMS))
def test_losses_can_be_trained(make):
    torch.manual_seed(0)
    problem = make(30)
    problem.loss().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in problem.net.parameters())
    assert 0.1 < problem.error() < 10


def test_points_crowd_where_the_shock_is():
    x = near_the_shock(torch.linspace(-1, 1, 1001, dtype=torch.float64))
    assert x[[0, 500, -1]].tolist() == pytest.approx([-1, 0, 1], abs=1e-12)
    assert (x.diff() > 0).all()
    assert 0.4 < (x.abs() < 0.1).double().mean() < 0.6
