"""`minimize` from outside: SciPy's habits, and functions as users write them."""

import copy
import inspect
import math
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg
import torch
from scipy.optimize import OptimizeResult

import signedstep
from cases import (
    SOME_METHODS,
    START,
    Recorded,
    assert_same_run,
    bowl,
    bowl_gradient,
    rosenbrock,
    rosenbrock_gradient,
    rosenbrock_with_gradient,
)
from signedstep import LeastSquares, Result, Status, minimize

# SciPy's habits: arguments and gradients


@pytest.mark.parametrize("args", [(2.0,), 2.0, [2.0, 2.0]], ids=["tuple", "number", "list"])
@pytest.mark.parametrize("jac", [bowl_gradient, None], ids=["jac", "differences"])
def test_args_reach_function_and_gradient(args, jac):
    assert minimize(bowl, [5.0, -1.0], args=args, jac=jac).x == pytest.approx([2.0, 2.0], abs=1e-5)


def test_several_args_keep_their_order():
    def fun(x, a, b):
        return ((x - a / b) ** 2).sum()

    assert minimize(fun, [5.0], args=(6.0, 3.0)).x == pytest.approx([2.0], abs=1e-5)


def test_args_reach_a_torch_function():
    centre: Any = torch.tensor([2.0, 3.0])
    assert torch.allclose(minimize(bowl, torch.zeros(2), args=centre).x, centre)


def test_ways_to_give_the_gradient_agree():
    by_callable = minimize(rosenbrock, START, jac=rosenbrock_gradient)
    together = minimize(rosenbrock_with_gradient, START, jac=True)
    assert by_callable.success
    assert_same_run(by_callable, together)


@pytest.mark.parametrize("jac", [None, False, "2-point"])
def test_forward_differences_are_the_default(jac):
    assert_same_run(minimize(rosenbrock, START, jac=jac), minimize(rosenbrock, START))


@pytest.mark.parametrize(("jac", "cost", "error"), [(None, 1, 1e-6), ("3-point", 2, 1e-9)])
def test_differences_are_accurate_and_counted(jac, cost, error):
    x0 = np.array([-1.2, 1.0, 1e4, 0.0, 1e-3])

    def fun(x):
        return float(np.sin(x[0]) + x[1] ** 3 + 1e-3 * x[2] ** 2 + np.exp(x[3]) + x[4] ** 2)

    exact = np.array([np.cos(-1.2), 3.0, 20.0, 1.0, 2e-3])
    counted = Recorded(fun)
    result = minimize(counted, x0, jac=jac, options={"maxiter": 0})
    scale = np.maximum(1, np.abs(exact)) * (abs(fun(x0)) if jac is None else 1e3)
    assert np.all(np.abs(result.jac - exact) <= error * scale)
    assert (result.nfev, result.njev) == (1 + cost * 5, 1)
    assert len(counted.values) == result.nfev


@pytest.mark.parametrize("jac", [None, "3-point"])
@pytest.mark.parametrize("method", [name for name in SOME_METHODS if name != "gd"])
def test_differences_solve_and_count_a_whole_run(jac, method):
    counted = Recorded(rosenbrock)
    result = minimize(counted, START, jac=jac, method=method)
    assert result.nfev == len(counted.values) < 2000
    assert result.x == pytest.approx([1.0, 1.0], abs=1e-3)
    assert result.success == bool(np.abs(result.jac).max() <= 1e-5)


@pytest.mark.parametrize("jac", [None, "3-point"])
def test_no_differences_are_made_where_the_value_is_not_finite(jac):
    """They cost n values, or 2n, each time that a search met a wall, and NumPy warned of inf - inf."""
    counted = Recorded(lambda x: bowl(x) if np.abs(x - 3).max() < 0.1 else np.inf)
    result = minimize(counted, np.full(20, 3.0), jac=jac, options={"maxiter": 2})
    walls = sum(not np.isfinite(value) for value in counted.values)
    assert walls > 0
    assert result.nfev == len(counted.values) == walls + result.njev * (1 + (20 if jac is None else 40))


def test_no_differences_of_residuals_are_made_where_they_are_not_finite():
    counted = Recorded(lambda x: np.where(np.abs(x - 3).max() < 0.1, x - 1, np.inf))
    result = minimize(LeastSquares(counted), np.full(20, 3.0), method="lbfgs", options={"maxiter": 2})
    walls = sum(not np.isfinite(value).all() for value in counted.values)
    assert walls > 0
    assert result.nfev == len(counted.values) == walls + (result.njev - walls) * 21


