"""NumPy in, NumPy out; torch in, torch out; through SciPy's `minimize`; and what is refused at the door."""

import copy
import math
import pickle

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg
import torch
from scipy.optimize import OptimizeWarning

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
from signedstep import Status, minimize

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


@pytest.mark.parametrize("dtype", [pytest.param(np.float32), float])
@pytest.mark.parametrize("jac", [None, "3-point"])
def test_differences_are_made_in_float64(dtype, jac):
    fun = Recorded(bowl)
    result = minimize(fun, np.array([3.0, 4.0], dtype), jac=jac, options={"maxiter": 2})
    assert {x.dtype for x in fun.seen} == {np.dtype(np.float64)}
    assert result.x.dtype == dtype


def test_differences_work_for_matrices():
    x0 = np.zeros((2, 3))
    centre = np.arange(6.0).reshape(2, 3)
    fun = Recorded(lambda x: bowl(x, centre))
    np.testing.assert_allclose(minimize(fun, x0).x, centre, atol=1e-5)
    assert {x.shape for x in fun.seen} == {(2, 3)}


def test_byte_order_does_not_matter():
    x0 = np.array([3.0, 4.0], dtype=">f8")
    assert_same_run(minimize(bowl, x0.astype("<f8"), jac=bowl_gradient), minimize(bowl, x0, jac=bowl_gradient))


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


def by_autograd(x: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Rosenbrock's function of an array, with autograd inside."""
    leaf = torch.tensor(x, requires_grad=True)
    value = rosenbrock(leaf)
    (g,) = torch.autograd.grad(value, leaf)
    return value.detach(), g


def by_autograd_in_numpy(x: np.ndarray) -> tuple[float, np.ndarray]:
    value, g = by_autograd(x)
    return value.item(), g.numpy()


@pytest.mark.parametrize("caller_grad", [True, False])
def test_autograd_may_be_used_inside_a_function_of_arrays(caller_grad):
    with torch.set_grad_enabled(caller_grad):
        assert minimize(by_autograd_in_numpy, START, jac=True).success


def test_a_function_of_arrays_may_return_tensors():
    in_numpy = minimize(by_autograd_in_numpy, START, jac=True)
    assert_same_run(in_numpy, minimize(by_autograd, START, jac=True))


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


def test_a_reused_gradient_tensor_does_no_harm():
    buffer = torch.zeros(2, dtype=torch.float64)

    def fun(x):
        buffer.copy_(torch.from_numpy(rosenbrock_gradient(x.numpy())))
        return rosenbrock(x), buffer

    x0 = torch.from_numpy(START)
    clean = minimize(lambda x: (rosenbrock(x), fun(x)[1].clone()), x0, jac=True)
    assert_same_run(clean, minimize(fun, x0, jac=True))


def test_a_function_that_writes_into_its_tensor_does_no_harm():
    def fun(x):
        value = bowl(x).item()
        x.zero_()
        return value

    clean = minimize(bowl, torch.tensor([3.0, 4.0]), jac=bowl_gradient)
    assert_same_run(clean, minimize(fun, torch.tensor([3.0, 4.0]), jac=bowl_gradient))


def test_a_function_that_autograd_cannot_follow_is_refused():
    with pytest.raises(TypeError, match="pass jac="):
        minimize(lambda x: bowl(x).item(), torch.ones(2) * 3)


def test_differences_are_for_arrays_only():
    with pytest.raises(ValueError, match=r"jac must be .* got '3-point'"):
        minimize(bowl, torch.tensor([3.0, 4.0]), jac="3-point")


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
        (rosenbrock, {"jac": rosenbrock_gradient, "options": {"maxiter": 7, "max_linesearch": 9, "c2": 0.5}}),
        (bowl, {"jac": bowl_gradient, "args": (3.0,)}),
    ],
    ids=["jac", "together", "differences", "tol", "options", "args"],
)
def test_scipy_runs_the_same(name, fun, given):
    ours = minimize(fun, START, method=name, **given)
    theirs = scipy.optimize.minimize(fun, START, method=signedstep.method(name), **given)
    assert ours.nit > 0
    assert_same_run(ours, theirs)


def test_scipy_has_the_same_default():
    assert signedstep.method() == signedstep.method("auto")


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
    with pytest.raises(ValueError, match="without bounds and constraints"):
        scipy.optimize.minimize(bowl, START, jac=bowl_gradient, method=signedstep.method("lsr1"), **given)


def test_scipy_unknown_options_warn():
    with pytest.warns(OptimizeWarning, match="bogus"):
        scipy.optimize.minimize(bowl, START, jac=bowl_gradient, method=signedstep.method("lsr1"), options={"bogus": 1})


