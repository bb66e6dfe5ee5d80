"""Models known by their products: Lanczos' spaces, and newton-cg on every front."""

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import OptimizeWarning
from scipy.sparse.linalg import aslinearoperator
from torch import Tensor, nn

import signedstep
from cases import START, rosenbrock_gradient, rosenbrock_with_gradient
from cases import rosenbrock as rosenbrock_2
from conftest import evaluated, indefinite, network, rosenbrock
from signedstep.alongline import Raw
from signedstep.curvature import NewtonCG
from signedstep.curvature.lanczos import Subspace
from signedstep.engine import Engine, Tolerances
from signedstep.methods import build, globalizations
from signedstep.space import Space
from signedstep.status import Status
from signedstep.tensors import TorchObjective
from test_engine import Negated
from test_newton import SADDLE_START, rosenbrock_hessian, saddle

ALL = [f"newton-cg/{how}" for how in globalizations("newton-cg")]
EXACT = {"krylov_tol": 0, "krylov_size": 100}
"""The whole Krylov space: newton-cg is Newton's method then."""


def symmetric(w, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """A symmetric matrix with these eigenvalues."""
    w = torch.as_tensor(w, dtype=torch.float64)
    A = torch.randn(len(w), len(w), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    Q, _ = torch.linalg.qr(A)
    return ((Q * w) @ Q.T).to(dtype)


# Lanczos' method


@given(
    w=st.lists(st.sampled_from([-3.0, -1.0, 0.0, 1e-6, 1.0, 1.0, 2.0, 50.0]), min_size=1, max_size=12),
    seed=st.integers(0, 10**6),
    single=st.booleans(),
)
def test_a_subspace_is_orthonormal_and_t_is_b_on_it(w, seed, single):
    """Clustered, zero and negative eigenvalues make it break down early; it ends there and is exact."""
    dtype = torch.float32 if single else torch.float64
    B = symmetric(w, seed, dtype)
    b = torch.randn(len(w), generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)
    seen = Subspace(Space(), b)
    seen.solve(B.mv, b, 0.0, 100)
    V, eps = seen.V.double(), torch.finfo(dtype).eps
    assert 1 <= seen.k <= len(w)
    assert torch.allclose(V @ V.T, torch.eye(seen.k, dtype=torch.float64), atol=100 * eps)
    size = max(1.0, max(map(abs, w)))
    assert np.allclose(seen.T, (V @ B.double() @ V.T).numpy(), atol=100 * eps * size)
    assert float((V[0] - b / b.norm()).norm()) < 10 * eps
    if seen.k < len(w):
        assert seen.invariant
        outside = V @ B.double() - torch.from_numpy(seen.T) @ V
        assert float(outside.norm()) < 1000 * eps * size


def test_it_ends_where_the_residual_is_small():
    B = symmetric(torch.linspace(1, 100, 60))
    b = torch.ones(60, dtype=torch.float64)
    sizes = []
    for tolerance in (0.5, 1e-1, 1e-4, 1e-8):
        seen = Subspace(Space(), b)
        seen.solve(B.mv, b, tolerance, 60)
        y = np.linalg.solve(seen.T, np.eye(seen.k)[0]) * float(b.norm())
        residual = float((B @ (torch.from_numpy(y) @ seen.V) - b).norm() / b.norm())
        assert residual <= tolerance
        sizes.append(seen.k)
    assert sizes == sorted(set(sizes))
    assert sizes[0] < 15 < sizes[-1] < 60


def test_a_second_start_finds_what_the_first_cannot_see():
    w = torch.ones(40, dtype=torch.float64)
    w[7] = -1
    seen, b = Subspace(Space(), w), torch.ones(40, dtype=torch.float64)
    b[7] = 0
    seen.solve(torch.diag(w).mv, b, 0.0, 40)
    assert (seen.k, seen.invariant, seen.negative) == (1, True, False)
    seen.look(torch.diag(w).mv, torch.linspace(1, 2, 40, dtype=torch.float64), 10)
    assert seen.negative
    assert np.linalg.eigvalsh(seen.T)[0] == pytest.approx(-1)


@pytest.mark.parametrize("broken_after", [0, 1, 3])
def test_a_product_that_is_not_finite_ends_the_space_before_it(broken_after):
    B, b, calls = symmetric(np.arange(1.0, 9)), torch.ones(8, dtype=torch.float64), []

    def product(v: Tensor) -> Tensor:
        calls.append(v)
        return B @ v if len(calls) <= broken_after else v * math.nan

    seen = Subspace(Space(), b)
    seen.solve(product, b, 0.0, 8)
    assert (seen.k, seen.broken) == (broken_after, True)
    assert np.isfinite(seen.T).all()


# The model


@pytest.mark.parametrize("how", globalizations("newton-cg"))
@pytest.mark.parametrize("problem", ["rosenbrock", "indefinite"])
def test_with_all_of_the_space_it_is_newtons_method(how, problem):
    fun, x0 = {
        "rosenbrock": (rosenbrock, torch.tensor([-1.2, 1.0] * 4, dtype=torch.float64)),
        "indefinite": (indefinite(9), torch.linspace(-1, 1, 9, dtype=torch.float64)),
    }[problem]
    options = {"maxiter": 8, "return_all": True}
    dense = signedstep.minimize(fun, x0, method=f"newton/{how}", options=options)
    krylov = signedstep.minimize(fun, x0, method=f"newton-cg/{how}", options={**options, **EXACT})
    assert dense.nit == krylov.nit
    for a, b in zip(dense.allvecs, krylov.allvecs, strict=True):
        assert float((a - b).norm()) < 1e-5 * (1 + float(a.norm()))
    assert krylov.history.alpha == pytest.approx(dense.history.alpha, rel=1e-4)


def test_the_spectrum_is_b_as_the_gradient_sees_it():
    fun = indefinite(30)
    x = torch.linspace(-1, 1, 30, dtype=torch.float64)
    objective = TorchObjective(fun, None, (), (30,))
    at = objective(x)
    model = NewtonCG(Space(), 30, 0.0)
    model.start(objective, at)
    H = torch.autograd.functional.hessian(fun, x)
    assert torch.allclose(model.matrix(), H)
    seen = model.spectrum(at.g)
    assert seen.w == pytest.approx(torch.linalg.eigvalsh(H).numpy())
    assert torch.allclose(seen.lift(seen.c), at.g)
    assert torch.allclose(seen.lift(seen.w * seen.c), H @ at.g)
    assert torch.allclose(H @ model.solve(at.g), at.g)


def test_a_small_space_still_gives_the_galerkin_direction():
    """p.B p = -g.p holds in any Krylov space, so a direction uphill means negative curvature along it, as ever."""
    fun, x0 = network()
    objective = TorchObjective(fun, None, (), tuple(x0.shape))
    at = objective(x0)
    for size in (1, 2, 5, 20):
        model = NewtonCG(Space(), size, 0.0)
        model.start(objective, at)
        p = -model.solve(at.g)
        assert float(p @ objective.hvp(at)(p)) == pytest.approx(-float(at.g @ p), rel=1e-9)


@pytest.mark.parametrize("problem", ["network", "rosenbrock"])
def test_negating_the_direction_negates_alpha_and_nothing_else(problem):
    fun, x0 = network() if problem == "network" else (rosenbrock, torch.tensor([-1.2, 1.0] * 5, dtype=torch.float64))
    engines = []
    for how in (Raw, Negated):
        parts = build("newton-cg/wolfe+-", x0, space := Space(), {})
        objective = TorchObjective(fun, None, (), tuple(x0.shape))
        way = how(parts.globalization.search, 1e-12, space)  # type: ignore[attr-defined]
        engines.append(Engine(objective, objective(x0.clone()), parts.curvature, way, space, Tolerances(gtol=0)))
    plain, negated = engines
    signs = set()
    for _ in range(25):
        a, b = plain.step(), negated.step()
        assert torch.equal(plain.at.x, negated.at.x)
        assert (a.f, a.evals, a.alpha, a.cosine) == (b.f, b.evals, -b.alpha, -b.cosine)
        signs.add(np.sign(a.alpha))
        if plain.status is not Status.RUNNING:
            break
    assert problem == "rosenbrock" or -1 in signs, "some step was negative"


# Saddles


@pytest.mark.parametrize("method", [name for name in ALL if name != "newton-cg/wolfe"])
def test_it_leaves_the_saddle(method):
    result = signedstep.minimize(saddle, SADDLE_START, method=method)
    assert result.success
    assert result.x.abs().tolist() == pytest.approx([1.0, 0.0], abs=1e-4)


def test_with_positive_steps_it_says_that_it_cannot():
    result = signedstep.minimize(saddle, SADDLE_START, method="newton-cg/wolfe")
    assert (result.status, result.success, result.nit) == (Status.NOT_DESCENT, False, 1)


@pytest.mark.parametrize("how", ["trust", "cubic"])
@pytest.mark.parametrize("n", [2, 10, 200])
def test_it_leaves_a_saddle_that_the_gradient_does_not_see(how, n):
    """Negative curvature along x[0] only, where the gradient is exactly zero all along the way to the saddle."""
    scales = torch.linspace(0.5, 20, n - 1, dtype=torch.float64)
    fun = lambda x: x[0] ** 4 / 4 - x[0] ** 2 / 2 + 0.5 * (scales * x[1:] ** 2).sum() + 0.01 * (x[1:] ** 4).sum()  # noqa: E731
    x0 = torch.ones(n, dtype=torch.float64)
    x0[0] = 0
    result = signedstep.minimize(fun, x0, method=f"newton-cg/{how}")
    assert result.success
    assert abs(float(result.x[0])) == pytest.approx(1, abs=1e-4)


# minimize


@pytest.mark.parametrize(
    "given",
    [
        {"jac": rosenbrock_gradient, "hessp": lambda x, p: rosenbrock_hessian(x) @ p},
        {"jac": rosenbrock_gradient, "hess": rosenbrock_hessian},
        {"jac": rosenbrock_gradient},
        {"fun": rosenbrock_with_gradient, "jac": True},
        {"x0": torch.tensor(START)},
        {"x0": torch.tensor(START), "hessp": lambda x, p: torch.as_tensor(rosenbrock_hessian(x)) @ p},
        {"x0": torch.tensor(START), "hess": rosenbrock_hessian},
    ],
    ids=["hessp", "hess", "differences", "differences of fun", "autograd", "tensor hessp", "tensor hess"],
)
@pytest.mark.parametrize("how", ["trust", "wolfe+-"])
def test_every_source_of_products_gives_the_same_run(given, how):
    common = {"fun": rosenbrock_2, "x0": START, "method": f"newton-cg/{how}"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = signedstep.minimize(**{**common, **given})
        expected = signedstep.minimize(**{**common, "jac": rosenbrock_gradient, "hess": rosenbrock_hessian})
    assert result.success
    assert np.asarray(result.x) == pytest.approx([1.0, 1.0], abs=1e-4)
    assert result.nit == expected.nit
    assert result.history.f[:8] == pytest.approx(expected.history.f[:8], rel=1e-4)


def test_products_and_gradients_are_counted():
    calls = []
    counted = lambda x, p: calls.append(0) or rosenbrock_hessian(x) @ p  # noqa: E731
    result = signedstep.minimize(rosenbrock_2, START, method="newton-cg", jac=rosenbrock_gradient, hessp=counted)
    assert result.nhev == len(calls) <= 2 * result.nit + 1, "the plane, and once a second start"
    assert result.njev == result.nfev
    by_differences = signedstep.minimize(rosenbrock_2, START, method="newton-cg", jac=rosenbrock_gradient)
    assert by_differences.njev == by_differences.nfev + by_differences.nhev
    by_autograd = signedstep.minimize(rosenbrock_2, torch.tensor(START), method="newton-cg")
    steps = int(by_autograd.history.evals.sum())
    assert by_autograd.njev == by_autograd.nfev == 1 + steps + by_autograd.nit, "one more evaluation an iteration"


@pytest.mark.parametrize("make", [sparse.csr_array, aslinearoperator])
def test_sparse_hessians_and_operators_are_multiplied_as_they_are(make, monkeypatch):
    def forbidden(*_):
        raise AssertionError("made dense")

    monkeypatch.setattr(sparse.csr_array, "toarray", forbidden)
    made = lambda x: make(rosenbrock_hessian(x))  # noqa: E731
    dense, other = (
        signedstep.minimize(rosenbrock_2, START, method="newton-cg", jac=rosenbrock_gradient, hess=hess)
        for hess in (rosenbrock_hessian, made)
    )
    assert other.success
    assert other.x == pytest.approx(dense.x, abs=1e-8)
    wrong = lambda x: make(np.ones((2, 3)))  # noqa: E731
    with pytest.raises(ValueError, match=r"shape \(2, 2\), got \(2, 3\)"):
        signedstep.minimize(rosenbrock_2, START, method="newton-cg", jac=rosenbrock_gradient, hess=wrong)


def test_a_refused_trial_costs_no_products():
    x0 = torch.tensor([3.0], dtype=torch.float64)
    overshot = signedstep.minimize(lambda x: torch.sqrt(1 + x**2).sum(), x0, method="newton-cg/trust")
    assert overshot.nfev > overshot.nit + 1, "some trial was refused"
    assert overshot.nhev == overshot.nit


def test_its_parts_can_be_bounded():
    fun, x0 = network()
    result = signedstep.minimize(fun, x0, method="newton-cg/wolfe+-", options={"krylov_size": 3, "maxiter": 20})
    assert result.nhev <= 3 * 20
    assert result.fun < result.history.f0
    for wrong in ({"krylov_size": 0}, {"krylov_tol": 1.5}):
        with pytest.raises(ValueError, match="krylov"):
            signedstep.minimize(fun, x0, method="newton-cg", options=wrong)


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("broken", ["nan", "zero", "overflow", "late"])
def test_products_of_no_use_are_no_crash(method, broken):
    def hessp(x, p):
        if broken == "overflow" or (broken == "late" and bool((p < 0.5).any())):
            raise OverflowError
        return p * {"nan": math.nan, "zero": 0.0, "late": 2.0}[broken]

    fun = lambda x: ((x - torch.tensor([1.0, 1.0, 0.5])) ** 2).sum() + 0.1 * (x**4).sum()  # noqa: E731
    result = signedstep.minimize(fun, torch.zeros(3, dtype=torch.float64), method=method, hessp=hessp)
    assert result.success


def test_mistakes_in_hessp_come_through():
    def hessp(x, p):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        signedstep.minimize(rosenbrock_2, START, method="newton-cg", jac=rosenbrock_gradient, hessp=hessp)
    for wrong in (lambda x, p: np.ones(3), lambda x, p: np.ones((2, 2))):
        with pytest.raises(ValueError, match=r"hessp's product must have the shape \(2,\)"):
            signedstep.minimize(rosenbrock_2, START, method="newton-cg", jac=rosenbrock_gradient, hessp=wrong)


def test_what_it_needs_is_said():
    with pytest.raises(ValueError, match="needs hessp= or hess=, or jac="):
        signedstep.minimize(rosenbrock_2, START, method="newton-cg")
    with pytest.raises(ValueError, match="hessp must be callable"):
        signedstep.minimize(rosenbrock_2, START, method="newton-cg", jac=rosenbrock_gradient, hessp=True)
    with pytest.warns(OptimizeWarning, match="hessp is not used"):
        signedstep.minimize(
            rosenbrock_2, START, method="newton", jac=rosenbrock_gradient, hessp=lambda x, p: rosenbrock_hessian(x) @ p
        )


@pytest.mark.parametrize("method", [name for name in ALL if name != "newton-cg/wolfe"])
@pytest.mark.parametrize("start", [[[2.0]], [[2.0, -1.0], [0.5, 3.0]]], ids=["n = 1", "a matrix"])
def test_shapes_and_precisions(method, start, dtype):
    x0 = torch.tensor(start, dtype=dtype)
    result = signedstep.minimize(lambda x: torch.cosh(x - 1).sum(), x0, method=method, options={"gtol": 1e-3})
    assert result.success
    assert (result.x.shape, result.x.dtype) == (x0.shape, dtype)
    assert float((result.x - 1).abs().max()) < 2e-3


@pytest.mark.parametrize("method", ALL)
def test_nothing_is_multiplied_at_a_minimum(method):
    result = signedstep.minimize(lambda x: (x**2).sum(), torch.zeros(3), method=method)
    assert (result.success, result.nit, result.nhev) == (True, 0, 0)


@pytest.mark.parametrize("method", ["newton-cg/trust", "newton-cg/wolfe+-"])
def test_a_linear_function_is_called_unbounded(method):
    result = signedstep.minimize(lambda x: x.sum(), torch.ones(2, dtype=torch.float64), method=method)
    assert result.status is Status.UNBOUNDED


# torch.optim


def regression(dtype: torch.dtype = torch.float64):
    torch.manual_seed(0)
    x = torch.linspace(-2, 2, 50, dtype=dtype)[:, None]
    model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)).to(dtype)
    return model, lambda: (model(x) - torch.sin(2 * x)).square().mean()


def test_the_optimizer_walks_as_minimize_does():
    model, loss = regression()
    x0 = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    shapes = {name: p.shape for name, p in model.named_parameters()}
    x = torch.linspace(-2, 2, 50, dtype=torch.float64)[:, None]

    def fun(z: Tensor) -> Tensor:
        parts = z.split([shape.numel() for shape in shapes.values()])
        named = {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
        return (torch.func.functional_call(model, named, x) - torch.sin(2 * x)).square().mean()

    for method in ("newton-cg/trust", "newton-cg/flip"):
        expected = signedstep.minimize(fun, x0, method=method, options={"maxiter": 10})
        model, loss = regression()
        optimizer = signedstep.SecondOrder(model.parameters(), method, max_iter=10, max_eval=1000)
        optimizer.step(loss)
        assert optimizer.history.f == pytest.approx(expected.history.f, rel=1e-6)
        assert optimizer.n_evals == expected.njev, "the closure is called once more for the products of an iteration"


def test_a_closure_that_calls_backward_is_refused():
    model, loss = regression()

    def closure():
        value = loss()
        value.backward()
        return value

    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(RuntimeError, match="closure that only returns the loss"):
        signedstep.SecondOrder(model.parameters(), "newton-cg").step(closure)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


@pytest.mark.parametrize("maximize", [False, True])
def test_complex_parameters_and_maximize(maximize):
    z = torch.tensor([1.0 + 2.0j, -0.5 + 0.1j], dtype=torch.complex128, requires_grad=True)
    sign = -1 if maximize else 1
    optimizer = signedstep.SecondOrder([z], "newton-cg/trust", maximize=maximize, max_iter=50, max_eval=100)
    optimizer.step(lambda: sign * ((z.abs() ** 2 - 1) ** 2 + (z.real - 0.6) ** 2).sum())
    assert optimizer.status.converged
    assert z.detach().real.tolist() == pytest.approx([0.6, 0.6], abs=1e-5)


def test_each_step_sees_its_own_batch():
    """The products of a step come from the closure of that step."""
    w = torch.tensor([3.0], dtype=torch.float64, requires_grad=True)
    optimizer = signedstep.SecondOrder([w], "newton-cg/wolfe", max_iter=1, max_eval=100)
    for centre, curvature in ((1.0, 4.0), (-2.0, 0.1), (5.0, 30.0)):
        optimizer.step(lambda c=centre, k=curvature: (k * (w - c) ** 2).sum())
        assert w.item() == pytest.approx(centre), "one Newton step minimises a quadratic"


def test_resuming_is_bit_for_bit():
    model, loss = regression()
    optimizer = signedstep.SecondOrder(model.parameters(), "newton-cg/trust", max_iter=4, max_eval=100)
    optimizer.step(loss)
    saved, weights = optimizer.state_dict(), {k: v.clone() for k, v in model.state_dict().items()}
    optimizer.step(loss)
    expected = [p.detach().clone() for p in model.parameters()]
    model.load_state_dict(weights)
    again = signedstep.SecondOrder(model.parameters(), "newton-cg/trust", max_iter=4, max_eval=100)
    again.load_state_dict(saved)
    again.step(loss)
    assert all(torch.equal(a, b) for a, b in zip(expected, model.parameters(), strict=True))


def test_after_a_failure_the_gradient_is_tried():
    """Products that lie make a search fail; the identity takes over for that step only."""
    fun = lambda x: (x**2).sum()  # noqa: E731
    objective = TorchObjective(fun, None, (), (2,), hessp=lambda x, p: 1e-14 * p.flip(0))
    parts = build("newton-cg/wolfe+-", torch.ones(2, dtype=torch.float64), space := Space(), {"max_linesearch": 3})
    start = objective(torch.tensor([1.0, 0.5], dtype=torch.float64))
    engine = Engine(objective, start, parts.curvature, parts.globalization, space, Tolerances(), "restart")
    f = engine.at.f
    for _ in range(5):
        engine.step()
        assert engine.at.f < f
        f = engine.at.f
        assert parts.curvature.informed()
    assert evaluated(fun, engine.at.x).f == f


def test_a_difference_beyond_the_domain_is_no_crash():
    def fun(x):
        return x[0] - 1e-10 * math.log(x[0]), np.array([1 - 1e-10 / x[0]])

    result = signedstep.minimize(fun, [1.0], jac=True, method="newton-cg")
    assert 0 < result.fun < 1e-6


def styblinski(x: Tensor) -> Tensor:
    return 0.5 * (x**4 - 16 * x**2 + 5 * x).sum()


@pytest.mark.parametrize("how", ["trust", "cubic", "flip"])
def test_a_probe_that_the_gradient_sees_is_not_taken_in_twice(how):
    """From a constant start g and all lowest eigenvectors are one direction, and B is a multiple of the identity."""
    x0 = torch.full((10,), 3.0, dtype=torch.float64)
    newton, products = (signedstep.minimize(styblinski, x0, method=f"{name}/{how}") for name in ("newton", "newton-cg"))
    assert products.nit <= newton.nit + 1


def test_looking_keeps_the_basis_orthonormal():
    H = torch.diag(torch.arange(1.0, 9.0, dtype=torch.float64))
    g = torch.ones(8, dtype=torch.float64)
    seen = Subspace(Space(), g)
    seen.solve(H.mv, g, 0.0, 3)
    within = seen.V.T @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    assert not seen.look(H.mv, within, 5)
    assert not seen.look(H.mv, within + 1e-13 * torch.arange(8, dtype=torch.float64), 5)
    assert seen.k == 3
    assert seen.look(H.mv, within + 1e-3 * torch.arange(8, dtype=torch.float64) ** 3, 2)
    assert seen.k == 5
    assert (seen.V @ seen.V.T - torch.eye(5, dtype=torch.float64)).abs().max() < 1e-12


def test_a_path_that_a_second_backward_pass_would_miss_is_told():
    """Checkpoints of the old kind hide the parameters from autograd.grad; the Hessian was 0 without a word."""
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    model, X = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), torch.randn(20, 3, requires_grad=True)
    for reentrant in (False, True):
        optimizer = signedstep.SecondOrder(model.parameters(), "newton-cg")
        loss = lambda: (checkpoint(model, X, use_reentrant=reentrant) - 1).square().mean()  # noqa: B023, E731
        if reentrant:
            with pytest.raises(RuntimeError, match="use_reentrant=False"):
                optimizer.step(loss)
        else:
            assert optimizer.step(loss) < 0.1


def test_the_default_of_max_eval_is_enough_for_all_iterations():
    """A call for the products and one for the step, for each."""
    p = nn.Parameter(torch.full((6,), 1.5))
    optimizer = signedstep.SecondOrder([p], "newton-cg", max_iter=8, tolerance_change=0)
    optimizer.step(lambda: (100 * (p[1:] - p[:-1] ** 2) ** 2 + (1 - p[:-1]) ** 2).sum())
    assert len(optimizer.history) == 8
