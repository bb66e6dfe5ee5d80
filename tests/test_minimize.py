"""`minimize` and `method` from outside: SciPy's habits, both fronts, honest endings and invariants of every result.

A test marked `defect` states what should hold and does not yet; it is strict, so mending the defect removes the mark.
"""

import copy
import math
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import OptimizeResult, OptimizeWarning

import signedstep
from signedstep import Result, Status, minimize

METHODS = list(signedstep.methods())
SOME_METHODS = ["auto", "gd", "bfgs", "sr1", "lbfgs", "lsr1", "lsr1/wolfe+-", "lsr1/damp"]
START = np.array([-1.2, 1.0])


def defect(reason: str, **given: Any) -> pytest.MarkDecorator:
    """The mark of a test that fails because the library misbehaves."""
    return pytest.mark.xfail(strict=True, reason=f"DEFECT: {reason}", **given)


def rosenbrock(x):
    """Rosenbrock's function of two variables, for arrays and tensors."""
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


def rosenbrock_gradient(x: np.ndarray) -> np.ndarray:
    return np.array([-400 * x[0] * (x[1] - x[0] ** 2) - 2 * (1 - x[0]), 200 * (x[1] - x[0] ** 2)])


def rosenbrock_with_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
    return rosenbrock(x), rosenbrock_gradient(x)


def bowl(x, centre=1.0):
    """A sphere around `centre`, for arrays and tensors of any shape."""
    return ((x - centre) ** 2).sum()


def bowl_gradient(x, centre=1.0):
    return 2 * (x - centre)


class Recorded:
    """A function that keeps its arguments and its values."""

    def __init__(self, function: Callable):
        self.function = function
        self.seen: list[Any] = []
        self.values: list[Any] = []

    def __call__(self, x, *args):
        self.seen.append(copy.deepcopy(x))
        self.values.append(self.function(x, *args))
        return self.values[-1]


def assert_same_run(a: Result, b: Result) -> None:
    """Two results agree bit for bit, clocks apart."""
    np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(a.jac, b.jac)
    for key in ("fun", "nit", "nfev", "njev", "nhev", "success", "status", "message"):
        assert a[key] == b[key], key
    assert [r._replace(seconds=0) for r in a.history] == [r._replace(seconds=0) for r in b.history]


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
    centre = torch.tensor([2.0, 3.0])
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
def test_differences_solve_and_count_a_whole_run(jac):
    counted = Recorded(rosenbrock)
    result = minimize(counted, START, jac=jac, options={"gtol": 1e-4})
    assert result.success
    assert result.nfev == len(counted.values)
    assert result.x == pytest.approx([1.0, 1.0], abs=1e-2)


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


@defect("callbacks run under no_grad", raises=RuntimeError)
def test_callback_may_use_autograd():
    norms = []

    def callback(x):
        leaf = x.clone().requires_grad_(True)
        bowl(leaf).backward()
        norms.append(float(leaf.grad.norm()))

    minimize(bowl, torch.zeros(2), callback=callback)
    assert norms[-1] < 1e-5


@defect("SciPy passes intermediate_result only to callbacks whose one parameter has that name", raises=TypeError)
def test_callback_with_further_parameters_gets_x_as_in_scipy():
    seen = []

    def callback(x, intermediate_result=None):
        seen.append((x, intermediate_result))

    minimize(bowl, [3.0, 4.0], jac=bowl_gradient, callback=callback)
    assert seen
    assert all(isinstance(x, np.ndarray) and other is None for x, other in seen)


# SciPy's habits: limits and options


@pytest.mark.parametrize("method", SOME_METHODS)
@pytest.mark.parametrize("maxiter", [0, 1, 3])
def test_maxiter(method, maxiter):
    result = minimize(rosenbrock, START, jac=rosenbrock_gradient, method=method, options={"maxiter": maxiter})
    assert (result.status, result.success, result.nit) == (Status.MAXITER, False, maxiter)
    assert (maxiter > 0) == bool((result.x != START).any())


@pytest.mark.parametrize("method", SOME_METHODS)
def test_maxfun_is_never_exceeded(method):
    for budget in range(1, 25):
        counted = Recorded(rosenbrock)
        result = minimize(counted, START, jac=rosenbrock_gradient, method=method, options={"maxfun": budget})
        assert result.nfev == result.njev == len(counted.values) <= budget
        assert (result.status, result.success) == (Status.MAXFUN, False)
        assert result.fun <= counted.values[0]


