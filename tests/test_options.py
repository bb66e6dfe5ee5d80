"""Limits and options of `minimize`: kept, counted, warned of, and refused by name where they make no sense."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import OptimizeWarning

import signedstep
from cases import (
    NEWTONS,
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
from signedstep import Status, minimize


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


def test_a_wrong_tol_is_named_as_it_was_given():
    with pytest.raises(ValueError, match="tol must be a number that is not negative, got -1"):
        minimize(bowl, START, tol=-1)


def test_options_are_not_modified():
    options = {"maxiter": 3}
    minimize(rosenbrock, START, jac=rosenbrock_gradient, tol=1e-3, options=options)
    assert options == {"maxiter": 3}


@pytest.mark.parametrize("options", [[1], "gtol", 3])
def test_options_that_are_no_dict(options):
    with pytest.raises(TypeError, match="options must be a dict"):
        minimize(bowl, START, options=options)


def test_unknown_options_warn_and_do_no_harm():
    with pytest.warns(OptimizeWarning, match="bogus"):
        result = minimize(bowl, [3.0, 4.0], jac=bowl_gradient, options={"bogus": 1})
    assert_same_run(result, minimize(bowl, [3.0, 4.0], jac=bowl_gradient))


def test_a_name_of_an_option_that_is_no_word_is_unknown():
    with pytest.warns(OptimizeWarning, match="Unknown solver options: 1; known are"):
        minimize(bowl, np.ones(3), jac=bowl_gradient, options={1: 2})


def test_options_without_effect_are_warned_of():
    fun = lambda x: (x**2).sum()  # noqa: E731
    with pytest.warns(OptimizeWarning, match="'mix/wolfe' does not use gamma, floor; the options it uses are history"):
        signedstep.minimize(fun, torch.ones(2), options={"gamma": 7, "floor": 0.5, "c1": 0.1})
    with pytest.warns(OptimizeWarning, match="'newton/trust' does not use history_size"):
        signedstep.minimize(fun, torch.ones(2), method="newton", options={"history_size": 5})
    options = {"condition": "armijo", "c2": 0.5, "search": "zoom"}
    with pytest.warns(OptimizeWarning, match="'bfgs/wolfe' with condition 'armijo' does not use c2, search"):
        signedstep.minimize(fun, torch.ones(2), method="bfgs", options=options)


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


@pytest.mark.parametrize(
    "value",
    [1, 2.0, np.float64(2.0), "norm", "0.5*norm", "yy/sy"]
    + [pytest.param(number) for number in (np.float32(2.0), np.int64(2))],
)
def test_valid_gammas_are_accepted(value):
    assert minimize(rosenbrock, START, jac=rosenbrock_gradient, method="lsr1", options={"gamma": value}).success


def test_a_fixed_gamma_scales_the_first_trials_of_gradient_descent():
    fun = lambda x: 0.5 * (x * x * torch.tensor([1.0, 3.0])).sum()  # noqa: E731
    runs = [
        signedstep.minimize(fun, torch.tensor([1.0, 1.0]), method="gd", options={"gamma": gamma})
        for gamma in (3.0, 30.0)
    ]
    assert all(run.success for run in runs)
    assert runs[0].nit < runs[1].nit


@pytest.mark.parametrize("condition", ["strong", "weak", "paper"])
@pytest.mark.parametrize("method", ["lbfgs", "lsr1/wolfe+-", "sr1"])
def test_every_curvature_condition_solves(condition, method):
    options = {"condition": condition}
    assert minimize(rosenbrock, START, jac=rosenbrock_gradient, method=method, options=options).success


@pytest.mark.parametrize("method", ["bfgs", "sr1"])
def test_dense_models_without_room_for_their_matrix_say_so(method):
    with pytest.raises(MemoryError, match="3000000 x 3000000 numbers: use a limited-memory model"):
        minimize(lambda x: (x * x).sum(), torch.ones(3_000_000), method=method)
