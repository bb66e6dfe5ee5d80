"""`minimize` from outside: SciPy's habits, names and options."""

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
from scipy.optimize import OptimizeResult, OptimizeWarning

import signedstep
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
    rosenbrock_with_gradient,
    with_hessian,
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


# SciPy's habits: limits and options


@pytest.mark.parametrize("method", [*SOME_METHODS, *NEWTONS])
@pytest.mark.parametrize("maxiter", [0, 1, 3])
def test_maxiter(method, maxiter):
    result = minimize(rosenbrock, START, jac=rosenbrock_gradient, method=method, options={"maxiter": maxiter})
    assert (result.status, result.success, result.nit) == (Status.MAXITER, False, maxiter)
    assert (maxiter > 0) == bool((result.x != START).any())


@pytest.mark.parametrize("method", [*SOME_METHODS, *NEWTONS])
def test_maxfun_is_never_exceeded(method):
    hess = with_hessian(method, rosenbrock_gradient)
    for budget in range(1, 25 if not hess else 10):
        counted, options = Recorded(rosenbrock), {"maxfun": budget}
        result = minimize(counted, START, jac=rosenbrock_gradient, method=method, options=options, **hess)
        assert result.nfev == result.njev == len(counted.values) <= budget
        assert (result.status, result.success) == (Status.MAXFUN, False)
        assert result.fun <= counted.values[0]


def test_maxfun_counts_values_that_differences_of_the_gradient_cost():
    """Where fun returns both, each gradient costs a value: a Hessian is only begun if they are left."""
    for budget in range(1, 40):
        counted = Recorded(rosenbrock_with_gradient)
        result = minimize(counted, START, jac=True, method="newton", options={"maxfun": budget})
        assert result.nfev == len(counted.values) <= budget
        assert result.status is Status.MAXFUN


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
    options = {"maxfun": 2}
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
    given: dict[str, Any] = {name: lambda x: np.eye(2)}
    with pytest.warns(OptimizeWarning, match=f"^{name} "):
        minimize(bowl, [3.0, 4.0], jac=bowl_gradient, **given)


@pytest.mark.parametrize("given", [{"options": {"bogus": 1}}, {"hess": bowl_gradient}], ids=["option", "hess"])
def test_warnings_point_at_the_caller(given):
    with pytest.warns(OptimizeWarning) as caught:
        minimize(bowl, [3.0, 4.0], jac=bowl_gradient, **given)
    assert caught[0].filename == __file__


# Names


def test_names_do_not_depend_on_case_and_none_means_auto():
    options = {"maxiter": 5}
    assert_same_run(*(minimize(rosenbrock, START, method=name, options=options) for name in ("LSR1/Flip", "lsr1/flip")))
    assert_same_run(*(minimize(rosenbrock, START, method=name, options=options) for name in (None, "auto")))


@pytest.mark.parametrize("name", ["nope", "", "lsr1/", "/flip", "lsr1/nope", "lsr1/flip/flip", "l-sr1", " lsr1"])
@pytest.mark.parametrize("use", [lambda name: minimize(bowl, [3.0], method=name), signedstep.method])
def test_unknown_methods_are_refused_with_the_valid_names(name, use):
    with pytest.raises(ValueError, match="unknown method") as refused:
        use(name)
    words = str(refused.value)
    assert repr(name) in words
    assert all(part in words for full in METHODS for part in full.split("/"))


def test_methods_that_are_not_names_are_refused():
    other: Any = scipy.optimize.minimize
    with pytest.raises(TypeError, match="method must be a name"):
        minimize(bowl, [3.0], method=other)


def test_methods_are_described():
    assert {"auto", "gd", "bfgs", "sr1", "lbfgs", "lsr1", "lsr1/wolfe+-", "lsr1/flip"} <= set(METHODS)
    assert all(text and "\n" not in text for text in signedstep.methods().values())