@defect("the budget of a search counts gradients, of which each costs several function values")
@pytest.mark.parametrize("jac", [None, "3-point"])
@pytest.mark.parametrize("budget", [12, 13, 20, 31])
def test_maxfun_is_never_exceeded_by_differences(jac, budget):
    counts = []
    for n in (2, 5):
        counted = Recorded(lambda x: float((x**4).sum() + bowl(x)))
        minimize(counted, np.full(n, 30.0), jac=jac, method="gd", options={"maxfun": budget, "gtol": 0})
        counts.append(len(counted.values))
    assert max(counts) <= budget


@pytest.mark.parametrize("budget", range(2, 16))
def test_best_point_is_kept_when_the_budget_ends_in_mid_search(budget):
    counted = Recorded(lambda x: -float(x[0]))
    result = minimize(counted, [0.0], jac=lambda x: np.array([-1.0]), options={"maxfun": budget})
    assert (result.status, result.nit, len(counted.values)) == (Status.MAXFUN, 1, budget)
    assert result.fun == min(counted.values) == -result.x[0] < 0


def test_budget_that_ends_before_a_lower_point_keeps_the_start():
    options = {"maxfun": 2, "gamma": 1.0}
    result = minimize(lambda x: 1e6 * x[0] ** 2, [1e-3], jac=lambda x: 2e6 * x, options=options)
    assert (result.status, result.nfev, result.x.item()) == (Status.MAXFUN, 2, 1e-3)
    assert result.history[0].alpha == 0


def test_return_all_keeps_every_iterate():
    result = minimize(rosenbrock, START, jac=rosenbrock_gradient, options={"return_all": True})
    assert len(result.allvecs) == result.nit + 1
    np.testing.assert_array_equal(result.allvecs[0], START)
    np.testing.assert_array_equal(result.allvecs[-1], result.x)
    np.testing.assert_array_equal([rosenbrock(x) for x in result.allvecs[1:]], result.history.f)


def test_iterates_are_not_kept_unasked():
    assert "allvecs" not in minimize(bowl, [3.0, 4.0], jac=bowl_gradient)


def test_disp_prints_a_summary(capsys):
    result = minimize(rosenbrock, START, jac=rosenbrock_gradient, method="lsr1", options={"disp": True})
    printed = capsys.readouterr().out
    for word in (result.message, "lsr1/flip", f"Iterations: {result.nit}", f"Function evaluations: {result.nfev}"):
        assert word in printed


def test_without_disp_nothing_is_printed(capsys):
    minimize(rosenbrock, START, jac=rosenbrock_gradient)
    assert capsys.readouterr() == ("", "")


def test_tol_is_short_for_gtol():
    loose = minimize(rosenbrock, START, jac=rosenbrock_gradient, tol=1.0)
    assert 1e-5 < np.abs(loose.jac).max() <= 1.0
    assert_same_run(loose, minimize(rosenbrock, START, jac=rosenbrock_gradient, options={"gtol": 1.0}))


def test_an_explicit_gtol_wins_over_tol():
    result = minimize(rosenbrock, START, jac=rosenbrock_gradient, tol=1.0, options={"gtol": 1e-8})
    assert np.abs(result.jac).max() <= 1e-8


def test_options_are_not_modified():
    options = {"maxiter": 3}
    minimize(rosenbrock, START, jac=rosenbrock_gradient, tol=1e-3, options=options)
    assert options == {"maxiter": 3}


def test_unknown_options_warn_and_do_no_harm():
    with pytest.warns(OptimizeWarning, match="bogus"):
        result = minimize(bowl, [3.0, 4.0], jac=bowl_gradient, options={"bogus": 1})
    assert_same_run(result, minimize(bowl, [3.0, 4.0], jac=bowl_gradient))


@pytest.mark.parametrize("name", ["hess", "hessp"])
def test_second_derivatives_warn_that_they_are_unused(name):
    with pytest.warns(OptimizeWarning, match=f"^{name} "):
        minimize(bowl, [3.0, 4.0], jac=bowl_gradient, **{name: lambda x: np.eye(2)})


@defect("stacklevel does not count the wrapper of torch.no_grad")
@pytest.mark.parametrize("given", [{"options": {"bogus": 1}}, {"hess": bowl_gradient}], ids=["option", "hess"])
def test_warnings_point_at_the_caller(given):
    with pytest.warns(OptimizeWarning) as caught:
        minimize(bowl, [3.0, 4.0], jac=bowl_gradient, **given)
    assert caught[0].filename == __file__


# NumPy in, NumPy out


