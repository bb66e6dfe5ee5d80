"""The classical unconstrained test problems, written as sums of squares f(x) = sum_i r_i(x)^2 on PyTorch.

Source of every formula, constant, starting point and least value: J. J. Moré, B. S. Garbow and K. E. Hillstrom,
"Testing Unconstrained Optimization Software", ACM Transactions on Mathematical Software 7 (1981), pp. 17-41, section 3.
The paper prints least values to six digits; here they are continued to eleven by Newton's method in double precision.
Far from a solution many of these functions overflow. That is left as it is: a minimizer has to cope with it.
"""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

Residuals = Callable[[Tensor], Tensor]

BARD = (0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39, 0.37, 0.58, 0.73, 0.96, 1.34, 2.10, 4.39)
GAUSSIAN = (0.0009, 0.0044, 0.0175, 0.0540, 0.1295, 0.2420, 0.3521, 0.3989)
MEYER = (34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872)
KOWALIK_OSBORNE_Y = (0.1957, 0.1947, 0.1735, 0.1600, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246)
KOWALIK_OSBORNE_U = (4.0, 2.0, 1.0, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625)
OSBORNE_1 = (
    *(0.844, 0.908, 0.932, 0.936, 0.925, 0.908, 0.881, 0.850, 0.818, 0.784, 0.751),
    *(0.718, 0.685, 0.658, 0.628, 0.603, 0.580, 0.558, 0.538, 0.522, 0.506, 0.490),
    *(0.478, 0.467, 0.457, 0.448, 0.438, 0.431, 0.424, 0.420, 0.414, 0.411, 0.406),
)
OSBORNE_2 = (
    *(1.366, 1.191, 1.112, 1.013, 0.991, 0.885, 0.831, 0.847, 0.786, 0.725, 0.746, 0.679, 0.608),
    *(0.655, 0.616, 0.606, 0.602, 0.626, 0.651, 0.724, 0.649, 0.649, 0.694, 0.644, 0.624, 0.661),
    *(0.612, 0.558, 0.533, 0.495, 0.500, 0.423, 0.395, 0.375, 0.372, 0.391, 0.396, 0.405, 0.428),
    *(0.429, 0.523, 0.562, 0.607, 0.653, 0.672, 0.708, 0.633, 0.668, 0.645, 0.632, 0.591, 0.559),
    *(0.597, 0.625, 0.739, 0.710, 0.729, 0.720, 0.636, 0.581, 0.428, 0.292, 0.162, 0.098, 0.054),
)


class Problem(NamedTuple):
    """What to minimize, where to start, and the answer; `minima` are the paper's other local ones, some at infinity."""

    name: str
    number: int
    residuals: Residuals
    start: tuple[float, ...]
    minimum: float
    minima: tuple[float, ...] = ()

    def fun(self, x: Tensor) -> Tensor:
        """Return the objective, the sum of the squared residuals at x."""
        return (self.residuals(x) ** 2).sum()


_REGISTERED: list[Problem] = []


def problems() -> list[Problem]:
    """Return all problems in the order of the paper, small before large."""
    return sorted(_REGISTERED, key=lambda problem: (problem.number, len(problem.start)))


def _problem(
    number: int, name: str, start: Iterable[float], minimum: float = 0.0, *minima: float
) -> Callable[[Residuals], Residuals]:
    """Enter the decorated residuals among the problems; `minima` are the values of further local minima."""

    def register(residuals: Residuals) -> Residuals:
        _REGISTERED.append(Problem(name, number, residuals, tuple(map(float, start)), minimum, minima))
        return residuals

    return register


def _like(x: Tensor, values: Iterable[float]) -> Tensor:
    """Return the values as a tensor of the type and on the device of x."""
    return torch.tensor(tuple(values), dtype=x.dtype, device=x.device)


def _count(x: Tensor, m: int) -> Tensor:
    """Return the indices 1, ..., m as a tensor of the type and on the device of x."""
    return torch.arange(1, m + 1, dtype=x.dtype, device=x.device)


@_problem(1, "rosenbrock", (-1.2, 1.0))
@_problem(21, "extended-rosenbrock", (-1.2, 1.0) * 5)
def rosenbrock(x: Tensor) -> Tensor:
    """Test following a curved valley, one or many at once."""
    odd, even = x[::2], x[1::2]
    return torch.cat([10 * (even - odd**2), 1 - odd])


@_problem(2, "freudenstein-roth", (0.5, -2.0), 0.0, 48.984253679)
def freudenstein_roth(x: Tensor) -> Tensor:
    """Test the choice between two minima, the nearer one being worse."""
    a, b = x
    return torch.stack([-13 + a + ((5 - b) * b - 2) * b, -29 + a + ((b + 1) * b - 14) * b])


