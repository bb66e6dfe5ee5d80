"""Honest endings: how runs end on functions that resist, and what holds for every result."""

import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cases import (
    METHODS,
    NEWTONS,
    SHOWN_TO_FAIL,
    SOME_METHODS,
    START,
    Recorded,
    assert_same_run,
    bowl,
    bowl_gradient,
    rosenbrock,
    rosenbrock_gradient,
    with_hessian,
)
from signedstep import Status, minimize

# Honest endings


@pytest.mark.parametrize("x0", [START, torch.from_numpy(START)], ids=["numpy", "torch"])
def test_an_exception_at_the_start_propagates(x0):
    def fun(x):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        minimize(fun, x0)


@pytest.mark.parametrize("where", range(1, 12))
@pytest.mark.parametrize("jac", [rosenbrock_gradient, None], ids=["jac", "differences"])
def test_keyboard_interrupt_propagates_from_any_evaluation(where, jac):
    counted = Recorded(rosenbrock)

    def fun(x):
        if len(counted.values) == where - 1:
            raise KeyboardInterrupt
        return counted(x)

    with pytest.raises(KeyboardInterrupt):
        minimize(fun, START, jac=jac)


@pytest.mark.parametrize(
    ("f", "g"), [(math.nan, 1.0), (math.inf, 1.0), (-math.inf, 1.0), (1.0, math.nan), (1.0, -math.inf)]
)
@pytest.mark.parametrize("method", [*SOME_METHODS, *NEWTONS])
def test_a_start_without_value_or_gradient_is_no_success(f, g, method):
    result = minimize(lambda x: (f, np.array([g, 0.0])), START, jac=True, method=method)
    assert (result.status, result.success, result.nit, result.nfev) == (Status.BAD_START, False, 0, 1)
    np.testing.assert_array_equal(result.x, START)


@pytest.mark.parametrize("method", METHODS)
def test_a_stationary_start_is_solved(method):
    result = minimize(rosenbrock, [1.0, 1.0], jac=rosenbrock_gradient, method=method)
    assert (result.status, result.success, result.nit, result.nfev) == (Status.GRADIENT, True, 0, 1)