@pytest.mark.parametrize(
    ("x0", "dtype", "shape"),
    [
        (np.array([3.0, -4.0], np.float32), np.float32, (2,)),
        (np.array([3.0, -4.0]), np.float64, (2,)),
        (np.array([3, -4]), np.float64, (2,)),
        (np.array([True, False]), np.float64, (2,)),
        ([3.0, -4.0], np.float64, (2,)),
        ((3, -4), np.float64, (2,)),
        (3.0, np.float64, (1,)),
        (np.float32(3.0), np.float32, (1,)),
        (np.arange(6.0).reshape(2, 3), np.float64, (2, 3)),
        (np.asfortranarray(np.arange(6.0, dtype=np.float32).reshape(2, 3)), np.float32, (2, 3)),
        (np.arange(12.0)[::-2], np.float64, (6,)),
        (np.zeros((2, 0, 3)), np.float64, (2, 0, 3)),
    ],
)
def test_arrays_keep_precision_and_shape(x0, dtype, shape):
    # Targets that differ from entry to entry notice a changed order.
    centre = np.arange(math.prod(shape), dtype=dtype).reshape(shape) / 7
    fun = Recorded(lambda x: bowl(x, centre))
    result = minimize(fun, x0, jac=lambda x: bowl_gradient(x, centre))
    assert result.success
    for array in (result.x, result.jac, *fun.seen):
        assert isinstance(array, np.ndarray)
        assert (array.dtype, array.shape) == (dtype, shape)
    np.testing.assert_array_equal(fun.seen[0].ravel(), np.ravel(x0))
    np.testing.assert_allclose(result.x, centre, atol=1e-5)
    assert type(result.fun) is float


@pytest.mark.parametrize("dtype", [pytest.param(np.float32, marks=defect("SciPy's differences are float64")), float])
@pytest.mark.parametrize("jac", [None, "3-point"])
def test_differences_keep_the_precision_of_x0(dtype, jac):
    fun = Recorded(bowl)
    minimize(fun, np.array([3.0, 4.0], dtype), jac=jac, options={"maxiter": 2})
    assert {x.dtype for x in fun.seen} == {np.dtype(dtype)}


def test_differences_work_for_matrices():
    x0 = np.zeros((2, 3))
    centre = np.arange(6.0).reshape(2, 3)
    fun = Recorded(lambda x: bowl(x, centre))
    np.testing.assert_allclose(minimize(fun, x0).x, centre, atol=1e-5)
    assert {x.shape for x in fun.seen} == {(2, 3)}


def test_byte_order_does_not_matter():
    x0 = np.array([3.0, 4.0], dtype=">f8")
    assert minimize(bowl, x0.astype("<f8"), jac=bowl_gradient).success
    with pytest.raises(TypeError, match=r"x0.*>f8"):
        minimize(bowl, x0, jac=bowl_gradient)


def test_a_function_that_writes_into_its_array_does_no_harm():
    def fun(x):
        value = rosenbrock(x)
        x[:] = math.nan
        return value

    def jac(x):
        g = rosenbrock_gradient(x)
        x *= 2
        return g

    clean = minimize(rosenbrock, START, jac=rosenbrock_gradient)
    assert_same_run(clean, minimize(fun, START, jac=jac))
    assert_same_run(minimize(rosenbrock, START), minimize(fun, START))


def test_a_reused_gradient_array_does_no_harm():
    buffer = np.zeros(2)

    def fun(x):
        buffer[:] = rosenbrock_gradient(x)
        return rosenbrock(x), buffer

    clean = minimize(rosenbrock, START, jac=rosenbrock_gradient)
    assert_same_run(clean, minimize(fun, START, jac=True))


@pytest.mark.parametrize("caller_grad", [True, False])
def test_autograd_may_be_used_inside_a_function_of_arrays(caller_grad):
    def fun(x):
        leaf = torch.tensor(x, requires_grad=True)
        value = rosenbrock(leaf)
        value.backward()
        return value.item(), leaf.grad.numpy()

    with torch.set_grad_enabled(caller_grad):
        assert minimize(fun, START, jac=True).success


@defect("NumPy deprecates how the tensor is converted", raises=DeprecationWarning)
def test_a_function_of_arrays_may_return_tensors():
    def fun(x):
        leaf = torch.tensor(x, requires_grad=True)
        value = rosenbrock(leaf)
        value.backward()
        return value, leaf.grad

    assert_same_run(
        minimize(fun, START, jac=True), minimize(lambda x: tuple(v.numpy(force=True) for v in fun(x)), START, jac=True)
    )


# Torch in, torch out


@pytest.mark.parametrize("shape", [(), (1,), (4,), (2, 3), (2, 1, 3), (0,)])
def test_tensors_keep_precision_and_shape(dtype, shape):
    centre = torch.arange(math.prod(shape), dtype=dtype).reshape(shape) / 7
    fun = Recorded(lambda x: bowl(x, centre))
    result = minimize(fun, torch.full(shape, 5.0, dtype=dtype))
    assert result.success
    assert torch.allclose(result.x, centre, atol=1e-5)
    for tensor in (result.x, result.jac, *fun.seen):
        assert (tensor.dtype, tensor.shape) == (dtype, shape)
    assert not result.x.requires_grad
    assert not result.jac.requires_grad
    assert type(result.fun) is float