@_problem(3, "powell-badly-scaled", (0.0, 1.0))
def powell_badly_scaled(x: Tensor) -> Tensor:
    """Test a solution whose coordinates differ by six orders of magnitude."""
    a, b = x
    return torch.stack([1e4 * a * b - 1, torch.exp(-a) + torch.exp(-b) - 1.0001])


@_problem(4, "brown-badly-scaled", (1.0, 1.0))
def brown_badly_scaled(x: Tensor) -> Tensor:
    """Test a solution whose coordinates differ by twelve orders of magnitude."""
    a, b = x
    return torch.stack([a - 1e6, b - 2e-6, a * b - 2])


@_problem(5, "beale", (1.0, 1.0))
def beale(x: Tensor) -> Tensor:
    """Test a valley that narrows towards a line at infinity."""
    return _like(x, (1.5, 2.25, 2.625)) - x[0] * (1 - x[1] ** _count(x, 3))


@_problem(6, "jennrich-sampson", (0.3, 0.4), 124.36218236)
def jennrich_sampson(x: Tensor) -> Tensor:
    """Test large residuals of fast growing exponentials."""
    i = _count(x, 10)
    return 2 + 2 * i - torch.exp(i * x[0]) - torch.exp(i * x[1])


@_problem(7, "helical-valley", (-1.0, 0.0, 0.0))
def helical_valley(x: Tensor) -> Tensor:
    """Test following a helix; the angle jumps by a full turn where x1 = 0 > x2."""
    a, b, c = x
    # Equal to the paper's arctan(x2/x1)/(2 pi), plus 1/2 if x1 < 0, but without the division that spoils gradients.
    theta = 0.25 - torch.atan2(a, b) / (2 * math.pi)
    return torch.stack([10 * (c - 10 * theta), 10 * (torch.hypot(a, b) - 1), c])


@_problem(8, "bard", (1.0, 1.0, 1.0), 8.2148773066e-3, 17.428693333)
def bard(x: Tensor) -> Tensor:
    """Test a rational fit with a worse minimum at infinity."""
    u = _count(x, 15)
    v = 16 - u
    return _like(x, BARD) - x[0] - u / (v * x[1] + torch.minimum(u, v) * x[2])


@_problem(9, "gaussian", (0.4, 1.0, 0.0), 1.1279327696e-8)
def gaussian(x: Tensor) -> Tensor:
    """Test a start so near the solution that little is left to gain."""
    t = (8 - _count(x, 15)) / 2
    return x[0] * torch.exp(-x[1] * (t - x[2]) ** 2 / 2) - _like(x, GAUSSIAN + GAUSSIAN[-2::-1])


@_problem(10, "meyer", (0.02, 4000.0, 250.0), 87.945855171)
def meyer(x: Tensor) -> Tensor:
    """Test a very ill-conditioned fit of a thermistor's resistance."""
    t = 45 + 5 * _count(x, 16)
    return x[0] * torch.exp(x[1] / (t + x[2])) - _like(x, MEYER)


@_problem(11, "gulf", (5.0, 2.5, 0.15))
def gulf(x: Tensor) -> Tensor:
    """Test the fit of a Weibull law, with a kink at each datum."""
    t = _count(x, 99) / 100
    distance = (25 + (-50 * torch.log(t)) ** (2 / 3) - x[1]).abs()
    # The power has no slope at zero; the bound keeps 0 * inf out of the gradient.
    return torch.exp(-(distance.clamp_min(torch.finfo(x.dtype).tiny) ** x[2]) / x[0]) - t


@_problem(12, "box-3d", (0.0, 10.0, 20.0))
def box_3d(x: Tensor) -> Tensor:
    """Test a fit of exponentials with a whole line of solutions."""
    t = _count(x, 10) / 10
    return torch.exp(-t * x[0]) - torch.exp(-t * x[1]) - x[2] * (torch.exp(-t) - torch.exp(-10 * t))


@_problem(13, "powell-singular", (3.0, -1.0, 0.0, 1.0))
@_problem(22, "extended-powell", (3.0, -1.0, 0.0, 1.0) * 3)
def powell_singular(x: Tensor) -> Tensor:
    """Test a solution at which the Hessian is singular."""
    a, b, c, d = x.reshape(-1, 4).T
    return torch.cat([a + 10 * b, math.sqrt(5) * (c - d), (b - 2 * c) ** 2, math.sqrt(10) * (a - d) ** 2])