@pytest.mark.parametrize("method", METHODS)
def test_one_variable(method):
    result = minimize(lambda x: np.cosh(x[0] - 1), [3.0], jac=lambda x: np.sinh(x - 1), method=method)
    assert result.success
    assert result.x == pytest.approx([1.0], abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("x0", [[], torch.zeros(0)], ids=["numpy", "torch"])
def test_no_variables(method, x0):
    given = {} if isinstance(x0, torch.Tensor) else {"jac": lambda x: 2 * x}
    result = minimize(lambda x: (x**2).sum() + 1, x0, method=method, **given)
    assert (result.success, result.nit, result.fun) == (True, 0, 1.0)


@pytest.mark.parametrize("method", [name for name in METHODS if name not in SHOWN_TO_FAIL])
def test_a_barrier_near_the_start_is_solved(method):
    def fun(x):
        return -math.log(x[0]) + 10 * x[0] ** 2 + (x[1] - 1) ** 2  # raises for x <= 0

    def jac(x):
        return np.array([-1 / x[0] + 20 * x[0], 2 * (x[1] - 1)])

    result = minimize(fun, [1e-3, 5.0], jac=jac, method=method)
    assert result.success
    assert result.x == pytest.approx([20**-0.5, 1.0], abs=1e-5)
    assert result.message == Status.GRADIENT.value


class Wall:
    """A bowl around (centre, 0) with something else beyond x0 = 2."""

    def __init__(self, centre: float, beyond: Callable[[], float]):
        self.centre, self.beyond = np.array([centre, 0.0]), beyond

    def __call__(self, x):
        return bowl(x, self.centre) if x[0] <= 2 else self.beyond()

    def gradient(self, x):
        return bowl_gradient(x, self.centre)


def raises() -> float:
    raise LookupError("no value beyond 2")


BEYOND = {"raises": raises, "nan": lambda: math.nan, "inf": lambda: math.inf}


@pytest.mark.parametrize("beyond", BEYOND)
@pytest.mark.parametrize("method", [*SOME_METHODS, *NEWTONS])
def test_a_wall_beyond_the_solution_does_no_harm(beyond, method):
    fun = Wall(1.0, BEYOND[beyond])
    result = minimize(fun, [-50.0, 5.0], jac=fun.gradient, method=method)
    assert result.success
    assert result.x == pytest.approx([1.0, 0.0], abs=1e-5)
    assert "LookupError" not in result.message


@pytest.mark.parametrize("beyond", BEYOND)
@pytest.mark.parametrize("method", [*SOME_METHODS, *NEWTONS])
def test_a_wall_before_the_solution_is_no_success(beyond, method):
    fun = Wall(3.0, BEYOND[beyond])
    result = minimize(fun, [-50.0, 5.0], jac=fun.gradient, method=method)
    assert not result.success
    assert result.fun < fun([-50.0, 5.0])
    assert result.x[0] == pytest.approx(2.0, abs=1e-3)
    assert result.nit < 200
    assert ("LookupError: no value beyond 2" in result.message) == (beyond == "raises")


@pytest.mark.parametrize("beyond", ["nan", "inf"])
def test_a_wall_that_ends_a_run_is_mentioned(beyond):
    fun = Wall(3.0, BEYOND[beyond])
    assert "finite" in minimize(fun, [-50.0, 5.0], jac=fun.gradient).message


@pytest.mark.parametrize("method", [*SOME_METHODS, *NEWTONS])
def test_minus_infinity_is_a_wall_too(method):
    fun = Wall(3.0, lambda: -math.inf)
    result = minimize(fun, [0.0, 1.0], jac=fun.gradient, method=method)
    assert not result.success
    assert math.isfinite(result.fun)


UNBOUNDED = {
    "linear": lambda x: (float(x[0]), np.array([1.0, 0.0])),
    "cubic": lambda x: (float(x[0] ** 3 + x[1] ** 2), np.array([3 * x[0] ** 2, 2 * x[1]])),
    "saddle": lambda x: (float(x[1] ** 2 - x[0] ** 2), np.array([-2 * x[0], 2 * x[1]])),
}


@pytest.mark.parametrize("name", UNBOUNDED)
@pytest.mark.parametrize("method", METHODS)
def test_no_success_on_unbounded_functions(name, method):
    fun = UNBOUNDED[name]
    result = minimize(fun, [-1.0, 0.5], jac=True, method=method)
    assert not result.success
    refused = method in SHOWN_TO_FAIL and result.status is Status.NOT_DESCENT
    assert result.fun < fun([-1.0, 0.5])[0] or (refused and result.nit == 1)
    assert result.nit < 100


@pytest.mark.parametrize("name", ["linear", "cubic", "saddle"])
def test_unbounded_functions_are_called_so(name):
    assert minimize(UNBOUNDED[name], [-1.0, 0.5], jac=True).status is Status.UNBOUNDED


def minus_exp(x):
    """-exp(x), which overflows long before the longest step."""
    return -math.exp(x[0]), np.array([-math.exp(x[0]), 0.0])


def log_distance(x):
    """log |x|, whose slope and curvature grow without bound towards 0."""
    return math.log(abs(x[0])), np.array([1 / x[0], 0.0])


@pytest.mark.parametrize("fun", [minus_exp, log_distance])
def test_no_crash_on_explosive_functions(fun):
    crashes = {}
    for method in METHODS:
        try:
            minimize(fun, [-1.0, 0.5], jac=True, method=method)
        except Exception as error:
            crashes[method] = repr(error)
    assert not crashes


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("fun", [minus_exp, log_distance])
@pytest.mark.parametrize("method", METHODS)
def test_no_success_on_explosive_functions(fun, method):
    result = minimize(fun, [-1.0, 0.5], jac=True, method=method)
    assert not result.success
    assert math.isfinite(result.fun)
    assert result.fun < fun([-1.0, 0.5])[0]


@pytest.mark.parametrize("method", ["auto", "lsr1", "bfgs", "sr1"])
def test_functions_bounded_below_are_not_called_unbounded(method):
    result = minimize(lambda x: (np.abs(x).sum(), np.sign(x)), [3.3, -1.7], jac=True, method=method)
    assert result.status is not Status.UNBOUNDED


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"gtol": 1e-3}, Status.GRADIENT),
        ({"gtol": 0, "ftol": 1e-3}, Status.DECREASE),
        ({"gtol": 0, "xtol": 1e-3}, Status.STEP),
    ],
    ids=["gtol", "ftol", "xtol"],
)
@pytest.mark.parametrize("method", ["auto", "bfgs", "lsr1", "sr1"])
def test_every_tolerance_stops_with_its_own_status(options, status, method):
    def fun(x):
        return rosenbrock(x) + 1

    asked = {"return_all": True, **options}
    result = minimize(fun, START, jac=rosenbrock_gradient, method=method, options=asked)
    assert (result.status, result.success, result.message) == (status, True, status.value)
    before, after = result.allvecs[-2:]
    if status is Status.GRADIENT:
        assert np.abs(result.jac).max() <= 1e-3
    if status is Status.DECREASE:
        assert fun(before) - fun(after) <= 1e-3 * fun(before)
    if status is Status.STEP:
        assert np.linalg.norm(after - before) <= 1.001e-3 * np.linalg.norm(after)


