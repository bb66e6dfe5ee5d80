"""The saddles of the benchmark are what they claim to be."""

import pytest
import torch

from saddle_problems import problems

SADDLES = problems()


def test_there_are_twenty_and_they_differ():
    assert len({saddle.name for saddle in SADDLES}) == len(SADDLES) == 20
    assert [saddle.f for saddle in SADDLES] == [saddle.f for saddle in problems()]


@pytest.mark.parametrize("saddle", SADDLES, ids=lambda saddle: saddle.name)
def test_a_strict_saddle(saddle):
    """No gradient, some negative curvature, and lower ground that a method can reach."""
    w, V = saddle.eigen
    size = float(w.abs().max())
    assert float(torch.func.grad(saddle.fun)(saddle.point).norm()) <= 1e-10 * size
    assert float(w[0]) < -1e-6 * size
    assert saddle.fun(saddle.point + 1e-2 * V[:, 0]).item() < saddle.f
    assert saddle.depth > 1e-4 * max(1.0, abs(saddle.f))


def test_most_are_saddles_proper():
    """Curvature of both signs, not maxima."""
    assert sum(float(saddle.eigen[0][-1]) > 0 for saddle in SADDLES) >= 19