@_problem(14, "wood", (-3.0, -1.0, -3.0, -1.0))
def wood(x: Tensor) -> Tensor:
    """Test two coupled valleys with a saddle on the way."""
    a, b, c, d = x
    weights = _like(x, (100, 1, 90, 1, 10, 0.1))
    return weights.sqrt() * torch.stack([b - a**2, 1 - a, d - c**2, 1 - c, b + d - 2, b - d])


@_problem(15, "kowalik-osborne", (0.25, 0.39, 0.415, 0.39), 3.0750560385e-4, 1.0273430487e-3)
def kowalik_osborne(x: Tensor) -> Tensor:
    """Test a rational fit of enzyme kinetics with a worse minimum at infinity."""
    u = _like(x, KOWALIK_OSBORNE_U)
    return _like(x, KOWALIK_OSBORNE_Y) - x[0] * (u**2 + u * x[1]) / (u**2 + u * x[2] + x[3])


@_problem(16, "brown-dennis", (25.0, 5.0, -5.0, -1.0), 85822.201626)
def brown_dennis(x: Tensor) -> Tensor:
    """Test very large residuals at the solution."""
    t = _count(x, 20) / 5
    return (x[0] + t * x[1] - torch.exp(t)) ** 2 + (x[2] + x[3] * torch.sin(t) - torch.cos(t)) ** 2


@_problem(17, "osborne-1", (0.5, 1.5, -1.0, 0.01, 0.02), 5.4648946975e-5)
def osborne_1(x: Tensor) -> Tensor:
    """Test the fit of two nearly equal decays."""
    t = 10 * (_count(x, 33) - 1)
    return _like(x, OSBORNE_1) - (x[0] + x[1] * torch.exp(-t * x[3]) + x[2] * torch.exp(-t * x[4]))


@_problem(18, "biggs-exp6", (1.0, 2.0, 1.0, 1.0, 1.0, 1.0), 0.0, 5.6556499255e-3)
def biggs_exp6(x: Tensor) -> Tensor:
    """Test the fit of three exponentials, two of which may coalesce."""
    t = _count(x, 13) / 10
    y = torch.exp(-t) - 5 * torch.exp(-10 * t) + 3 * torch.exp(-4 * t)
    return x[2] * torch.exp(-t * x[0]) - x[3] * torch.exp(-t * x[1]) + x[5] * torch.exp(-t * x[4]) - y


@_problem(19, "osborne-2", (1.3, 0.65, 0.65, 0.7, 0.6, 3.0, 5.0, 7.0, 2.0, 4.5, 5.5), 4.0137736294e-2)
def osborne_2(x: Tensor) -> Tensor:
    """Test the fit of a decay and three Gaussian peaks."""
    t = (_count(x, 65) - 1) / 10
    peaks = x[1:4] * torch.exp(-x[5:8] * (t[:, None] - x[8:11]) ** 2)
    return _like(x, OSBORNE_2) - x[0] * torch.exp(-t * x[4]) - peaks.sum(1)


@_problem(20, "watson-6", (0.0,) * 6, 2.2876700536e-3)
@_problem(20, "watson-9", (0.0,) * 9, 1.3997601381e-6)
def watson(x: Tensor) -> Tensor:
    """Test an ill-conditioned polynomial solution of a differential equation."""
    t, power = _count(x, 29) / 29, _count(x, len(x)) - 1
    monomials = t[:, None] ** power
    slope = monomials[:, :-1] @ (power * x)[1:]
    return torch.cat([slope - (monomials @ x) ** 2 - 1, x[:1], x[1:2] - x[:1] ** 2 - 1])


@_problem(23, "penalty-1-n4", range(1, 5), 2.2499775009e-5)
@_problem(23, "penalty-1-n10", range(1, 11), 7.0876514671e-5)
def penalty_1(x: Tensor) -> Tensor:
    """Test a sphere that dominates a weak pull towards a point."""
    return torch.cat([math.sqrt(1e-5) * (x - 1), (x @ x - 0.25).reshape(1)])


@_problem(24, "penalty-2-n4", (0.5,) * 4, 9.3762930074e-6)
@_problem(24, "penalty-2-n10", (0.5,) * 10, 2.9366053746e-4)
def penalty_2(x: Tensor) -> Tensor:
    """Test an ellipsoid that dominates weak exponential pulls."""
    i = _count(x, len(x))
    grown, target = torch.exp(x / 10), torch.exp(i / 10)
    pairs = grown[1:] + grown[:-1] - target[1:] - target[:-1]
    weak = math.sqrt(1e-5) * torch.cat([pairs, grown[1:] - math.exp(-0.1)])
    return torch.cat([x[:1] - 0.2, weak, (i.flip(0) @ x**2 - 1).reshape(1)])