@pytest.mark.parametrize("method", METHODS)
def test_float32_that_cannot_reach_gtol_ends_soon(method):
    weights = torch.logspace(0, 3, 20)

    def fun(x):
        return (weights * (x - 1 / 3) ** 2).sum() + 0.1 * torch.cos(5 * x).sum() + 100

    result = minimize(fun, torch.zeros(20), method=method, options={"gtol": 1e-12, "maxiter": 5000})
    assert result.fun < fun(torch.zeros(20)).item()
    assert not result.success
    assert result.nit < (1000 if method.startswith("gd") else 200)


def scaled(scale: float) -> Callable:
    """A strictly convex quartic times `scale`, with its gradient."""

    def fun(x):
        z = (x - 3).astype(float)
        return float(scale * ((z**2).sum() / 2 + 0.1 * (z**4).sum())), scale * (z + 0.4 * z**3)

    return fun


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [
        (np.float64, 1e-9),
        (np.float64, 1e12),
        (np.float64, 1e150),
        (np.float32, 1e-9),
        (np.float32, 1e12),
        (np.float64, 1e-14),
        (np.float64, 1e-100),
        (np.float32, 1e-15),
        (np.float32, 1e20),
    ],
)
@pytest.mark.parametrize("method", ["auto", "lsr1", "bfgs", *NEWTONS])
def test_the_scale_of_the_function_does_not_matter(dtype, scale, method):
    x0 = np.array([0.1, 1.5, 0.3], dtype)
    result = minimize(scaled(scale), x0, jac=True, method=method, options={"gtol": 1e-3 * scale})
    assert result.success
    np.testing.assert_allclose(result.x, 3.0, atol=1e-2)


@pytest.mark.parametrize(("dtype", "scale"), [(np.float64, 1e-170), (np.float32, 1e-25)])
def test_tiny_gradients_are_not_zero(dtype, scale):
    x0 = np.array([0.1, 1.5, 0.3], dtype)
    result = minimize(scaled(scale), x0, jac=True, options={"gtol": 1e-5 * scale})
    assert np.abs(result.jac).max() <= 1e-5 * scale or not result.success


def test_gradients_too_large_to_square_are_named():
    result = minimize(scaled(1e160), np.array([0.1, 1.5, 0.3]), jac=True)
    assert result.status is Status.BAD_START
    assert "overflows" in result.message


def test_a_search_that_shrinks_to_nothing_ends():
    def fun(x):
        return (1.0, np.ones(2)) if (x == 0).all() else (math.nan, np.ones(2))

    assert not minimize(fun, [0.0, 0.0], jac=True, options={"max_linesearch": 1000}).success


@pytest.mark.parametrize(
    ("method", "dtype", "gamma"),
    [
        pytest.param("lbfgs/flip", torch.float64, 1e160),
        pytest.param("lbfgs", torch.float32, 1e-40),
    ],
)
def test_extreme_gammas_do_not_crash(method, dtype, gamma):
    x0 = torch.tensor([3.0, 4.0], dtype=dtype)
    result = minimize(lambda x: bowl(x) ** 2, x0, method=method, options={"gamma": gamma})
    assert result.fun <= 169


# What holds for every result


