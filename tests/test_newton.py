"""Newton's method: the exact Hessian, whoever provides it, under every globalization."""

import math
import warnings

import numpy as np
import pytest
import scipy.sparse.linalg
import torch
from scipy.optimize import OptimizeWarning

import signedstep
from cases import START, rosenbrock, rosenbrock_gradient, rosenbrock_with_gradient
from signedstep.catalogue import GLOBALIZATIONS
from signedstep.status import Status

SADDLE_START = torch.tensor([0.1, 1e-3], dtype=torch.float64)
ALL = [f"newton/{how}" for how in GLOBALIZATIONS]


def saddle(x):
    return x[0] ** 4 / 4 - x[0] ** 2 / 2 + x[1] ** 2 / 2


def rosenbrock_hessian(x):
    return np.array([[1200 * x[0] ** 2 - 400 * x[1] + 2, -400 * x[0]], [-400 * x[0], 200.0]])


@pytest.mark.parametrize("method", [name for name in ALL if name != "newton/wolfe"])
def test_newton_leaves_the_saddle(method):
    result = signedstep.minimize(saddle, SADDLE_START, method=method)
    assert result.success
    assert result.x.abs().tolist() == pytest.approx([1.0, 0.0], abs=1e-4)


def test_newton_with_positive_steps_says_that_it_cannot():
    result = signedstep.minimize(saddle, SADDLE_START, method="newton/wolfe")
    assert result.status is Status.NOT_DESCENT
    assert not result.success
    assert result.nit == 1


@pytest.mark.parametrize(
    "given",
    [
        {"jac": rosenbrock_gradient, "hess": rosenbrock_hessian},
        {"jac": rosenbrock_gradient},
        {"fun": rosenbrock_with_gradient, "jac": True},
        {"x0": torch.tensor(START)},
        {"x0": torch.tensor(START), "hess": rosenbrock_hessian},
    ],
    ids=["hess", "differences", "differences of fun", "autograd", "tensor hess"],
)
def test_every_source_of_the_hessian_gives_the_same_run(given):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = signedstep.minimize(**{"fun": rosenbrock, "x0": START, "method": "newton", **given})
        expected = signedstep.minimize(
            rosenbrock, START, method="newton", jac=rosenbrock_gradient, hess=rosenbrock_hessian
        )
    assert result.success
    assert np.asarray(result.x) == pytest.approx([1.0, 1.0], abs=1e-5)
    assert (result.nit, result.nhev) == (expected.nit, expected.nhev)
    assert result.history.f[:8] == pytest.approx(expected.history.f[:8], rel=1e-4)


def test_hessians_are_counted_and_not_wasted():
    """One an accepted step, none at the end, none after a refusal; differences cost gradients, which are counted."""
    calls = []
    counted = lambda x: calls.append(0) or rosenbrock_hessian(x)  # noqa: E731
    result = signedstep.minimize(rosenbrock, START, method="newton", jac=rosenbrock_gradient, hess=counted)
    assert result.nhev == len(calls) == result.nit
    x0 = torch.tensor([3.0], dtype=torch.float64)
    overshot = signedstep.minimize(lambda x: torch.sqrt(1 + x**2).sum(), x0, method="newton")
    assert overshot.nfev > overshot.nit + 1, "some trial was refused"
    assert overshot.nhev == overshot.nit
    result = signedstep.minimize(rosenbrock, START, method="newton", jac=rosenbrock_gradient)
    assert result.njev == result.nfev + 2 * result.nhev


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("broken", ["nan", "singular", "overflow"])
def test_hessians_of_no_use_are_no_crash(method, broken):
    """Where the Hessian says nothing, gradient steps remain."""

    def hess(x):
        if broken == "overflow":
            raise OverflowError
        return torch.full((3, 3), math.nan if broken == "nan" else 0.0, dtype=torch.float64)

    fun = lambda x: ((x - 1) ** 2).sum()  # noqa: E731
    result = signedstep.minimize(fun, torch.zeros(3, dtype=torch.float64), method=method, hess=hess)
    assert result.success
    assert result.x.tolist() == pytest.approx([1.0] * 3, abs=1e-4)


def test_a_shape_of_any_kind():
    x0 = torch.tensor([[2.0, -1.0], [0.5, 3.0]], dtype=torch.float64)
    result = signedstep.minimize(lambda x: (torch.cosh(x - 1)).sum(), x0, method="newton/wolfe+-")
    assert result.success
    assert result.x.shape == (2, 2)