@_problem(25, "variably-dimensioned", (1 - j / 10 for j in range(1, 11)))
def variably_dimensioned(x: Tensor) -> Tensor:
    """Test one direction that is far steeper than all others."""
    s = (_count(x, len(x)) @ (x - 1)).reshape(1)
    return torch.cat([x - 1, s, s**2])


@_problem(26, "trigonometric", (0.1,) * 10, 0.0, 2.7950561219e-5)
def trigonometric(x: Tensor) -> Tensor:
    """Test a periodic function with many minima."""
    return len(x) - torch.cos(x).sum() + _count(x, len(x)) * (1 - torch.cos(x)) - torch.sin(x)


@_problem(27, "brown-almost-linear", (0.5,) * 10, 0.0, 1.0)
def brown_almost_linear(x: Tensor) -> Tensor:
    """Test linear equations with a single product among them."""
    return torch.cat([x[:-1] + x.sum() - (len(x) + 1), (x.prod() - 1).reshape(1)])


@_problem(28, "discrete-boundary-value", (j / 11 * (j / 11 - 1) for j in range(1, 11)))
def discrete_boundary_value(x: Tensor) -> Tensor:
    """Test a two-point boundary value problem by finite differences."""
    h = 1 / (len(x) + 1)
    neighbours = pad(x, (1, 0))[:-1] + pad(x, (0, 1))[1:]
    return 2 * x - neighbours + h**2 / 2 * (x + h * _count(x, len(x)) + 1) ** 3


@_problem(29, "discrete-integral-equation", (j / 11 * (j / 11 - 1) for j in range(1, 11)))
def discrete_integral_equation(x: Tensor) -> Tensor:
    """Test the same boundary value problem as an integral equation, dense but well conditioned."""
    h = 1 / (len(x) + 1)
    t = h * _count(x, len(x))
    kernel = torch.minimum(t, t[:, None]) * (1 - torch.maximum(t, t[:, None]))
    return x + h / 2 * kernel @ (x + t + 1) ** 3


@_problem(30, "broyden-tridiagonal", (-1.0,) * 10)
def broyden_tridiagonal(x: Tensor) -> Tensor:
    """Test a quadratic system whose neighbours are coupled."""
    return (3 - 2 * x) * x - pad(x, (1, 0))[:-1] - 2 * pad(x, (0, 1))[1:] + 1


@_problem(31, "broyden-banded", (-1.0,) * 10)
def broyden_banded(x: Tensor) -> Tensor:
    """Test a cubic system with five neighbours below and one above."""
    band = x.new_ones(len(x), len(x)).triu(-5).tril(1).fill_diagonal_(0)
    return x * (2 + 5 * x**2) + 1 - band @ (x * (1 + x))


@_problem(32, "linear-full-rank", (1.0,) * 10, 10.0)
def linear_full_rank(x: Tensor) -> Tensor:
    """Test a convex quadratic; with m = 2 n residuals its least value is m - n."""
    return pad(x, (0, len(x))) - x.mean() - 1


@_problem(33, "linear-rank-1", (1.0,) * 10, 190 / 41)
def linear_rank_1(x: Tensor) -> Tensor:
    """Test a quadratic of rank one; with m = 2 n residuals its least value is m (m - 1) / (2 (2 m + 1))."""
    return _count(x, 2 * len(x)) * (_count(x, len(x)) @ x) - 1


@_problem(34, "linear-rank-1-zeros", (1.0,) * 10, 227 / 37)
def linear_rank_1_zeros(x: Tensor) -> Tensor:
    """Test rank one with zero columns and rows; with m = 2 n its least value is (m^2 + 3 m - 6) / (2 (2 m - 3))."""
    i = pad(_count(x, 2 * len(x) - 2), (1, 1))
    return i * (_count(x, len(x))[1:-1] @ x[1:-1]) - 1


@_problem(35, "chebyquad", (j / 9 for j in range(1, 9)), 3.5168737257e-3)
def chebyquad(x: Tensor) -> Tensor:
    """Test a quadrature with equal weights, which no eight nodes make exact."""
    shifted = 2 * x - 1
    chebyshev = [torch.ones_like(x), shifted]
    while len(chebyshev) <= len(x):
        chebyshev.append(2 * shifted * chebyshev[-1] - chebyshev[-2])
    integrals = _like(x, (0 if i % 2 else -1 / (i**2 - 1) for i in range(1, len(x) + 1)))
    return torch.stack(chebyshev[1:]).mean(1) - integrals