def quartic(a, b, c):
    """A quartic with random wells, bounded below, with its gradient."""

    def fun(x):
        y = np.roll(x, 1)
        value = (0.1 + np.abs(a)) @ x**4 / 4 + 2 * b @ x**2 + c @ x + 0.1 * x @ y
        return float(value), (0.1 + np.abs(a)) * x**3 + 4 * b * x + c + 0.1 * (y + np.roll(x, -1))

    return fun


def waves(a, b, c):
    """Random sine waves on a shallow bowl, with its gradient."""

    def fun(x):
        phase = 3 * b * x + c
        return float(a @ np.sin(phase) + 0.05 * x @ x), 3 * a * b * np.cos(phase) + 0.1 * x

    return fun


def rational(a, b, c):
    """Random rational bumps on a shallow bowl, with its gradient."""

    def fun(x):
        top, bottom = a * x**2 + b * x, 1 + (x - c) ** 2
        slope = (2 * a * x + b) / bottom - 2 * top * (x - c) / bottom**2
        return float((top / bottom).sum() + 0.05 * x @ x), slope + 0.1 * x

    return fun


@st.composite
def smooth_problems(draw):
    """A smooth non-convex function that is bounded below, and a start in either precision."""
    n = draw(st.integers(1, 6))
    vectors = st.lists(st.floats(-3, 3, width=32), min_size=n, max_size=n)
    a, b, c, x0 = (np.array(draw(vectors)) for _ in range(4))
    family = draw(st.sampled_from([quartic, waves, rational]))
    return family(a, b, c), (5 * x0).astype(draw(st.sampled_from([np.float64, np.float32])))


@given(
    problem=smooth_problems(),
    method=st.sampled_from(METHODS),
    gtol=st.sampled_from([1e-12, 1e-8, 1e-5, 1e-1]),
    change=st.sampled_from([{}, {}, {"ftol": 1e-6}, {"xtol": 1e-3}]),
    maxfun=st.sampled_from([None, 3, 30]),
)
def test_every_result_is_honest(problem, method, gtol, change, maxfun):
    fun, x0 = problem

    def rounded(x):  # one rounding, so that values belong to the precision of x
        value, g = fun(x.astype(float))
        return x.dtype.type(value), g.astype(x.dtype)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options = {"gtol": gtol, "maxfun": maxfun, "maxiter": 300, **change}
        hess = with_hessian(method, lambda x: fun(x)[1])
        result = minimize(rounded, x0, jac=True, method=method, options=options, **hess)
    f0, _ = rounded(x0)
    f, g = rounded(result.x)
    eps = np.finfo(x0.dtype).eps
    rounding = 16 * eps * max(abs(float(f0)), abs(result.fun))

    assert np.isfinite(result.x).all()
    assert (result.fun, result.x.dtype) == (f, x0.dtype)
    np.testing.assert_array_equal(result.jac, g)
    assert result.fun <= f0
    assert len(result.history) == result.nit
    assert result.nfev == result.njev == 1 + sum(record.evals for record in result.history)
    assert maxfun is None or result.nfev <= maxfun
    assert np.all(np.diff([f0, *result.history.f]) <= rounding)
    assert result.success == (result.status in (Status.GRADIENT, Status.DECREASE, Status.STEP))
    assert (result.status is Status.GRADIENT) == bool(np.abs(result.jac).max() <= gtol)
    if result.status in (Status.DECREASE, Status.STEP):
        assert change
        assert result.history[-1].status.ok
    if result.nit:
        assert result.history[-1].f == result.fun
        assert result.history[-1].grad_norm == pytest.approx(np.linalg.norm(g.astype(float)), rel=1e-5)


@given(problem=smooth_problems(), method=st.sampled_from(METHODS))
def test_runs_can_be_repeated(problem, method):
    fun, x0 = problem
    options = {"maxiter": 20}
    assert_same_run(
        minimize(fun, x0, jac=True, method=method, options=options),
        minimize(fun, x0, jac=True, method=method, options=options),
    )