@pytest.mark.parametrize("jac", ["cs", "4-point", 3.0, [1.0, 2.0]])
def test_other_gradients_are_refused(jac):
    with pytest.raises(ValueError, match="jac must be"):
        minimize(bowl, [3.0, 4.0], jac=jac)


@pytest.mark.parametrize("name", ["fun", "callback"])
def test_what_must_be_callable_is_named(name):
    with pytest.raises(TypeError, match=f"{name} must be callable, got 3"):
        minimize(**{"fun": bowl, "x0": [3.0, 4.0], name: 3})


# SciPy's habits: callbacks


def test_callback_gets_intermediate_results():
    seen = []

    def callback(intermediate_result):
        seen.append(intermediate_result)

    result = minimize(rosenbrock, START, jac=rosenbrock_gradient, callback=callback)
    assert all(isinstance(one, OptimizeResult) for one in seen)
    assert [one.nit for one in seen] == list(range(1, result.nit + 1))
    np.testing.assert_array_equal([one.fun for one in seen], result.history.f)
    np.testing.assert_array_equal([rosenbrock(one.x) for one in seen], result.history.f)


@pytest.mark.parametrize("x0", [np.ones((2, 2), np.float32), torch.ones(2, 2)], ids=["numpy", "torch"])
def test_callback_gets_x_like_x0(x0):
    seen = []
    minimize(lambda x: bowl(x, 3.0), x0, jac=lambda x: bowl_gradient(x, 3.0), callback=lambda x: seen.append(x))
    assert seen
    assert all(type(x) is type(x0) and x.dtype == x0.dtype and x.shape == x0.shape for x in seen)


def test_callback_may_write_into_what_it_gets():
    def callback(x):
        x[:] = math.nan

    plain = minimize(rosenbrock, START, jac=rosenbrock_gradient)
    assert_same_run(plain, minimize(rosenbrock, START, jac=rosenbrock_gradient, callback=callback))


@pytest.mark.parametrize("named", [True, False])
def test_stop_iteration_ends_the_run(named):
    calls = []

    def stop(x):
        calls.append(x)
        if len(calls) == 2:
            raise StopIteration

    def callback(intermediate_result):
        stop(intermediate_result.x)

    result = minimize(rosenbrock, START, jac=rosenbrock_gradient, callback=callback if named else stop)
    assert (result.status, result.success, result.nit) == (Status.CALLBACK, False, 2)
    assert len(calls) == 2
    np.testing.assert_array_equal(result.x, calls[-1])


def test_other_exceptions_of_a_callback_propagate():
    def callback(x):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        minimize(rosenbrock, START, jac=rosenbrock_gradient, callback=callback)


def test_callback_may_use_autograd():
    norms = []

    def callback(x):
        leaf = x.clone().requires_grad_(True)
        bowl(leaf).backward()
        norms.append(float(leaf.grad.norm()))

    minimize(bowl, torch.zeros(2), callback=callback)
    assert norms[-1] < 1e-5


def test_callback_with_further_parameters_gets_x_as_in_scipy():
    seen = []

    def callback(x, intermediate_result=None):
        seen.append((x, intermediate_result))

    minimize(bowl, [3.0, 4.0], jac=bowl_gradient, callback=callback)
    assert seen
    assert all(isinstance(x, np.ndarray) and other is None for x, other in seen)


# The result as an object


def test_a_result_is_scipys_result_and_can_be_pickled():
    result = minimize(rosenbrock, START, jac=rosenbrock_gradient)
    assert isinstance(result, OptimizeResult)
    assert isinstance(result, Result)
    expected = {"x", "fun", "jac", "nit", "nfev", "njev", "nhev", "success", "status", "message", "history"}
    assert set(result) == expected
    assert type(result.success) is bool
    for twin in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert_same_run(result, twin)
        assert twin.status is result.status
    assert all(key in repr(result) for key in expected)


def test_scipys_places_of_arguments():
    """bounds and constraints have theirs, and are refused unless they are empty."""
    ours, theirs = (list(inspect.signature(f).parameters) for f in (minimize, scipy.optimize.minimize))
    assert ours == theirs
    for none in ((), [], None):
        assert minimize(bowl, START, bounds=None, constraints=none).success
    with pytest.raises(ValueError, match="without bounds and constraints"):
        minimize(bowl, START, bounds=[(0, 1)])
    with pytest.raises(ValueError, match="without bounds and constraints"):
        minimize(bowl, START, constraints={"type": "eq", "fun": bowl})