@pytest.mark.parametrize(
    "x0",
    [
        torch.tensor([-1.2, 1.0], requires_grad=True),
        torch.nn.Parameter(torch.tensor([-1.2, 1.0])),
        torch.tensor([-1.2, 0.0, 1.0])[::2],
        torch.tensor([-1.2, 1.0], requires_grad=True) * 1,
    ],
    ids=["leaf", "parameter", "strided", "result"],
)
def test_any_tensor_may_be_the_start(x0):
    result = minimize(rosenbrock, x0)
    assert type(result.x) is torch.Tensor
    assert not result.x.requires_grad
    assert torch.allclose(result.x, torch.ones(2), atol=1e-2)
    assert_same_run(result, minimize(rosenbrock, x0.detach().clone()))


def test_integer_tensors_become_the_default_float():
    result = minimize(bowl, torch.tensor([3, 4]))
    assert (result.x.dtype, result.success) == (torch.get_default_dtype(), True)


def test_the_caller_may_be_under_no_grad():
    free = minimize(rosenbrock, torch.tensor([-1.2, 1.0]))
    with torch.no_grad():
        x0 = torch.tensor([-1.2, 1.0])
        assert_same_run(free, minimize(rosenbrock, x0))
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_tensor_gradients_by_hand_agree_with_autograd():
    def gradient(x):
        leaf = x.clone().requires_grad_(True)
        return torch.autograd.grad(rosenbrock(leaf), leaf)[0]

    x0 = torch.tensor([-1.2, 1.0], dtype=torch.float64)
    by_autograd = minimize(rosenbrock, x0)
    assert_same_run(by_autograd, minimize(rosenbrock, x0, jac=gradient))
    assert_same_run(by_autograd, minimize(lambda x: (rosenbrock(x), gradient(x)), x0, jac=True))


@defect("the gradient tensor is not copied, so all points share it")
def test_a_reused_gradient_tensor_does_no_harm():
    buffer = torch.zeros(2, dtype=torch.float64)

    def fun(x):
        buffer.copy_(torch.from_numpy(rosenbrock_gradient(x.numpy())))
        return rosenbrock(x), buffer

    x0 = torch.from_numpy(START)
    clean = minimize(lambda x: (rosenbrock(x), fun(x)[1].clone()), x0, jac=True)
    assert_same_run(clean, minimize(fun, x0, jac=True))


@defect("with jac= the tensor is the iterate itself")
def test_a_function_that_writes_into_its_tensor_does_no_harm():
    def fun(x):
        value = bowl(x).item()
        x.zero_()
        return value

    clean = minimize(bowl, torch.tensor([3.0, 4.0]), jac=bowl_gradient)
    assert_same_run(clean, minimize(fun, torch.tensor([3.0, 4.0]), jac=bowl_gradient))


def test_a_function_that_autograd_cannot_follow_is_refused():
    with pytest.raises(TypeError, match="pass jac="):
        minimize(lambda x: float(bowl(x)), torch.ones(2) * 3)


@defect("torch functions are always differentiated by autograd, without a word")
def test_differences_asked_for_are_not_ignored():
    counted = Recorded(bowl)
    minimize(counted, torch.tensor([3.0, 4.0], dtype=torch.float64), jac="3-point", options={"maxiter": 0})
    assert len(counted.values) == 5


@pytest.mark.parametrize("x0", [np.array([-1.2, 1.0]), torch.tensor([-1.2, 1.0])], ids=["numpy", "torch"])
@pytest.mark.parametrize("method", SOME_METHODS)
def test_x0_is_never_modified(x0, method):
    before = copy.deepcopy(x0)
    result = minimize(rosenbrock, x0, method=method, options={"maxiter": 5})
    result.x[...] = 7
    assert (x0 == before).all()


def test_a_result_does_not_share_memory_with_the_start():
    x0 = np.ones(2)
    result = minimize(bowl, x0, jac=bowl_gradient)
    assert result.nit == 0
    assert not np.shares_memory(result.x, x0)


# Through SciPy's own minimize


