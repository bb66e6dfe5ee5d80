"""Checks of the classical problems against values that others have published or printed."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import least_squares, minimize
from torch import Tensor
from torch.autograd.functional import jacobian

from signedstep.experiments.bench.problems.classical_functions import Problem, problems

PROBLEMS = {problem.name: problem for problem in problems()}

# Norms of the residuals printed by MINPACK's own test drivers, as kept in cminpack's examples/ref/lmddrvc.ref and
# hybdrvc.ref: at the standard start and, where the driver tries it, at ten times that start.
MINPACK_NORMS = {
    "rosenbrock": (4.9193496e00, 1.3400631e03),
    "freudenstein-roth": (2.0012496e01, 1.2432834e04),
    "powell-badly-scaled": (1.0654866e00, 1.0000000e00),
    "jennrich-sampson": (6.4585650e01,),
    "helical-valley": (5.0000000e01, 1.0295630e02),
    "bard": (6.4561363e00, 3.6141853e01),
    "meyer": (4.1153467e04, 4.1682169e06),
    "box-3d": (3.2111584e01,),
    "powell-singular": (1.4662878e01, 1.2709839e03),
    "kowalik-osborne": (7.2891510e-02, 2.9793701e00),
    "brown-dennis": (2.8154384e03, 5.5507335e05),
    "osborne-1": (9.3756402e-01,),
    "osborne-2": (1.4468654e00,),
    "watson-6": (5.4772256e00, 6.4331258e03),
    "watson-9": (5.4772256e00, 1.2088127e04),
    "trigonometric": (8.4117534e-02, 2.0305195e01),
    "brown-almost-linear": (1.6530216e01, 9.7656240e06),
    "discrete-boundary-value": (2.8080582e-02, 5.2555258e-01),
    "discrete-integral-equation": (2.5182701e-01, 6.1168330e00),
    "broyden-tridiagonal": (4.5825757e00, 6.3910093e02),
    "broyden-banded": (1.8973666e01, 1.7130922e04),
    "chebyquad": (1.9651386e-01,),
}

# The same source has the linear problems with n = 5 and m = 10, at the point of ones.
MINPACK_LINEAR_NORMS = {
    "linear-full-rank": 5.0000000e00,
    "linear-rank-1": 2.9152187e02,
    "linear-rank-1-zeros": 1.2603968e02,
}

# Values at the standard start from Gonum's optimize/functions/functions_test.go.
GONUM_VALUES = {
    "powell-badly-scaled": 1.13526171734838,
    "brown-badly-scaled": 999998000003,
    "beale": 14.203125,
    "helical-valley": 2500,
    "gaussian": 3.88810699116688e-06,
    "gulf": 12.11070582556949,
    "box-3d": 1031.1538106093985,
    "wood": 19192,
    "brown-dennis": 7926693.33699744,
    "biggs-exp6": 0.77907007565597,
    "watson-6": 30,
    "watson-9": 30,
    "penalty-1-n4": 885.06264,
    "penalty-1-n10": 148032.56535,
    "penalty-2-n4": 2.34000880546302,
    "penalty-2-n10": 162.65277656596712,
    "trigonometric": 0.00707575946622261,
}

# Values at the standard start worked out by hand, from sums of powers of the first integers.
HAND_VALUES = {
    "extended-rosenbrock": 5 * 24.2,
    "extended-powell": 3 * 215,
    "variably-dimensioned": 3.85 + 38.5**2 + 38.5**4,
    "linear-full-rank": 10 * 1 + 10 * 4,
    "linear-rank-1": 55**2 * 2870 - 2 * 55 * 210 + 20,
    "linear-rank-1-zeros": 44**2 * 2109 - 2 * 44 * 171 + 20,
}

# Least values as the paper prints them; those it does not give are zero.
PAPER_MINIMA = {
    "freudenstein-roth": (0, 48.9842),
    "jennrich-sampson": (124.362,),
    "bard": (8.21487e-3, 17.4286),
    "gaussian": (1.12793e-8,),
    "meyer": (87.9458,),
    "kowalik-osborne": (3.07505e-4, 1.02734e-3),
    "brown-dennis": (85822.2,),
    "osborne-1": (5.46489e-5,),
    "biggs-exp6": (0, 5.65565e-3),
    "osborne-2": (4.01377e-2,),
    "watson-6": (2.28767e-3,),
    "watson-9": (1.39976e-6,),
    "penalty-1-n4": (2.24997e-5,),
    "penalty-1-n10": (7.08765e-5,),
    "penalty-2-n4": (9.37629e-6,),
    "penalty-2-n10": (2.93660e-4,),
    "trigonometric": (0, 2.79506e-5),
    "brown-almost-linear": (0, 1),
    "linear-full-rank": (20 - 10,),
    "linear-rank-1": (20 * 19 / (2 * 41),),
    "linear-rank-1-zeros": ((20**2 + 3 * 20 - 6) / (2 * 37),),
    "chebyquad": (3.51687e-3,),
}

each_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())


def double(values: object) -> Tensor:
    """Return the values as a tensor of doubles."""
    return torch.tensor(values, dtype=torch.float64)


def norm(problem: Problem, x: Tensor) -> float:
    """Return the Euclidean norm of the residuals, which is what MINPACK prints."""
    return float(problem.residuals(x).norm())


def scaled_start(problem: Problem, factor: float) -> Tensor:
    """Return MINPACK's scaled start: the multiple of the standard one, or of the ones where that is zero."""
    start = double(problem.start)
    return factor * (start if start.any() else torch.ones_like(start))


