"""Twenty functions with a strict saddle: a point without gradient where the Hessian has a negative eigenvalue.

Each is a function of a flat float64 tensor with a saddle that is known, or that Newton's method on the gradient finds
from close by. `depth` is how far f falls from the saddle to the minima on either side of it, the nearer of the two.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

import signedstep

Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Saddle:
    """A function and a strict saddle of it."""

    name: str
    fun: Function
    point: Tensor

    @cached_property
    def hessian(self) -> Tensor:
        return torch.autograd.functional.hessian(self.fun, self.point)  # type: ignore[return-value]

    @cached_property
    def eigen(self) -> tuple[Tensor, Tensor]:
        """Eigenvalues, lowest first, and eigenvectors at the saddle."""
        w, V = torch.linalg.eigh(self.hessian)
        return w, V

    @cached_property
    def f(self) -> float:
        return self.fun(self.point).item()

    @cached_property
    def depth(self) -> float:
        v = 0.1 * self.eigen[1][:, 0]
        ends = [signedstep.minimize(self.fun, self.point + side * v, method="newton/trust").fun for side in (1, -1)]
        return self.f - max(ends)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def polished(fun: Function, x: Tensor) -> Tensor:
    """The critical point next to x, by Newton's method on the gradient; flat directions are left alone."""
    for _ in range(20):
        g = torch.func.grad(fun)(x)
        H: Tensor = torch.autograd.functional.hessian(fun, x)  # type: ignore[assignment]
        x = x - torch.linalg.pinv(H, rtol=1e-9, hermitian=True) @ g
    return x


def quartics(w: Tensor) -> Function:
    """x'Ax/2 with eigenvalues w in random directions, and quartic walls."""
    Q, _ = torch.linalg.qr(random(len(w), len(w)))
    A = Q @ torch.diag(w) @ Q.T
    return lambda x: 0.5 * x @ A @ x + 0.25 * (x**4).sum()


def allen_cahn(u: Tensor) -> Tensor:
    """The energy of two phases on a line between walls; u = 0 is neither phase."""
    ends = torch.zeros(1, dtype=u.dtype)
    return 0.5 * torch.cat((ends, u, ends)).diff().square().sum() * 8 + 0.25 * ((u**2 - 1) ** 2).sum()


def himmelblau(x: Tensor) -> Tensor:
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def six_hump_camel(x: Tensor) -> Tensor:
    u, v = x
    return (4 - 2.1 * u**2 + u**4 / 3) * u**2 + u * v + (4 * v**2 - 4) * v**2


def rayleigh(A: Tensor) -> Function:
    return lambda x: x @ A @ x / (x @ x)


def factorisation(M: Tensor, rank: int, mask: Tensor | float = 1.0) -> Function:
    """|UV' - M|^2/2 over the entries of a mask."""
    rows, columns = M.shape

    def fun(x: Tensor) -> Tensor:
        U, V = x.split([rows * rank, columns * rank])
        return 0.5 * (mask * (U.view(rows, rank) @ V.view(columns, rank).T - M)).square().sum()

    return fun


def partial_factors(M: Tensor, rank: int, kept: int) -> Tensor:
    """Factors that hold only `kept` of the singular values: a saddle of the factorisation if they are the largest."""
    U, s, Vh = torch.linalg.svd(M)
    root = torch.cat((s[:kept].sqrt(), torch.zeros(rank - kept, dtype=s.dtype)))
    return torch.cat(((U[:, :rank] * root).reshape(-1), (Vh[:rank].T * root).reshape(-1)))


def symmetric_factorisation(M: Tensor) -> Function:
    return lambda x: 0.25 * (torch.outer(x, x) - M).square().sum()


def autoencoder(X: Tensor, units: int, activation: Callable[[Tensor], Tensor], decay: float = 0.0) -> Function:
    """The mean squared error of a code of some units, with weight decay; columns of X are examples."""
    n, count = X.shape

    def fun(x: Tensor) -> Tensor:
        encoder, decoder = x.split([units * n, n * units])
        error = decoder.view(n, units) @ activation(encoder.view(units, n) @ X) - X
        return 0.5 * error.square().sum() / count + decay * (x @ x)

    return fun


def wrong_code(X: Tensor, units: int) -> Tensor:
    """A code by the lesser principal components."""
    _, V = torch.linalg.eigh(X @ X.T)
    P = V[:, -1 - units : -1]
    return torch.cat((P.T.reshape(-1), P.reshape(-1)))


def classifier(X: Tensor, labels: Tensor, units: int) -> Function:
    """The logistic loss of a network of tanh units with weight decay; rows of X are examples, labels are +-1."""
    n = X.shape[1]

    def fun(x: Tensor) -> Tensor:
        W, v, bias = x.split([units * n, units, 1])
        margin = labels * (torch.tanh(X @ W.view(units, n).T) @ v + bias)
        return torch.nn.functional.softplus(-margin).mean() + 0.01 * (x @ x)

    return fun


def regression(x: Tensor, y: Tensor, units: int) -> Function:
    """The mean squared error of a network of tanh units of one input, with a little weight decay."""

    def fun(p: Tensor) -> Tensor:
        w, b, v = p.split(units)
        return 0.5 * (torch.tanh(torch.outer(x, w) + b) @ v - y).square().mean() + 1e-3 * (p @ p)

    return fun