@pytest.mark.parametrize("name", SOME_METHODS)
@pytest.mark.parametrize(
    ("fun", "given"),
    [
        (rosenbrock, {"jac": rosenbrock_gradient}),
        (rosenbrock_with_gradient, {"jac": True}),
        (rosenbrock, {}),
        (rosenbrock, {"jac": rosenbrock_gradient, "tol": 1e-2}),
        (rosenbrock, {"jac": rosenbrock_gradient, "options": {"maxiter": 7, "history_size": 3, "c2": 0.5}}),
        (bowl, {"jac": bowl_gradient, "args": (3.0,)}),
    ],
    ids=["jac", "together", "differences", "tol", "options", "args"],
)
def test_scipy_runs_the_same(name, fun, given):
    ours = minimize(fun, START, method=name, **given)
    theirs = scipy.optimize.minimize(fun, START, method=signedstep.method(name), **given)
    assert ours.nit > 0
    assert_same_run(ours, theirs)


def test_scipy_passes_callbacks_on():
    seen: dict[str, list] = {"x": [], "result": []}

    def named(intermediate_result):
        seen["result"].append(intermediate_result.x)
        if len(seen["result"]) == 3:
            raise StopIteration

    method = signedstep.method("lsr1")
    scipy.optimize.minimize(rosenbrock, START, jac=rosenbrock_gradient, method=method, callback=seen["x"].append)
    result = scipy.optimize.minimize(rosenbrock, START, jac=rosenbrock_gradient, method=method, callback=named)
    assert (result.status, result.nit) == (Status.CALLBACK, 3)
    np.testing.assert_array_equal(seen["result"], seen["x"][:3])


@pytest.mark.parametrize(
    "given",
    [
        {"bounds": [(0, 1), (0, 1)]},
        {"constraints": {"type": "eq", "fun": lambda x: x[0]}},
        {"constraints": scipy.optimize.LinearConstraint(np.eye(2), 0, 1)},
    ],
    ids=["bounds", "constraint", "linear"],
)
def test_bounds_and_constraints_are_refused(given):
    with pytest.raises(ValueError, match="neither bounds nor constraints"):
        scipy.optimize.minimize(bowl, START, jac=bowl_gradient, method=signedstep.method("lsr1"), **given)


def test_scipy_unknown_options_warn():
    with pytest.warns(OptimizeWarning, match="bogus"):
        scipy.optimize.minimize(bowl, START, jac=bowl_gradient, method=signedstep.method("lsr1"), options={"bogus": 1})


def test_basinhopping_accepts_our_methods():
    kwargs = {"method": signedstep.method("lsr1"), "jac": rosenbrock_gradient}
    result = scipy.optimize.basinhopping(rosenbrock, START, niter=2, minimizer_kwargs=kwargs, rng=0)
    assert result.x == pytest.approx([1.0, 1.0], abs=1e-3)


# Names


@pytest.mark.parametrize("name", ["nope", "", "lsr1/", "/flip", "lsr1/nope", "lsr1/flip/flip", "LSR1", " lsr1"])
@pytest.mark.parametrize("use", [lambda name: minimize(bowl, [3.0], method=name), signedstep.method])
def test_unknown_methods_are_refused_with_the_valid_names(name, use):
    with pytest.raises(ValueError, match="unknown method") as refused:
        use(name)
    words = str(refused.value)
    assert repr(name) in words
    assert all(part in words for full in METHODS for part in full.split("/"))


def test_methods_that_are_not_names_are_refused():
    with pytest.raises(TypeError, match="method must be a name"):
        minimize(bowl, [3.0], method=scipy.optimize.minimize)


def test_methods_are_described():
    assert {"auto", "gd", "bfgs", "sr1", "lbfgs", "lsr1", "lsr1/wolfe+-", "lsr1/flip"} <= set(METHODS)
    assert all(text and "\n" not in text for text in signedstep.methods().values())


@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_on_rosenbrock(method):
    result = minimize(rosenbrock, START, jac=rosenbrock_gradient, method=method, options={"maxiter": 200})
    assert result.fun < rosenbrock(START)
    assert math.isfinite(result.fun)
    assert np.isfinite(result.x).all()
    first, _, last = method.partition("/")
    if first != "gd" and not (first in ("sr1", "lsr1") and last == "wolfe"):  # slow, and what the paper shows to fail
        assert result.success


@pytest.mark.parametrize("short", ["auto", "gd", "bfgs", "sr1", "lbfgs", "lsr1"])
def test_short_names_stand_for_full_ones(short, capsys):
    short_run = minimize(rosenbrock, START, jac=rosenbrock_gradient, method=short, options={"disp": 1, "maxiter": 30})
    full = capsys.readouterr().out.partition("Method: ")[2].split()[0]
    assert full in METHODS
    assert "/" in full
    assert_same_run(
        short_run, minimize(rosenbrock, START, jac=rosenbrock_gradient, method=full, options={"maxiter": 30})
    )