@given(problem=smooth_problems(), method=st.sampled_from([*SOME_METHODS, *NEWTONS]), bound=st.floats(-5, 5))
def test_walls_anywhere_do_not_crash(problem, method, bound):
    fun, x0 = problem

    def walled(x):
        return fun(x) if x[0] >= min(bound, x0[0]) else (math.nan, x)

    result = minimize(walled, x0, jac=True, method=method, options={"maxiter": 100})
    assert result.fun <= fun(x0)[0] + 1e-6 * abs(fun(x0)[0])
    assert result.x[0] >= min(bound, x0[0])
    assert result.success == bool(np.abs(result.jac).max() <= 1e-5)


@pytest.mark.parametrize("method", [name for name in METHODS if name not in SHOWN_TO_FAIL])
def test_a_gradient_with_the_wrong_sign_is_named_and_moves_nothing(method):
    def wrong(x):
        return 18 + bowl(x) + 0.1 * bowl(x) ** 2, -bowl_gradient(x) * (1 + 0.2 * bowl(x))

    hess = {"hess": lambda x: np.eye(2)} if method.startswith("newton") else {}
    result = minimize(wrong, np.zeros(2), jac=True, method=method, **hess)
    assert result.status is Status.CONTRADICTION
    assert not result.success
    assert result.fun == wrong(np.zeros(2))[0]