def duplicated_unit(x: Tensor, y: Tensor) -> Tensor:
    """The best network of one unit, with that unit twice and half its weight each (Fukumizu and Amari 2000)."""
    fun = lambda p: regression(x, y, 2)(torch.stack((p[0], p[0], p[1], p[1], p[2] / 2, p[2] / 2)))  # noqa: E731
    w, b, v = signedstep.minimize(fun, torch.tensor([1.0, 0.1, 1.0], dtype=torch.float64), method="newton/trust").x
    return torch.stack((w, w, b, b, v / 2, v / 2))


def phase_retrieval(A: Tensor, truth: Tensor) -> Function:
    squares = (A @ truth) ** 2
    return lambda x: ((A @ x) ** 2 - squares).square().mean() / 4


def tensor_decomposition(V: Tensor) -> Function:
    """|T - x (x) x (x) x (x) x|^2/2 for the sum T of such products of orthonormal columns of V, up to a constant."""
    return lambda x: -((V.T @ x) ** 4).sum() + 0.5 * (x @ x) ** 4


def mixture(X: Tensor) -> Function:
    """The negative log-likelihood of two round clusters of width 1 with free centres."""

    def fun(x: Tensor) -> Tensor:
        centres = x.view(2, -1)
        return -torch.logsumexp(-0.5 * (X[:, None] - centres).square().sum(-1), dim=1).mean()

    return fun


def lennard_jones(x: Tensor) -> Tensor:
    """The energy of atoms in space."""
    atoms = x.view(-1, 3)
    i, j = torch.triu_indices(len(atoms), len(atoms), 1)
    inverse = 1 / (atoms[i] - atoms[j]).square().sum(-1) ** 3
    return (inverse**2 - 2 * inverse).sum()


def problems() -> list[Saddle]:
    """All twenty, the same at every call."""
    full = torch.float64
    M = random(6, 3, seed=1) @ random(3, 5, seed=2)
    S = random(8, 8, seed=3)
    X = torch.diag(torch.linspace(2, 0.5, 6, dtype=full)) @ random(6, 40, seed=4)
    rows, hidden = random(60, 4, seed=5), random(4, seed=6)
    labels = torch.sign(rows @ hidden + 0.3 * random(60, seed=7))
    line = torch.linspace(-2, 2, 30, dtype=full)
    wave = torch.sin(2 * line) + 0.5 * line
    A, truth = random(80, 8, seed=8), torch.eye(8, dtype=full)[0]
    clusters = torch.cat((random(40, 3, seed=9) + 2, random(40, 3, seed=10) - 2))
    Q, _ = torch.linalg.qr(random(10, 4, seed=11))
    square = torch.tensor([[0, 0, 0], [1.0, 0, 0], [1, 1, 0], [0, 1, 0]], dtype=full).reshape(-1)
    dense = S + S.T
    positive = S @ S.T
    _, V = torch.linalg.eigh(dense)
    w, U = torch.linalg.eigh(positive)
    mean = clusters.mean(0)
    zeros = lambda n: torch.zeros(n, dtype=full)  # noqa: E731
    two_units, phases, camel = regression(line, wave, 2), phase_retrieval(A, truth), six_hump_camel
    orthogonal = torch.eye(8, dtype=full)[1] / math.sqrt(3)
    stiff = torch.cat((torch.tensor([-0.01], dtype=full), torch.logspace(0, 3, 19, dtype=full)))
    weak = torch.cat((torch.tensor([-0.1], dtype=full), torch.ones(9, dtype=full)))
    half = torch.linspace(-1, 1, 50, dtype=full)
    masked = (random(6, 5, seed=12) > -0.5).double()
    return [
        Saddle("quartic", lambda x: x[0] ** 4 / 4 - x[0] ** 2 / 2 + x[1] ** 2 / 2, zeros(2)),
        Saddle("quartics-weak", quartics(weak), zeros(10)),
        Saddle("quartics-half", quartics(half), zeros(50)),
        Saddle("quartics-stiff", quartics(stiff), zeros(20)),
        Saddle("himmelblau", himmelblau, polished(himmelblau, torch.tensor([0.1, 2.9], dtype=full))),
        Saddle("six-hump-camel", camel, zeros(2)),
        Saddle("allen-cahn", allen_cahn, zeros(30)),
        Saddle("rayleigh", rayleigh(dense), V[:, 3]),
        Saddle("factors-zero", factorisation(M, 3), zeros(33)),
        Saddle("factors-partial", factorisation(M, 3), partial_factors(M, 3, 1)),
        Saddle("factors-symmetric", symmetric_factorisation(positive), U[:, 5] * w[5].sqrt()),
        Saddle("completion", factorisation(M, 3, masked), zeros(33)),
        Saddle("autoencoder-linear", autoencoder(X, 2, lambda z: z), wrong_code(X, 2)),
        Saddle("autoencoder-tanh", autoencoder(X, 2, torch.tanh, decay=0.01), zeros(24)),
        Saddle("classifier", classifier(rows, labels, 3), polished(classifier(rows, labels, 3), zeros(16))),
        Saddle("duplicated-unit", two_units, polished(two_units, duplicated_unit(line, wave))),
        Saddle("phase-retrieval", phases, polished(phases, orthogonal)),
        Saddle("tensor", tensor_decomposition(Q), (Q[:, 0] + Q[:, 1]) * 8**-0.25),
        Saddle("mixture", mixture(clusters), polished(mixture(clusters), torch.cat((mean, mean)))),
        Saddle("lennard-jones", lennard_jones, polished(lennard_jones, square)),
    ]