# Options that make no sense


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("history_size", 0),
        ("history_size", -3),
        pytest.param("history_size", 2.5, marks=defect("TypeError of torch.empty")),
        pytest.param("history_size", math.inf, marks=defect("TypeError of torch.empty")),
        pytest.param("history_size", "a", marks=defect("TypeError of a comparison")),
        pytest.param("history_size", None, marks=defect("TypeError of a comparison")),
        ("floor", -1),
        ("floor", 1.0),
        ("floor", math.nan),
        pytest.param("floor", "a", marks=defect("TypeError of a comparison")),
        ("delta", -1),
        ("delta", 1.5),
        pytest.param("delta", "a", marks=defect("TypeError of a comparison")),
        ("gamma", "nonsense"),
        ("gamma", "x*norm"),
        ("gamma", "-1*norm"),
        ("gamma", -1),
        ("gamma", 0),
        ("gamma", math.nan),
        ("gamma", math.inf),
        ("gamma", True),
        ("gamma", [1.0]),
        ("c1", 0),
        ("c1", 0.95),
        ("c1", math.nan),
        pytest.param("c1", "a", marks=defect("TypeError of a comparison")),
        ("c2", 1.5),
        ("c2", 1e-5),
        pytest.param("condition", "x", marks=defect("the message says curvature")),
        pytest.param("max_linesearch", 0, marks=defect("the message says max_evals")),
        pytest.param("max_linesearch", 2.5, marks=defect("accepted")),
        pytest.param("max_linesearch", "a", marks=defect("TypeError of a comparison")),
        ("on_failure", "x"),
        ("on_failure", 3),
        pytest.param("on_failure", "", marks=defect("accepted")),
        ("maxiter", -1),
        ("maxiter", "a"),
        ("maxiter", math.nan),
        pytest.param("maxiter", 2.5, marks=defect("accepted, and exceeded")),
        ("maxfun", -1),
        ("maxfun", "a"),
        ("gtol", -1),
        ("gtol", math.nan),
        pytest.param("gtol", "a", marks=defect("TypeError of a comparison")),
        pytest.param("gtol", None, marks=defect("TypeError of a comparison")),
        ("ftol", -1e-9),
        pytest.param("ftol", "a", marks=defect("TypeError of a comparison")),
        ("xtol", -1),
        pytest.param("xtol", "a", marks=defect("TypeError of a comparison")),
    ],
)
def test_bad_options_are_refused_by_name(name, value):
    fun = Recorded(bowl)
    with pytest.raises((ValueError, TypeError), match=rf"\b{name}\b") as refused:
        minimize(fun, [3.0, 4.0], jac=bowl_gradient, method="lsr1", options={name: value})
    assert str(value) in str(refused.value)
    assert not fun.values


@pytest.mark.parametrize(
    "value",
    [1, 2.0, np.float64(2.0), "norm", "0.5*norm", "yy/sy"]
    + [
        pytest.param(number, marks=defect("numbers of NumPy are not numbers", raises=TypeError))
        for number in (np.float32(2.0), np.int64(2))
    ],
)
def test_valid_gammas_are_accepted(value):
    assert minimize(rosenbrock, START, jac=rosenbrock_gradient, method="lsr1", options={"gamma": value}).success


@pytest.mark.parametrize("condition", ["strong", "weak", "paper"])
@pytest.mark.parametrize("method", ["lbfgs", "lsr1/wolfe+-", "sr1"])
def test_every_curvature_condition_solves(condition, method):
    options = {"condition": condition}
    assert minimize(rosenbrock, START, jac=rosenbrock_gradient, method=method, options=options).success


# Starts and functions that make no sense


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_starts_that_are_not_finite_are_refused(bad, make):
    with pytest.raises(ValueError, match="x0"):
        minimize(bowl, make([1.0, bad]))


@pytest.mark.parametrize(
    "x0",
    [
        np.array([1j, 2]),
        np.array([1, 2], np.float16),
        torch.ones(2, dtype=torch.float16),
        torch.ones(2, dtype=torch.bfloat16),
        torch.ones(2, dtype=torch.complex64),
        np.array(["a"]),
        "abc",
        None,
        {"a": 1},
        [[1.0], [1.0, 2.0]],
    ],
    ids=repr,
)
def test_starts_of_other_types_are_refused(x0):
    with pytest.raises(TypeError, match="x0"):
        minimize(bowl, x0)


@pytest.mark.parametrize("wrap", [float, np.float32, np.array, lambda v: np.array([v]), lambda v: [[v]]])
def test_one_number_in_any_wrapping_is_a_value(wrap):
    plain = minimize(lambda x: float(np.float32(bowl(x))), START, jac=bowl_gradient)
    wrapped = minimize(lambda x: wrap(float(np.float32(bowl(x)))), START, jac=bowl_gradient)
    assert type(wrapped.fun) is float
    assert_same_run(plain, wrapped)


