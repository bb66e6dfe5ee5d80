"""What the tests of the torch.optim front share: small models, closures that count, and every class."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import signedstep

CLASSES = [signedstep.LSR1, signedstep.LBFGS, signedstep.SR1, signedstep.BFGS]


def model(seed: int = 0, dtype: torch.dtype = torch.float64) -> nn.Sequential:
    """A small network with four parameters."""
    generator = torch.Generator().manual_seed(seed)
    net = nn.Sequential(nn.Linear(3, 5, dtype=dtype), nn.Tanh(), nn.Linear(5, 1, dtype=dtype))
    for p in net.parameters():
        nn.init.uniform_(p, -0.7, 0.7, generator=generator)
    return net


def batch(seed: int = 0, size: int = 40, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Inputs and a target that bends."""
    X = torch.randn(size, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return X.to(dtype), (X[:, :1] * X[:, 1:2] + 0.3 * X[:, 2:]).to(dtype)


def fit(net: nn.Module, data: tuple[Tensor, Tensor] | None = None) -> Callable[[], Tensor]:
    """The loss of a network on one batch."""
    X, y = batch(dtype=next(net.parameters()).dtype) if data is None else data
    return lambda: (net(X) - y).square().mean()


def leaf(*values: Any, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def bowl(*params: Tensor) -> Tensor:
    """A quartic bowl over parameters of any shape, precision or kind; its minimum is no corner of anything."""
    total = torch.zeros((), dtype=torch.float64)
    for i, p in enumerate(params):
        away = (p - 1 - 0.5j if p.is_complex() else p - 1).abs().double()
        total = total + (i + 1) * away.square().sum() + 0.1 * away.pow(4).sum()
    return total


class Counted:
    """A closure that calls `backward` itself, as torch's documentation writes it, and counts its calls."""

    def __init__(self, loss: Callable[[], Any], optimizer: torch.optim.Optimizer | None = None):
        self.loss, self.optimizer = loss, optimizer
        self.values: list[float] = []

    @property
    def calls(self) -> int:
        return len(self.values)

    def __call__(self) -> Any:
        if self.optimizer:
            self.optimizer.zero_grad()
        loss = self.loss()
        self.values.append(loss.item())
        loss.backward()
        return loss


class FailsAt:
    """A closure that does something else, such as raising, at some of its calls."""

    def __init__(self, loss: Callable[[], Any], instead: Callable[[], Any], *calls: int):
        self.loss, self.instead, self.at, self.calls = loss, instead, calls, 0

    def __call__(self) -> Any:
        self.calls += 1
        return self.instead() if self.calls in self.at else self.loss()


def raising(error: BaseException | type[BaseException]) -> Callable[[], Any]:
    def instead() -> Any:
        raise error

    return instead


def gradients(loss: Callable[[], Tensor], params: list[Tensor]) -> list[Tensor]:
    """The gradients where the parameters are, computed anew."""
    return list(torch.autograd.grad(loss(), params, allow_unused=True, materialize_grads=True))


def assert_left_at(returned: Any, loss: Callable[[], Tensor], params: list[Tensor]) -> None:
    """The returned loss and the gradients in place are those of the point where the parameters are."""
    assert float(returned) == loss().item()
    for p, g in zip(params, gradients(loss, params), strict=True):
        assert p.grad is not None
        torch.testing.assert_close(p.grad.to_dense(), g.to_dense(), rtol=0, atol=0)


def copies(params: Any) -> list[Tensor]:
    return [p.detach().clone() for p in params]


def assert_same(a: Any, b: Any) -> None:
    """Two lists of tensors agree bit for bit."""
    for p, q in zip(a, b, strict=True):
        assert p.dtype == q.dtype
        assert torch.equal(p, q)