@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_on_rosenbrock(method):
    result = minimize(rosenbrock, START, jac=rosenbrock_gradient, method=method, options={"maxiter": 200})
    assert result.fun < rosenbrock(START)
    assert math.isfinite(result.fun)
    assert np.isfinite(result.x).all()
    if not method.startswith("gd") and method not in SHOWN_TO_FAIL:  # slow, and what the paper shows to fail
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
        pytest.param("history_size", 2.5),
        pytest.param("history_size", math.inf),
        pytest.param("history_size", "a"),
        ("floor", -1),
        ("floor", 1.0),
        ("floor", math.nan),
        pytest.param("floor", "a"),
        ("delta", -1),
        ("delta", 1.5),
        pytest.param("delta", "a"),
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
        pytest.param("c1", "a"),
        ("c2", 1.5),
        ("c2", 1e-5),
        pytest.param("condition", "x"),
        pytest.param("search", "x"),
        pytest.param("max_linesearch", 0),
        pytest.param("max_linesearch", 2.5),
        pytest.param("max_linesearch", "a"),
        ("on_failure", "x"),
        ("on_failure", 3),
        pytest.param("on_failure", ""),
        ("maxiter", -1),
        ("maxiter", "a"),
        ("maxiter", math.nan),
        pytest.param("maxiter", 2.5),
        ("maxfun", -1),
        ("maxfun", "a"),
        ("gtol", -1),
        ("gtol", math.nan),
        pytest.param("gtol", "a"),
        pytest.param("gtol", None),
        ("ftol", -1e-9),
        pytest.param("ftol", "a"),
        ("xtol", -1),
        pytest.param("xtol", "a"),
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
    + [pytest.param(number) for number in (np.float32(2.0), np.int64(2))],
)
def test_valid_gammas_are_accepted(value):
    assert minimize(rosenbrock, START, jac=rosenbrock_gradient, method="lsr1", options={"gamma": value}).success


@pytest.mark.parametrize("condition", ["strong", "weak", "paper"])
@pytest.mark.parametrize("method", ["lbfgs", "lsr1/wolfe+-", "sr1"])
def test_every_curvature_condition_solves(condition, method):
    options = {"condition": condition}
    assert minimize(rosenbrock, START, jac=rosenbrock_gradient, method=method, options=options).success


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


@pytest.mark.parametrize("options", [[1], "gtol", 3])
def test_options_that_are_no_dict(options):
    with pytest.raises(TypeError, match="options must be a dict"):
        minimize(bowl, START, options=options)


@pytest.mark.parametrize("value", ["1", [None], {"loss": 1}, object()])
def test_values_that_are_no_numbers(value):
    with pytest.raises(TypeError, match="must return a scalar"):
        minimize(lambda x: value, START, jac=bowl_gradient)


@pytest.mark.parametrize("start", [np.ones(2), torch.ones(2)], ids=type)
def test_complex_gradients_are_refused(start):
    with pytest.raises(TypeError, match="the gradient must be real"):
        minimize(lambda x: (x**2).sum(), start, jac=lambda x: 2j * x)


def test_differences_for_a_start_in_float32_are_made_in_float64():
    result = minimize(lambda x: (x**2).sum(), np.array([1, 2, 3, 4], np.float32))
    assert result.success
    assert result.x.dtype == np.float32
    assert result.nfev < 100


def test_auto_takes_a_globalization():
    assert minimize(bowl, START, method="auto/flip").success


def test_a_function_that_writes_into_what_autograd_differentiates_is_told():
    def careless(x):
        with torch.no_grad():
            x.clamp_(min=0.5)
        return (x**2).sum()

    with pytest.raises(ValueError, match="must not write into x"):
        signedstep.minimize(careless, torch.tensor([1.0, 0.1]))


def test_a_fixed_gamma_scales_the_first_trials_of_gradient_descent():
    fun = lambda x: 0.5 * (x * x * torch.tensor([1.0, 3.0])).sum()  # noqa: E731
    runs = [
        signedstep.minimize(fun, torch.tensor([1.0, 1.0]), method="gd", options={"gamma": gamma})
        for gamma in (3.0, 30.0)
    ]
    assert all(run.success for run in runs)
    assert runs[0].nit < runs[1].nit


