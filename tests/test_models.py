"""Networks as functions of a flat vector: the same as torch's own modules, sparse as dense, always the same bits."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import nn

from signedstep.experiments.models import network_loss, start, unknowns
from signedstep.experiments.runs import Network

MODULES = {"tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "relu": nn.ReLU}


def made_up(rows=40, features=6, density=1.0, seed=0):
    """Labelled data; all entries are there, or a share of them."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, features)) * (generator.random((rows, features)) < density)
    return SimpleNamespace(X=X, y=np.where(generator.random(rows) < 0.5, -1.0, 1.0))


def evaluated(network, data, x):
    loss, _ = network_loss(network, data)
    leaf = x.clone().requires_grad_(True)
    value = loss(leaf)
    (g,) = torch.autograd.grad(value, leaf)
    return value.detach(), g


def as_modules(network, n_features, x):
    """The same network as torch has it, with the parameters x."""
    widths = [n_features, *[network.width] * network.hidden, 1]
    parts = []
    for inputs, outputs in pairwise(widths):
        parts += [nn.Linear(inputs, outputs, bias=network.bias, dtype=torch.float64), MODULES[network.activation]()]
    module = nn.Sequential(*parts[:-1])
    nn.utils.vector_to_parameters(x, module.parameters())
    return module


@pytest.mark.parametrize("hidden", [1, 2, 3, 5])
@pytest.mark.parametrize("activation", MODULES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", ["mse", "logistic"])
def test_value_and_gradient_are_those_of_torch_modules(hidden, activation, bias, loss):
    network = Network(hidden, 4, activation, bias, 2.0, loss)
    data = made_up()
    x = start(network, 6, seed=1)
    module = as_modules(network, 6, x)
    output, y = module(torch.from_numpy(data.X))[:, 0], torch.from_numpy(data.y)
    expected = ((output - y) ** 2).mean() / 2 if loss == "mse" else torch.log(1 + torch.exp(-y * output)).mean()
    expected.backward()
    gradient = torch.cat([p.grad.reshape(-1) for p in module.parameters()])
    value, g = evaluated(network, data, x)
    assert len(x) == unknowns(network, 6) == len(gradient)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-13, atol=0)
    torch.testing.assert_close(g, gradient, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("density", [0.0, 0.05, 0.3, 0.7])
def test_sparse_is_dense(density):
    data = made_up(300, 20, density)
    network = Network(2, 7)
    x = start(network, 20, seed=0)
    sparse = SimpleNamespace(X=scipy.sparse.csr_array(data.X), y=data.y)
    module = as_modules(network, 20, x)
    expected = nn.functional.mse_loss(module(torch.from_numpy(data.X))[:, 0], torch.from_numpy(data.y)) / 2
    expected.backward()
    gradient = torch.cat([p.grad.reshape(-1) for p in module.parameters()])
    for given in (data, sparse):
        value, g = evaluated(network, given, x)
        torch.testing.assert_close(value, expected.detach(), rtol=1e-13, atol=0)
        torch.testing.assert_close(g, gradient, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("density", [0.05, 1.0])
def test_evaluations_repeat_to_the_last_bit(density):
    data = made_up(2000, 50, density)
    network = Network(1, 10)
    x = start(network, 50, seed=0)
    value, g = evaluated(network, data, x)
    for _ in range(20):
        again, same = evaluated(network, made_up(2000, 50, density), x)
        assert torch.equal(value, again)
        assert torch.equal(g, same)


def test_start_is_a_function_of_the_seed_alone():
    network = Network(2, 30)
    first = start(network, 100, seed=3)
    torch.manual_seed(12345)
    assert torch.equal(first, start(network, 100, seed=3))
    assert not torch.equal(first, start(network, 100, seed=4))
    assert first.dtype == torch.float64
    assert torch.equal(2 * first, start(Network(2, 30, scale=2.0), 100, seed=3))


def test_start_is_uniform_within_the_fan_in():
    layers = start(Network(1, 50), 400, seed=0).split([400 * 50, 50, 50, 1])
    for part, fan_in in zip(layers, (400, 400, 50, 50), strict=True):
        assert part.abs().max() <= fan_in**-0.5
    assert layers[0].std() == pytest.approx(400**-0.5 / 3**0.5, rel=0.02)
    assert layers[0].mean() == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(
    ("network", "text"),
    [
        (Network(hidden=0), "hidden must be a whole number, at least 1, got 0"),
        (Network(width=0), "width must be"),
        (Network(activation="gelu"), "activation must be one of 'tanh', 'sigmoid', 'relu', got 'gelu'"),
        (Network(loss="hinge"), "loss must be one of 'mse', 'logistic', got 'hinge'"),
        (Network(scale=0.0), "scale must be a positive number, got 0.0"),
    ],
)
def test_a_network_that_cannot_be_is_refused(network, text):
    with pytest.raises(ValueError, match=text):
        (network_loss(network, made_up()), start(network, 6, 0))