def test_what_newton_needs_is_said():
    with pytest.raises(ValueError, match="needs hess=, or jac="):
        signedstep.minimize(rosenbrock, START, method="newton")
    with pytest.raises(ValueError, match="hess must be callable"):
        signedstep.minimize(rosenbrock, START, method="newton", jac=rosenbrock_gradient, hess="exact")
    with pytest.raises(ValueError, match=r"shape \(2, 2\), got \(3,\)"):
        signedstep.minimize(rosenbrock, START, method="newton", jac=rosenbrock_gradient, hess=lambda x: np.ones(3))
    with pytest.raises(ValueError, match="needs Hessians"):
        signedstep.SecondOrder([torch.zeros(2, requires_grad=True)], method="newton/flip")


def test_other_methods_still_say_that_they_do_not_use_it():
    with pytest.warns(OptimizeWarning, match="hess is not used"):
        signedstep.minimize(rosenbrock, START, method="bfgs", jac=rosenbrock_gradient, hess=rosenbrock_hessian)


def test_newton_converges_quadratically():
    result = signedstep.minimize(rosenbrock, START, method="newton", jac=rosenbrock_gradient, hess=rosenbrock_hessian)
    last = result.history.grad_norm[-3:]
    assert last[2] < 10 * last[1] ** 2 + 1e-12


@pytest.mark.parametrize("shape", [(1, 4), (4,), (2, 1)])
def test_a_hessian_of_the_wrong_shape_is_refused(shape):
    for x0, given in ((np.ones(2), np.ones(shape)), (torch.ones(2).double(), torch.ones(shape))):
        with pytest.raises(ValueError, match=r"must have the shape \(2, 2\)"):
            signedstep.minimize(
                lambda x: (x**2).sum(),
                x0,
                jac=lambda x: 2 * x,
                hess=lambda x, given=given: given,
                method="newton",
            )


def chain(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def chain_residuals(x):
    return torch.cat((14 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]))


def chain_residuals_of_arrays(x):
    return np.concatenate((14 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]))


@pytest.mark.parametrize("maxfun", [1, 2, 7, 20, 60, 200, None])
@pytest.mark.parametrize(
    ("method", "residuals", "x0"),
    [
        ("newton", None, -torch.ones(5, dtype=torch.float64)),
        ("newton-cg", None, -torch.ones(5, dtype=torch.float64)),
        ("gauss-newton", chain_residuals, -torch.ones(5, dtype=torch.float64)),
        ("newton", chain_residuals, -torch.ones(5, dtype=torch.float64)),
        ("newton", chain_residuals_of_arrays, -np.ones(5)),
        ("gauss-newton", chain_residuals_of_arrays, -np.ones(5)),
    ],
)
def test_every_call_of_the_function_counts_and_none_is_beyond_the_limit(method, residuals, x0, maxfun):
    calls = 0

    def counted(x):
        nonlocal calls
        calls += 1
        return (residuals or chain)(x)

    fun = signedstep.LeastSquares(counted) if residuals else counted
    options = {} if maxfun is None else {"maxfun": maxfun}
    result = signedstep.minimize(fun, x0, method=method, options=options)
    assert result.nfev == calls
    first = 6 if isinstance(x0, np.ndarray) else 1  # the start is evaluated in any case, here by differences
    assert maxfun is None or calls <= max(maxfun, first)
    assert result.success or result.status is Status.MAXFUN


def test_closures_called_for_products_count_towards_max_eval():
    x = torch.nn.Parameter(-torch.ones(5, dtype=torch.float64))
    calls = []
    optimizer = signedstep.SecondOrder([x], "newton-cg", max_iter=100, max_eval=10)
    optimizer.step(lambda: calls.append(0) or chain(x))
    assert optimizer.n_evals == len(calls) <= 1 + 10 + 2  # checked between iterations, each of them two calls


@pytest.mark.parametrize("make", [scipy.sparse.csr_array, scipy.sparse.linalg.aslinearoperator])
def test_newton_takes_a_hessian_of_any_kind(make):
    plain, other = (
        signedstep.minimize(rosenbrock, START, method="newton", jac=rosenbrock_gradient, hess=hess)
        for hess in (rosenbrock_hessian, lambda x: make(rosenbrock_hessian(x)))
    )
    assert other.success
    assert other.x == pytest.approx(plain.x)
    with pytest.raises(TypeError, match="the Hessian must be real"):
        signedstep.minimize(
            rosenbrock, START, method="newton", jac=rosenbrock_gradient, hess=lambda x: make(1j * rosenbrock_hessian(x))
        )


def test_a_gradient_that_raises_beyond_the_domain_is_no_crash():
    """Differences of the gradient reach out of the domain; the identity takes over there."""

    def fun(x):
        return -x[0] - 1e-9 * math.log(1 - x[0]) + (x[1] - 1) ** 2

    def jac(x):
        return np.array([-1 + 1e-9 / (1 - x[0]) + 0 * math.log(1 - x[0]), 2 * (x[1] - 1)])

    result = signedstep.minimize(fun, [0.0, 0.0], jac=jac, method="newton")
    assert result.fun < 0