def test_options_without_effect_are_warned_of():
    fun = lambda x: (x**2).sum()  # noqa: E731
    with pytest.warns(OptimizeWarning, match="'mix/wolfe' does not use gamma, floor; the options it uses are history"):
        signedstep.minimize(fun, torch.ones(2), options={"gamma": 7, "floor": 0.5, "c1": 0.1})
    with pytest.warns(OptimizeWarning, match="'newton/trust' does not use history_size"):
        signedstep.minimize(fun, torch.ones(2), method="newton", options={"history_size": 5})
    options = {"condition": "armijo", "c2": 0.5, "search": "zoom"}
    with pytest.warns(OptimizeWarning, match="'bfgs/wolfe' with condition 'armijo' does not use c2, search"):
        signedstep.minimize(fun, torch.ones(2), method="bfgs", options=options)


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


def test_a_method_for_scipy_can_be_pickled_and_tells_its_name():
    method = pickle.loads(pickle.dumps(signedstep.method("lsr1/flip")))
    assert repr(method) == "signedstep.method('lsr1/flip')"
    assert scipy.optimize.minimize(rosenbrock, START, jac=rosenbrock_gradient, method=method).success


def test_a_wrong_tol_is_named_as_it_was_given():
    with pytest.raises(ValueError, match="tol must be a number that is not negative, got -1"):
        minimize(bowl, START, tol=-1)


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


def test_inference_mode_is_named_where_it_is_in_the_way():
    with torch.inference_mode(), pytest.raises(RuntimeError, match="inference_mode"):
        signedstep.minimize(rosenbrock, torch.ones(2), method="lbfgs")


def test_starts_that_are_no_dense_numbers():
    with pytest.raises(TypeError, match="dense tensor"):
        signedstep.minimize(rosenbrock, torch.ones(2).to_sparse())
    with pytest.raises(TypeError, match="float32, float64 or integers"):
        signedstep.minimize(rosenbrock, np.ones(2, dtype=np.longdouble))


@pytest.mark.parametrize("tensors", [False, True])
def test_complex_second_derivatives_are_refused(tensors):
    x0 = torch.ones(2, dtype=torch.float64) if tensors else np.ones(2)
    jac = None if tensors else lambda x: 2 * x
    for name, value in (("hess", lambda x: 2j * np.eye(2)), ("hessp", lambda x, p: np.array([2j, 0]))):
        with pytest.raises(TypeError, match="real"):
            signedstep.minimize(lambda x: (x * x).sum(), x0, jac=jac, method="newton-cg", **{name: value})


@pytest.mark.parametrize("beyond", [math.nan, math.inf, ValueError])
@pytest.mark.parametrize(
    ("method", "tensors"), [("lbfgs", False), ("newton", False), ("newton-cg", False), ("lbfgs", True)]
)
def test_gradients_are_counted_and_not_asked_for_where_there_is_no_value(method, tensors, beyond):
    asked = []

    def fun(x):
        if x[0] <= 2:
            return ((x - 3) ** 2).sum()
        if isinstance(beyond, float):
            return beyond
        raise beyond

    def jac(x):
        asked.append(float(x[0]))
        return 2 * (x - 3)

    x0 = torch.zeros(1, dtype=torch.float64) if tensors else np.zeros(1)
    result = minimize(fun, x0, jac=jac, method=method, options={"maxiter": 20})
    assert result.nfev > result.nit + 1, "some trial was beyond"
    assert result.njev == len(asked)
    assert max(asked) <= 2 + 1e-6


def test_a_budget_is_kept_beside_products_that_are_not_used():
    """Newton's method makes a Hessian of its own, which costs a value."""
    x0 = torch.tensor(START)
    for budget in range(1, 12):
        calls = []

        def counted(x, calls=calls):
            calls.append(1)
            return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

        with pytest.warns(OptimizeWarning, match="hessp is not used"):
            minimize(counted, x0, hessp=lambda x, p: p, method="newton", options={"maxfun": budget})
        assert len(calls) <= budget