def test_basinhopping_accepts_our_methods():
    kwargs = {"method": signedstep.method("lsr1"), "jac": rosenbrock_gradient}
    result = scipy.optimize.basinhopping(rosenbrock, START, niter=2, minimizer_kwargs=kwargs, rng=0)
    assert result.x == pytest.approx([1.0, 1.0], abs=1e-3)


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


@pytest.mark.parametrize("x0", [START, pytest.param(torch.ones(2))])
def test_values_that_are_not_scalars_are_refused(x0):
    with pytest.raises(ValueError, match="fun must return a scalar"):
        minimize(lambda x: 2 * x, x0)


@pytest.mark.parametrize(
    "value",
    [
        1j,
        pytest.param(None),
        pytest.param("1.0"),
    ],
)
def test_values_that_are_not_real_are_refused(value):
    with pytest.raises(TypeError, match="fun must return"):
        minimize(lambda x: value, START)


def test_a_value_with_its_gradient_needs_jac_true():
    with pytest.raises((TypeError, ValueError), match="fun must return a scalar"):
        minimize(rosenbrock_with_gradient, START)


def test_jac_true_needs_a_value_with_its_gradient():
    with pytest.raises((TypeError, ValueError), match="fun"):
        minimize(lambda x: float(rosenbrock(x)), START, jac=True)


@pytest.mark.parametrize("gradient", [np.zeros(3), np.zeros(1), 0.0, np.zeros((2, 2)), []], ids=repr)
@pytest.mark.parametrize("x0", [START, torch.from_numpy(START)], ids=["numpy", "torch"])
def test_gradients_of_the_wrong_size_are_refused(gradient, x0):
    with pytest.raises(ValueError, match="gradient must have the shape"):
        minimize(rosenbrock, x0, jac=lambda x: gradient)


def test_gradients_of_transposed_shape_are_refused():
    with pytest.raises(ValueError, match="gradient"):
        minimize(bowl, np.arange(6.0).reshape(2, 3), jac=lambda x: bowl_gradient(x).T, options={"maxiter": 1})


@pytest.mark.parametrize("value", ["1", [None], {"loss": 1}, object()])
def test_values_that_are_no_numbers(value):
    with pytest.raises(TypeError, match="must return a scalar"):
        minimize(lambda x: value, START, jac=bowl_gradient)


@pytest.mark.parametrize("start", [np.ones(2), torch.ones(2)], ids=type)
def test_complex_gradients_are_refused(start):
    with pytest.raises(TypeError, match="the gradient must be real"):
        minimize(lambda x: (x**2).sum(), start, jac=lambda x: 2j * x)


@pytest.mark.parametrize("tensors", [False, True])
def test_complex_second_derivatives_are_refused(tensors):
    x0 = torch.ones(2, dtype=torch.float64) if tensors else np.ones(2)
    jac = None if tensors else lambda x: 2 * x
    for name, value in (("hess", lambda x: 2j * np.eye(2)), ("hessp", lambda x, p: np.array([2j, 0]))):
        with pytest.raises(TypeError, match="real"):
            signedstep.minimize(lambda x: (x * x).sum(), x0, jac=jac, method="newton-cg", **{name: value})


def test_a_gradient_or_residuals_that_were_forgotten_are_named():
    with pytest.raises(TypeError, match="the gradient must be an array or a tensor, got None"):
        minimize(lambda x: (x[0] - 1) ** 2, [3.0], jac=lambda x: None)
    with pytest.raises(TypeError, match="residuals must be an array or a tensor, got None"):
        minimize(signedstep.LeastSquares(lambda x: None), [3.0])


def test_inference_mode_is_named_where_it_is_in_the_way():
    with torch.inference_mode(), pytest.raises(RuntimeError, match="inference_mode"):
        signedstep.minimize(rosenbrock, torch.ones(2), method="lbfgs")


def test_starts_that_are_no_dense_numbers():
    with pytest.raises(TypeError, match="dense tensor"):
        signedstep.minimize(rosenbrock, torch.ones(2).to_sparse())
    with pytest.raises(TypeError, match="float32, float64 or integers"):
        signedstep.minimize(rosenbrock, np.ones(2, dtype=np.longdouble))


def test_starts_without_numbers_are_named():
    for x0 in (torch.zeros(3, device="meta"), torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged)):
        with pytest.raises(TypeError, match="x0 must be a"):
            minimize(lambda x: x.sum(), x0)


def test_a_method_for_scipy_can_be_pickled_and_tells_its_name():
    method = pickle.loads(pickle.dumps(signedstep.method("lsr1/flip")))
    assert repr(method) == "signedstep.method('lsr1/flip')"
    assert scipy.optimize.minimize(rosenbrock, START, jac=rosenbrock_gradient, method=method).success