def test_integers_are_values():
    result = minimize(lambda x: 3, START, jac=np.zeros_like)
    assert (result.fun, type(result.fun), result.status) == (3.0, float, Status.GRADIENT)


def test_tensors_of_one_entry_are_values():
    result = minimize(lambda x: bowl(x).reshape(1, 1), torch.zeros(2))
    assert torch.allclose(result.x, torch.ones(2))


@pytest.mark.parametrize(
    "x0", [START, pytest.param(torch.ones(2), marks=defect("RuntimeError of autograd", raises=RuntimeError))]
)
def test_values_that_are_not_scalars_are_refused(x0):
    with pytest.raises(ValueError, match="fun must return a scalar"):
        minimize(lambda x: 2 * x, x0)


@pytest.mark.parametrize(
    "value",
    [
        1j,
        pytest.param(None, marks=defect("float() complains, fun is not named")),
        pytest.param("1.0", marks=defect("accepted")),
    ],
)
def test_values_that_are_not_real_are_refused(value):
    with pytest.raises(TypeError, match="fun must return"):
        minimize(lambda x: value, START)


@defect("NumPy complains about an inhomogeneous shape")
def test_a_value_with_its_gradient_needs_jac_true():
    with pytest.raises((TypeError, ValueError), match="fun must return a scalar"):
        minimize(rosenbrock_with_gradient, START)


@defect("cannot unpack non-iterable float")
def test_jac_true_needs_a_value_with_its_gradient():
    with pytest.raises((TypeError, ValueError), match="fun"):
        minimize(lambda x: float(rosenbrock(x)), START, jac=True)


@pytest.mark.parametrize("gradient", [np.zeros(3), np.zeros(1), 0.0, np.zeros((2, 2)), []], ids=repr)
@pytest.mark.parametrize("x0", [START, torch.from_numpy(START)], ids=["numpy", "torch"])
def test_gradients_of_the_wrong_size_are_refused(gradient, x0):
    with pytest.raises(ValueError, match="gradient must have 2 entries"):
        minimize(rosenbrock, x0, jac=lambda x: gradient)


@defect("only the number of entries is checked")
def test_gradients_of_transposed_shape_are_refused():
    with pytest.raises(ValueError, match="gradient"):
        minimize(bowl, np.arange(6.0).reshape(2, 3), jac=lambda x: bowl_gradient(x).T, options={"maxiter": 1})


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
@pytest.mark.parametrize("method", SOME_METHODS)
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
    result = minimize(lambda x: (x**2).sum() + 1, x0, method=method)
    assert (result.success, result.nit, result.fun) == (True, 0, 1.0)


@pytest.mark.parametrize("method", [name for name in METHODS if name not in ("sr1/wolfe", "lsr1/wolfe")])
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
@pytest.mark.parametrize("method", SOME_METHODS)
def test_a_wall_beyond_the_solution_does_no_harm(beyond, method):
    fun = Wall(1.0, BEYOND[beyond])
    result = minimize(fun, [-50.0, 5.0], jac=fun.gradient, method=method)
    assert result.success
    assert result.x == pytest.approx([1.0, 0.0], abs=1e-5)
    assert "LookupError" not in result.message


@pytest.mark.parametrize("beyond", BEYOND)
@pytest.mark.parametrize("method", SOME_METHODS)
def test_a_wall_before_the_solution_is_no_success(beyond, method):
    fun = Wall(3.0, BEYOND[beyond])
    result = minimize(fun, [-50.0, 5.0], jac=fun.gradient, method=method)
    assert not result.success
    assert result.fun < fun([-50.0, 5.0])
    assert result.x[0] == pytest.approx(2.0, abs=1e-3)
    assert result.nit < 200
    assert ("LookupError: no value beyond 2" in result.message) == (beyond == "raises")


@defect("the message speaks of rounding only, while trials were not finite")
@pytest.mark.parametrize("beyond", ["nan", "inf"])
def test_a_wall_that_ends_a_run_is_mentioned(beyond):
    fun = Wall(3.0, BEYOND[beyond])
    assert "finite" in minimize(fun, [-50.0, 5.0], jac=fun.gradient).message


@defect("the line keeps -inf as its lowest value", raises=AssertionError)
@pytest.mark.parametrize("method", SOME_METHODS)
def test_minus_infinity_is_a_wall_too(method):
    fun = Wall(3.0, lambda: -math.inf)
    try:
        result = minimize(fun, [-50.0, 5.0], jac=fun.gradient, method=method)
    except AssertionError as error:
        raise AssertionError("an assertion of the library failed") from error
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
    assert result.fun < fun([-1.0, 0.5])[0]
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
@pytest.mark.parametrize("method", METHODS)
def test_no_success_and_no_crash_on_explosive_functions(fun, method):
    result = minimize(fun, [-1.0, 0.5], jac=True, method=method)
    assert not result.success
    assert math.isfinite(result.fun)
    assert result.fun < fun([-1.0, 0.5])[0]


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
    assert result.status is not Status.MAXITER
    assert result.nit < 500