def test_a_budget_is_kept_where_a_run_stalls():
    """To know whether there was anything to forget, Newton's model was asked for one more Hessian."""
    rng = np.random.default_rng(599387)
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    A = Q @ np.diag(10.0 ** rng.uniform(-6, 6, 3) * rng.choice([1, 1, 1, -1], 3)) @ Q.T
    b = rng.normal(size=3)
    fun = lambda x: (float(0.5 * x @ A @ x - b @ x + 1e-3 * np.sum(x**4)), A @ x - b + 4e-3 * x**3)  # noqa: E731
    x0 = np.random.default_rng(599387).normal(size=3) * 1e-100
    for maxfun in (300, 301):
        options = {"maxfun": maxfun, "gtol": 0, "maxiter": 1000}
        assert minimize(fun, x0, jac=True, method="newton/subspace", options=options).nfev <= maxfun


@pytest.mark.parametrize(
    ("method", "seed", "maxfun"),
    [("newton-cg", 4, 121), ("newton-cg/subspace", 2, 101), ("newton-cg/subspace", 5, 124)],
)
def test_a_budget_is_kept_where_a_run_of_products_stalls(method, seed, maxfun):
    """To know whether there was anything to forget, a whole Krylov space was built."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    A, b = torch.tensor(Q @ np.diag(10.0 ** rng.uniform(-6, 6, n)) @ Q.T), torch.tensor(rng.normal(size=n))
    x0 = torch.tensor(1e-3 * rng.normal(size=n))
    for budget in range(maxfun - 3, maxfun + 4):
        options = {"maxfun": budget, "gtol": 0, "maxiter": 300}
        assert minimize(lambda x: 0.5 * x @ (A @ x) - b @ x, x0, method=method, options=options).nfev <= budget


@pytest.mark.parametrize(
    ("options", "error", "name"),
    [
        ({"maxiter": 10**400}, TypeError, "maxiter"),
        ({"gamma": 10**400}, ValueError, "gamma"),
        ({"history_size": 10**12}, MemoryError, "history_size"),
        ({"history_size": 1e300}, MemoryError, "history_size"),
    ],
)
def test_numbers_that_are_too_large_are_named(options, error, name):
    with pytest.raises(error, match=name):
        minimize(bowl, np.ones(3), jac=bowl_gradient, method="lbfgs", options=options)


def test_a_name_of_an_option_that_is_no_word_is_unknown():
    with pytest.warns(OptimizeWarning, match="Unknown solver options: 1; known are"):
        minimize(bowl, np.ones(3), jac=bowl_gradient, options={1: 2})


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


@pytest.mark.parametrize("tensors", [True, False])
def test_gradients_that_raise_are_counted(tensors):
    asked = []

    def jac(x):
        asked.append(1)
        if x[0] > 2:
            raise ValueError
        return 2 * (x - 3)

    x0 = torch.zeros(2, dtype=torch.float64) if tensors else np.zeros(2)
    result = minimize(lambda x: ((x - 3) ** 2).sum(), x0, jac=jac, method="bfgs", options={"maxiter": 5})
    assert result.njev == len(asked) > result.nit + 1


def test_a_gradient_or_residuals_that_were_forgotten_are_named():
    with pytest.raises(TypeError, match="the gradient must be an array or a tensor, got None"):
        minimize(lambda x: (x[0] - 1) ** 2, [3.0], jac=lambda x: None)
    with pytest.raises(TypeError, match="residuals must be an array or a tensor, got None"):
        minimize(signedstep.LeastSquares(lambda x: None), [3.0])


def test_starts_without_numbers_are_named():
    for x0 in (torch.zeros(3, device="meta"), torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged)):
        with pytest.raises(TypeError, match="x0 must be a"):
            minimize(lambda x: x.sum(), x0)


@pytest.mark.parametrize("method", ["bfgs", "sr1"])
def test_dense_models_without_room_for_their_matrix_say_so(method):
    with pytest.raises(MemoryError, match="3000000 x 3000000 numbers: use a limited-memory model"):
        minimize(lambda x: (x * x).sum(), torch.ones(3_000_000), method=method)