@pytest.mark.parametrize("method", SOME_METHODS)
def test_what_rounding_leaves_of_a_sum_of_squares_is_no_contradiction(method):
    """f is 1e-30 there, and may double in any direction."""
    A = torch.randn(30, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    b = torch.tanh(A @ torch.linspace(-1, 1, 6, dtype=torch.float64))
    x0 = torch.full((6,), 0.3, dtype=torch.float64)
    options = {"gtol": 0, "maxfun": 2000}
    result = minimize(lambda x: (torch.tanh(A @ x) - b).square().sum(), x0, method=method, options=options)
    assert result.status in (Status.STALLED, Status.GRADIENT, Status.MAXFUN)
    assert result.fun < 1e-6


@pytest.mark.parametrize("method", ["auto", "bfgs", "lbfgs", "sr1"])
def test_differences_do_not_go_on_where_they_cannot_see(method):
    """Steps a hundred times shorter than those of the differences found a little each, for ten thousand evaluations."""
    for a in np.arange(-2, 2.1, 1.0):
        for b in np.arange(-2, 2.1, 1.0):
            result = minimize(lambda x: 5 * rosenbrock(x), [a, b], method=method)
            assert result.fun < 1e-8
            assert result.nfev < 1200


def far(x):
    return float((x[0] - 1e6) ** 2), 2 * (x - 1e6)


@pytest.mark.parametrize("change", [{"ftol": 1e-4}, {"xtol": 1e-4}], ids=["ftol", "xtol"])
@pytest.mark.parametrize("start", [0.0, 5e5])
@pytest.mark.parametrize("method", METHODS)
def test_a_step_that_was_cut_short_is_no_convergence(method, start, change):
    """By the end of the budget, by few trials, or by a radius that is still that of the first step."""
    hess = with_hessian(method, lambda x: far(x)[1])
    for cut in ({"maxfun": 2}, {"maxfun": 4}, {"max_linesearch": 1, "maxiter": 3}, {}):
        result = minimize(far, np.array([start]), jac=True, method=method, options={**change, **cut}, **hess)
        assert not result.success or abs(result.x[0] - 1e6) < 100, cut
    if not method.startswith("gd/"):
        assert result.success


@pytest.mark.parametrize("change", [{"ftol": 1e-6}, {"xtol": 1e-6}], ids=["ftol", "xtol"])
@pytest.mark.parametrize("method", METHODS)
def test_a_wall_is_no_convergence(method, change):
    """Beside which (2, 0) would be lower."""

    def wall(x):
        if x[0] > 2:
            raise ValueError("beyond the wall")
        return float((x[0] - 3) ** 2 + x[1] ** 2), np.array([2 * (x[0] - 3), 2 * x[1]])

    hess = with_hessian(method, lambda x: np.array([2 * (x[0] - 3), 2 * x[1]]))
    result = minimize(wall, np.array([0.0, 1.0]), jac=True, method=method, options=change, **hess)
    assert not result.success
    assert result.fun < 10


@pytest.mark.parametrize("change", [{}, {"ftol": 1e-3}, {"xtol": 1e-3}], ids=["gtol", "ftol", "xtol"])
@pytest.mark.parametrize("method", ["lsr1/trust", "newton", "auto"])
def test_an_infinite_x_is_no_convergence(method, change):
    def falls(x):
        return -float(min(x[0], 3e38)), np.array([-1.0 if x[0] < 3e38 else 0.0], x.dtype)

    hess = with_hessian(method, lambda x: falls(x)[1])
    result = minimize(falls, np.array([1e37], np.float32), jac=True, method=method, options=change, **hess)
    assert result.success <= np.isfinite(result.x).all()


@pytest.mark.parametrize("change", [{"ftol": 1e-7}, {"xtol": 1e-7}], ids=["ftol", "xtol"])
@pytest.mark.parametrize("method", ["gd", "cg", "bfgs", "lbfgs", "sr1", "lsr1", "lsr1/clip", "mix"])
def test_steps_of_armijo_are_convergence_only_where_they_are_the_models(method, change):
    """The first trial has an arbitrary length, and backtracking from a wall ends anywhere."""
    options = {"gtol": 0, "condition": "armijo", "maxiter": 300, **change}
    wide = lambda x: (((x / 1e8) ** 2).sum(), 2 * x / 1e16)  # noqa: E731
    result = minimize(wide, np.array([3e8, -2e8]), jac=True, method=method, options=options)
    assert not result.success or result.fun < 1e-3
    wall = lambda x: (-x[0] if x[0] < 1 else np.nan, np.array([-1.0]))  # noqa: E731
    assert not minimize(wall, np.array([-3.0]), jac=True, method=method, options=options).success
    below = lambda x: (-(x @ x), -2 * x)  # noqa: E731
    assert not minimize(below, np.array([1.0, 2.0]), jac=True, method=method, options=options).success


@pytest.mark.parametrize("method", ["lbfgs/cubic", "bfgs/cubic", "sr1/trust"])
@pytest.mark.parametrize("unit", [1e140, 1e-140])
def test_extreme_units_raise_nothing(method, unit):
    fun = lambda x: (((x / unit - 1) ** 2).sum(), 2 * (x / unit - 1) / unit)  # noqa: E731
    result = minimize(fun, np.array([3 * unit, 2 * unit]), jac=True, method=method, options={"gtol": 0})
    assert np.isfinite(result.fun)
    assert result.fun <= 5


def test_sr1_never_begins_with_a_scale_that_makes_it_singular():
    """With gamma = s.y/s.s the rest of y is orthogonal to s: H lost a direction for good."""

    def beale(x):
        a, b = x
        t = 1.5 - a + a * b, 2.25 - a + a * b * b, 2.625 - a + a * b**3
        by_a = t[0] * (b - 1) + t[1] * (b * b - 1) + t[2] * (b**3 - 1)
        by_b = t[0] * a + 2 * t[1] * a * b + 3 * t[2] * a * b * b
        return sum(each * each for each in t), 2 * np.array([by_a, by_b])

    for method in ("sr1/trust", "sr1/cubic", "sr1/flip"):
        result = minimize(beale, [1.0, 1.0], jac=True, method=method, options={"gtol": 1e-6, "gamma": "sy/ss"})
        assert result.success
        assert result.nfev < 60


@pytest.mark.parametrize("change", [{"ftol": 1e-8}, {"xtol": 1e-6}], ids=["ftol", "xtol"])
@pytest.mark.parametrize(
    "method",
    [
        *("auto", "lbfgs", "lsr1/flip", "bfgs/trust", "lbfgs/trust", "sr1/trust", "newton/trust", "newton/cubic"),
        *(f"lsr1/{how}" for how in ("trust", "dogleg", "subspace", "steihaug", "cubic")),
    ],
)
def test_what_has_converged_says_so(method, change):
    """The radius of a limited indefinite model always binds: its steps are short all the same at the end."""
    A = np.random.default_rng(0).normal(size=(30, 30))
    A = A @ A.T + 0.1 * np.eye(30)
    fun = lambda x: (float(0.5 * x @ A @ x - x.sum()), A @ x - 1)  # noqa: E731
    hess = with_hessian(method, lambda x: A @ x - 1)
    options = {"gtol": 0, "maxiter": 1000, "maxfun": 700, **change}
    result = minimize(fun, np.zeros(30), jac=True, method=method, options=options, **hess)
    assert result.success