def value_and_gradient(problem: Problem, x: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the objective and its gradient in the form SciPy takes."""
    point = double(x).requires_grad_()
    value = problem.fun(point)
    (gradient,) = torch.autograd.grad(value, point)
    return float(value.detach()), gradient.numpy()


def solve_bfgs(problem: Problem, start: np.ndarray) -> float:
    """Return the value at which SciPy's BFGS stops."""
    options = {"gtol": 1e-9, "maxiter": 2000}
    found = minimize(lambda x: value_and_gradient(problem, x), start, jac=True, method="BFGS", options=options)
    return float(found.fun)


def solve_levenberg_marquardt(problem: Problem, start: np.ndarray) -> float:
    """Return the value at which MINPACK's Levenberg-Marquardt method stops."""
    found = least_squares(
        lambda x: problem.residuals(double(x)).numpy(),
        start,
        jac=lambda x: jacobian(problem.residuals, double(x), vectorize=True).numpy(),
        method="lm",
        ftol=1e-13,
        xtol=1e-13,
        gtol=1e-13,
        max_nfev=500,
    )
    return 2 * float(found.cost)


def test_the_whole_collection_is_there() -> None:
    assert {problem.number for problem in problems()} == set(range(1, 36))
    assert len(PROBLEMS) == len(problems()) == 38
    assert PROBLEMS.keys() == MINPACK_NORMS.keys() | GONUM_VALUES.keys() | HAND_VALUES.keys()


@pytest.mark.parametrize("name", MINPACK_NORMS)
def test_norms_agree_with_minpack(name: str) -> None:
    at_start, *at_tenfold = MINPACK_NORMS[name]
    problem = PROBLEMS[name]
    assert norm(problem, double(problem.start)) == pytest.approx(at_start, rel=1e-7)
    assert [norm(problem, scaled_start(problem, 10)) for _ in at_tenfold] == pytest.approx(at_tenfold, rel=1e-7)


@pytest.mark.parametrize("name", MINPACK_LINEAR_NORMS)
def test_linear_norms_agree_with_minpack(name: str) -> None:
    assert norm(PROBLEMS[name], double([1.0] * 5)) == pytest.approx(MINPACK_LINEAR_NORMS[name], rel=1e-7)


@pytest.mark.parametrize(("name", "expected"), [*GONUM_VALUES.items(), *HAND_VALUES.items()])
def test_values_at_the_start_agree(name: str, expected: float) -> None:
    problem = PROBLEMS[name]
    assert float(problem.fun(double(problem.start))) == pytest.approx(expected, rel=1e-12)


@each_problem
def test_least_values_are_those_of_the_paper(problem: Problem) -> None:
    assert (problem.minimum, *problem.minima) == pytest.approx(PAPER_MINIMA.get(problem.name, (0,)), rel=1e-5)


@each_problem
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_value_and_gradient_at_the_start_are_finite(problem: Problem, dtype: torch.dtype) -> None:
    x = torch.tensor(problem.start, dtype=dtype, requires_grad=True)
    value = problem.fun(x)
    (gradient,) = torch.autograd.grad(value, x)
    assert value.dtype == gradient.dtype == dtype
    assert value.isfinite()
    assert gradient.isfinite().all()
    torch.testing.assert_close(value.double(), problem.fun(double(problem.start)), rtol=1e-4, atol=0)


@each_problem
def test_derivatives_agree_with_central_differences(problem: Problem) -> None:
    # Off the start, because the symmetry of many starts hides terms.
    x = (1.01 * double(problem.start) + 0.003).requires_grad_()
    assert torch.autograd.gradcheck(problem.residuals, x, eps=1e-6, atol=1e-5, rtol=1e-6)
    (gradient,) = torch.autograd.grad(problem.fun(x), x)
    torch.testing.assert_close(gradient, 2 * problem.residuals(x) @ jacobian(problem.residuals, x))


@each_problem
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_reference_solvers_find_the_least_value_and_nothing_below(problem: Problem) -> None:
    start = np.array(problem.start)
    found = [solve_levenberg_marquardt(problem, start), solve_bfgs(problem, start)]
    known = np.array([problem.minimum, *problem.minima])
    assert (abs(min(found) - known) <= 1e-4 * known + 1e-12).any()
    shaken = start + np.random.default_rng(problem.number).normal(scale=0.1 + 0.1 * abs(start))
    assert min(*found, solve_levenberg_marquardt(problem, shaken)) >= problem.minimum * (1 - 1e-9)


@pytest.mark.parametrize("point", [(1.0, 2.0), (-1.0, 2.0), (-1.0, -2.0), (1.0, -2.0), (-1.0, 0.0)])
def test_helical_angle_is_that_of_the_paper(point: tuple[float, float]) -> None:
    a, b = point
    theta = math.atan(b / a) / (2 * math.pi) + (0.5 if a < 0 else 0.0)
    residuals = PROBLEMS["helical-valley"].residuals(double([a, b, 3.0]))
    assert float(residuals[0]) == pytest.approx(10 * (3 - 10 * theta), rel=1e-12)


def test_gradients_are_finite_where_the_formulas_divide_by_zero() -> None:
    t = torch.arange(1, 100, dtype=torch.float64) / 100
    kink = 25 + (-50 * torch.log(t)) ** (2 / 3)
    points = {"helical-valley": [0.0, 0.5, 1.0], "gulf": [5.0, float(kink[49]), 0.15]}
    for name, point in points.items():
        assert np.isfinite(value_and_gradient(PROBLEMS[name], np.array(point))[1]).all()