# Functions as users write them


def test_differences_for_a_start_in_float32_are_made_in_float64():
    result = minimize(lambda x: (x**2).sum(), np.array([1, 2, 3, 4], np.float32))
    assert result.success
    assert result.x.dtype == np.float32
    assert result.nfev < 100


def test_a_function_that_writes_into_what_autograd_differentiates_is_told():
    def careless(x):
        with torch.no_grad():
            x.clamp_(min=0.5)
        return (x**2).sum()

    with pytest.raises(ValueError, match="must not write into x"):
        signedstep.minimize(careless, torch.tensor([1.0, 0.1]))


@pytest.mark.parametrize("how", ["jac", "both", "tensor"])
def test_the_gradient_of_one_unknown_may_be_a_number(how):
    fun, jac = (lambda x: (x[0] - 3) ** 2), (lambda x: 2 * (x[0] - 3))
    if how == "jac":
        result = minimize(fun, [1.0], jac=jac)
    elif how == "both":
        result = minimize(lambda x: (fun(x), jac(x)), [1.0], jac=True)
    else:
        result = minimize(fun, torch.ones(1), jac=jac)
    assert result.success
    assert result.x == pytest.approx(3)
    assert result.x.shape == (1,)


@pytest.mark.parametrize("wrap", [np.float32, lambda value: torch.tensor(value, dtype=torch.float32)], ids=["np", "t"])
@pytest.mark.parametrize("jac", [None, "3-point"])
def test_differences_are_as_long_as_the_precision_of_the_values_needs(wrap, jac):
    """Forward differences of 1e-8 do not show in float32, and the gradient was 0 everywhere."""
    result = minimize(lambda x: wrap(np.sum((np.asarray(x, np.float32) - 3) ** 2)), np.zeros(2), jac=jac)
    assert np.allclose(result.x, 3, atol=1e-2)


@pytest.mark.parametrize("method", ["auto", "lbfgs", "bfgs", "lsr1/trust", "newton-cg"])
def test_a_backward_may_use_its_buffer_again(method):
    """As wrappers of solvers do: gradients of two points were one memory, and nothing was learned."""
    A = torch.tensor([1.0, 10.0, 100.0], dtype=torch.float64)

    def quadratic(again: bool):
        buffer = torch.zeros(3, dtype=torch.float64)

        class Quadratic(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return 0.5 * (A * x * x).sum()

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return torch.mul(A, x, out=buffer) if again and not torch.is_grad_enabled() else g * A * x

        return Quadratic.apply

    x0 = torch.ones(3, dtype=torch.float64)
    fresh, same = (signedstep.minimize(quadratic(again), x0, method=method) for again in (False, True))
    assert (fresh.fun, fresh.nit) == (same.fun, same.nit)


def test_float32_takes_gradients_and_hessians_beyond_its_range_without_a_word():
    huge = lambda x: (1e300 * float(x[0]), np.array([1e300]))  # noqa: E731
    assert minimize(huge, np.ones(1, np.float32), jac=True).status is Status.BAD_START
    steep = lambda x: np.array([[1e300]])  # noqa: E731
    result = minimize(bowl, np.zeros(1, np.float32), jac=bowl_gradient, hess=steep, method="newton")
    assert result.success


@pytest.mark.parametrize("method", ["newton", "newton-cg"])
def test_a_hessian_may_be_a_tensor_that_remembers_where_it_came_from(method):
    scale = torch.full((3,), 2.0, dtype=torch.float64, requires_grad=True)
    result = minimize(bowl, np.zeros(3), jac=bowl_gradient, hess=lambda x: torch.diag(scale), method=method)
    assert result.success


def test_an_operator_may_write_into_its_argument():
    d = np.arange(1.0, 7.0)

    def operator(x):
        def into(v):
            v *= 2 * d - np.cos(x)
            return v

        return scipy.sparse.linalg.LinearOperator((6, 6), matvec=into, dtype=float)

    fun = lambda x: (x @ (d * x) + np.cos(x).sum(), 2 * d * x - np.sin(x))  # noqa: E731
    runs = [
        minimize(fun, np.full(6, 2.0), jac=True, hess=hess, method="newton-cg")
        for hess in (operator, lambda x: np.diag(2 * d - np.cos(x)))
    ]
    assert runs[0].success
    assert (runs[0].nit, runs[0].fun) == (runs[1].nit, runs[1].fun)