def scaled(scale: float) -> Callable:
    """A strictly convex quartic times `scale`, with its gradient."""

    def fun(x):
        z = (x - 3).astype(float)
        return float(scale * ((z**2).sum() / 2 + 0.1 * (z**4).sum())), scale * (z + 0.4 * z**3)

    return fun


TOO_SMALL = defect("the longest step is 1e10 gradients, whatever their length: 'unbounded' or 'stalled'")
OVERFLOW = defect("g.g overflows: BAD_START, 'not finite', of a finite start")


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [
        (np.float64, 1e-9),
        (np.float64, 1e12),
        (np.float64, 1e150),
        (np.float32, 1e-9),
        (np.float32, 1e12),
        pytest.param(np.float64, 1e-14, marks=TOO_SMALL),
        pytest.param(np.float64, 1e-100, marks=TOO_SMALL),
        pytest.param(np.float32, 1e-15, marks=TOO_SMALL),
        pytest.param(np.float64, 1e160, marks=OVERFLOW),
        pytest.param(np.float32, 1e20, marks=OVERFLOW),
    ],
)
@pytest.mark.parametrize("method", ["auto", "lsr1", "bfgs"])
def test_the_scale_of_the_function_does_not_matter(dtype, scale, method):
    x0 = np.array([0.1, 1.5, 0.3], dtype)
    result = minimize(scaled(scale), x0, jac=True, method=method, options={"gtol": 1e-3 * scale})
    assert result.success
    np.testing.assert_allclose(result.x, 3.0, atol=1e-2)


@defect("g.g underflows to 0, which counts as a gradient of 0")
@pytest.mark.parametrize(("dtype", "scale"), [(np.float64, 1e-170), (np.float32, 1e-25)])
def test_tiny_gradients_are_not_zero(dtype, scale):
    x0 = np.array([0.1, 1.5, 0.3], dtype)
    result = minimize(scaled(scale), x0, jac=True, options={"gtol": 1e-5 * scale})
    assert np.abs(result.jac).max() <= 1e-5 * scale or not result.success


@defect("the trial step underflows to 0", raises=ZeroDivisionError)
def test_a_search_that_shrinks_to_nothing_ends():
    def fun(x):
        return (1.0, np.ones(2)) if (x == 0).all() else (math.nan, np.ones(2))

    assert not minimize(fun, [0.0, 0.0], jac=True, options={"max_linesearch": 1000}).success


@pytest.mark.parametrize(
    ("x0", "gamma"),
    [
        pytest.param(START, 1e160, marks=defect("gamma**2 overflows", raises=OverflowError)),
        pytest.param(torch.from_numpy(START).float(), 1e-40, marks=defect("1/gamma overflows", raises=RuntimeError)),
    ],
    ids=["huge", "tiny"],
)
def test_extreme_gammas_do_not_crash(x0, gamma):
    result = minimize(bowl, x0, method="lbfgs/flip", options={"gamma": gamma})
    assert result.fun <= bowl(x0)


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
    gtol=st.sampled_from([0.0, 1e-8, 1e-5, 1e-1]),
    maxfun=st.sampled_from([None, 3, 30]),
)
def test_every_result_is_honest(problem, method, gtol, maxfun):
    fun, x0 = problem

    def rounded(x):  # one rounding, so that values belong to the precision of x
        value, g = fun(x.astype(float))
        return x.dtype.type(value), g.astype(x.dtype)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = minimize(
            rounded, x0, jac=True, method=method, options={"gtol": gtol, "maxfun": maxfun, "maxiter": 300}
        )
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
    assert result.success == (result.status is Status.GRADIENT)
    assert result.success == bool(np.abs(result.jac).max() <= gtol)
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


@given(problem=smooth_problems(), method=st.sampled_from(SOME_METHODS), bound=st.floats(-5, 5))
def test_walls_anywhere_do_not_crash(problem, method, bound):
    fun, x0 = problem

    def walled(x):
        return fun(x) if x[0] >= min(bound, x0[0]) else (math.nan, x)

    result = minimize(walled, x0, jac=True, method=method, options={"maxiter": 100})
    assert result.fun <= fun(x0)[0] + 1e-6 * abs(fun(x0)[0])
    assert result.x[0] >= min(bound, x0[0])
    assert result.success == bool(np.abs(result.jac).max() <= 1e-5)


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
