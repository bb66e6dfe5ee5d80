"""Residuals and modules: Gauss-Newton, Fisher and KFAC against dense matrices, and as methods on both fronts."""

import copy
import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import torch
from scipy.sparse.linalg import aslinearoperator
from torch import Tensor, nn

import signedstep
from signedstep import LeastSquares, ModuleLoss
from signedstep.closure import ClosureObjective
from signedstep.flat import Flat
from signedstep.methods import build, globalizations
from signedstep.objective import Point
from signedstep.sources import Derivatives
from signedstep.sources import objective_of as bound
from signedstep.space import Space

MODELS = ["gauss-newton", "natural", "kfac"]
ALL = [f"{model}/{how}" for model in MODELS for how in globalizations(model)]


# Residuals


def rosenbrock(x):
    return (10 * (x[1] - x[0] ** 2), 1 - x[0])


def powell(x):
    return (x[0] + 10 * x[1], 5**0.5 * (x[2] - x[3]), (x[1] - 2 * x[2]) ** 2, 10**0.5 * (x[0] - x[3]) ** 2)


def decay(x):
    t = range(1, 11)
    data = [3.1, 1.9, 1.3, 0.75, 0.5, 0.34, 0.2, 0.15, 0.08, 0.07]
    exp = torch.exp if isinstance(x, Tensor) else np.exp
    return tuple(x[0] * exp(-x[1] * s) - d for s, d in zip(t, data, strict=True))


RESIDUALS = {"rosenbrock": (rosenbrock, [-1.2, 1.0]), "powell": (powell, [3.0, -1, 0, 1]), "decay": (decay, [1.0, 1])}


def stacked(residuals):
    return lambda x: torch.stack(residuals(x)) if isinstance(x, Tensor) else np.array(residuals(x))


def jacobian(residuals):
    whole = stacked(residuals)
    return lambda x: torch.autograd.functional.jacobian(whole, torch.tensor(x, dtype=torch.float64)).numpy()  # type: ignore[union-attr]


@pytest.mark.parametrize("problem", RESIDUALS)
def test_products_are_those_with_the_dense_matrix(problem):
    residuals, start = RESIDUALS[problem]
    J = jacobian(residuals)(start)
    x, v = torch.tensor(start, dtype=torch.float64), torch.linspace(1, 2, len(start), dtype=torch.float64)
    for tensors, jac in [(True, None), (False, jacobian(residuals)), (False, None)]:
        objective = LeastSquares(stacked(residuals), jac).bind((), (len(start),), tensors)
        at = objective(x)
        rel = 1e-12 if tensors or jac else 1e-5
        for product in (objective.gauss_newton(at), objective.fisher(at, 0)):
            assert product(v).numpy() == pytest.approx(J.T @ (J @ v.numpy()), rel=rel)
        r = stacked(residuals)(x.numpy())
        assert at.f == pytest.approx(0.5 * float(r @ r))
        assert at.g.numpy() == pytest.approx(J.T @ r, rel=rel)


@pytest.mark.parametrize("problem", RESIDUALS)
def test_levenberg_marquardt_next_to_scipys(problem):
    """`gauss-newton/trust` reaches what `least_squares` does, in no more than one and a half times the evaluations.

    Theirs solve the linear systems exactly, so here ours do too.
    """
    residuals, start = RESIDUALS[problem]
    fun, jac = stacked(residuals), jacobian(residuals)
    theirs = scipy.optimize.least_squares(fun, start, jac, method="lm", gtol=1e-10, ftol=1e-15, xtol=1e-15)
    options = {"krylov_tol": 0, "gtol": 1e-10}
    ours = signedstep.minimize(LeastSquares(fun, jac), np.array(start), method="gauss-newton/trust", options=options)
    assert ours.success
    assert ours.fun == pytest.approx(theirs.cost, rel=1e-9, abs=1e-12)
    assert ours.nfev <= 1.5 * theirs.nfev


def test_cubic_regularization_does_not_creep_through_a_narrow_valley():
    """Powell's badly scaled residuals took 5000 evaluations while no step could be over 4 times the last."""
    residuals = lambda x: torch.stack((1e4 * x[0] * x[1] - 1, torch.exp(-x).sum() - 1.0001))  # noqa: E731
    x0 = torch.tensor([0.0, 1.0], dtype=torch.float64)
    options = {"gtol": 1e-10, "maxfun": 400, "krylov_tol": 0}
    result = signedstep.minimize(LeastSquares(residuals), x0, method="gauss-newton/cubic", options=options)
    assert result.success, result.message


@pytest.mark.parametrize("wrap", [np.asarray, scipy.sparse.csr_array, aslinearoperator])
def test_the_jacobian_may_be_sparse_or_an_operator(wrap):
    fun, jac = stacked(powell), jacobian(powell)
    plain = signedstep.minimize(LeastSquares(fun, jac), np.array([3.0, -1, 0, 1]), method="gauss-newton")
    other = signedstep.minimize(
        LeastSquares(fun, lambda x: wrap(jac(x))), np.array([3.0, -1, 0, 1]), method="gauss-newton"
    )
    assert other.success
    assert other.history.f[:5] == pytest.approx(plain.history.f[:5], rel=1e-6)


@pytest.mark.parametrize("x0", [np.array([-1.2, 1.0]), torch.tensor([-1.2, 1.0], dtype=torch.float64)], ids=type)
@pytest.mark.parametrize("method", ["lsr1", "bfgs", "newton", "newton-cg", "natural", "gauss-newton/wolfe"])
def test_residuals_go_with_every_other_method(x0, method):
    result = signedstep.minimize(LeastSquares(stacked(rosenbrock)), x0, method=method)
    assert result.success
    assert np.asarray(result.x) == pytest.approx([1.0, 1.0], abs=1e-3)


def test_evaluations_and_products_of_residuals_are_counted():
    calls = []

    def fun(x):
        calls.append(x)
        return stacked(powell)(x)

    x0 = np.array([3.0, -1, 0, 1])
    result = signedstep.minimize(LeastSquares(fun), x0, method="gauss-newton", options={"maxfun": 60})
    assert result.nfev == len(calls) <= 60
    assert result.nhev > 0
    calls.clear()
    result = signedstep.minimize(LeastSquares(fun, jacobian(powell)), x0, method="gauss-newton")
    assert result.nfev == len(calls)


@pytest.mark.parametrize("how", globalizations("gauss-newton"))
def test_every_globalization_descends(how, dtype):
    x0 = torch.tensor([3.0, -1, 0, 1], dtype=dtype)
    result = signedstep.minimize(LeastSquares(stacked(powell)), x0, method=f"gauss-newton/{how}", tol=1e-3)
    assert result.success
    assert result.x.dtype == dtype
    assert np.all(np.diff([result.history.f0, *result.history.f]) <= 0)
    assert np.all(result.history.alpha > 0), "a positive semidefinite model never asks for a negative step"


# Modules


def made(loss_func: nn.Module, dtype: torch.dtype = torch.float64, seed: int = 0) -> tuple[nn.Module, list]:
    """A small network with two batches of different sizes."""
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to(dtype)
    X = torch.randn(12, 3, generator=generator, dtype=dtype)
    if isinstance(loss_func, nn.CrossEntropyLoss):
        y = torch.randint(2, (12,), generator=generator)
    else:
        y = torch.randint(2, (12, 2), generator=generator).to(dtype)
    return model, [(X[:5], y[:5]), (X[5:], y[5:])]


def outputs(model: nn.Module, X: Tensor):
    """The model's outputs as a function of its flat parameters."""
    shapes = {name: p.shape for name, p in model.named_parameters()}

    def f(z: Tensor) -> Tensor:
        parts = z.split([shape.numel() for shape in shapes.values()])
        named = {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
        return torch.func.functional_call(model, named, X)

    return f


def dense_gauss_newton(model: nn.Module, loss_func: nn.Module, data: list) -> Tensor:
    """J' (Hessian of the loss in the outputs) J, over all the data at once."""
    X, y = (torch.cat(parts) for parts in zip(*data, strict=True))
    f, x = outputs(model, X), Flat(model.parameters()).read()
    J = torch.autograd.functional.jacobian(f, x).flatten(0, 1)
    out = f(x).detach()
    H = torch.autograd.functional.hessian(lambda o: loss_func(o.view_as(out), y), out.reshape(-1))
    return J.T @ H @ J


def dense_fisher(model: nn.Module, loss_func: nn.Module, data: list) -> Tensor:
    """E[grad log p grad log p'] over labels y ~ p(y | model), all of which are tried."""
    X = torch.cat([X for X, _ in data])
    x = Flat(model.parameters()).read()
    F = torch.zeros(len(x), len(x), dtype=x.dtype)
    cross = isinstance(loss_func, nn.CrossEntropyLoss)
    log_loss = (nn.CrossEntropyLoss if cross else nn.BCEWithLogitsLoss)(reduction="sum")
    labels = [0, 1] if cross else list(itertools.product([0.0, 1.0], repeat=2))
    for row in X:
        f = outputs(model, row[None])
        for label in labels:
            y = torch.tensor([label], dtype=torch.long if cross else x.dtype)
            leaf = x.clone().requires_grad_(True)
            value = log_loss(f(leaf), y)
            (g,) = torch.autograd.grad(value, leaf)
            F += torch.exp(-value.detach()) * torch.outer(g, g)
    return F / (len(X) if cross else 2 * len(X)) if loss_func.reduction == "mean" else F


def objective_of(model: nn.Module, loss_func: nn.Module, data: list) -> tuple[ClosureObjective, Point]:
    loss = ModuleLoss(model, loss_func, data)
    objective = loss.bind(loss.x0, tuple(loss.x0.shape))
    return objective, objective(loss.x0)


def as_matrix(product, n: int) -> Tensor:
    return torch.stack([product(row) for row in torch.eye(n, dtype=torch.float64)])


LOSSES = [
    kind(reduction=how) for kind in (nn.MSELoss, nn.CrossEntropyLoss, nn.BCEWithLogitsLoss) for how in ("mean", "sum")
]


@pytest.mark.parametrize("loss_func", LOSSES, ids=lambda f: f"{type(f).__name__}-{f.reduction}")
def test_the_loss_its_gradient_and_its_gauss_newton_matrix(loss_func):
    model, data = made(loss_func)
    objective, at = objective_of(model, loss_func, data)
    X, y = (torch.cat(parts) for parts in zip(*data, strict=True))
    whole = loss_func(model(X), y)
    assert at.f == pytest.approx(whole.item())
    expected = torch.cat([g.reshape(-1) for g in torch.autograd.grad(whole, list(model.parameters()))])
    assert torch.allclose(at.g, expected)
    G = dense_gauss_newton(model, loss_func, data)
    assert torch.allclose(as_matrix(objective.gauss_newton(at), len(G)), G, atol=1e-12)


@pytest.mark.parametrize("loss_func", LOSSES[2:], ids=lambda f: f"{type(f).__name__}-{f.reduction}")
def test_the_fisher_information_is_the_expectation_over_labels(loss_func):
    model, data = made(loss_func)
    objective, at = objective_of(model, loss_func, data)
    F = dense_fisher(model, loss_func, data)
    assert torch.allclose(as_matrix(objective.fisher(at, 0), len(F)), F, atol=1e-12)
    few, many = (as_matrix(objective.fisher(at, samples), len(F)) for samples in (1, 4000))
    errors = [float((drawn - F).norm() / F.norm()) for drawn in (few, many)]
    assert 5 * errors[1] < errors[0] < 1, "it is drawn, and more draws are better"


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_kfac_is_exact_where_it_should_be(reduction):
    """One linear layer with squared errors: each example has the same G, so the sum of products is one product."""
    torch.manual_seed(1)
    model, loss_func = nn.Linear(3, 2, dtype=torch.float64), nn.MSELoss(reduction=reduction)
    data = [(torch.randn(9, 3, dtype=torch.float64), torch.randn(9, 2, dtype=torch.float64))]
    objective, at = objective_of(model, loss_func, data)
    curvature = build("kfac", at.x, Space(), {}).curvature
    curvature.start(objective, at)
    G = dense_gauss_newton(model, loss_func, data)
    assert torch.allclose(curvature.matrix(), G, atol=1e-12)
    assert np.sort(curvature.spectrum(at.g).w) == pytest.approx(torch.linalg.eigvalsh(G).numpy())
    assert torch.allclose(G @ curvature.solve(at.g), at.g)
    result = signedstep.minimize(ModuleLoss(model, loss_func, data), method="kfac/wolfe", tol=1e-9)
    assert result.nit == 1, "a Newton step on a quadratic"


def test_kfac_is_exact_for_one_example_repeated():
    torch.manual_seed(2)
    model, loss_func = nn.Linear(3, 4, dtype=torch.float64), nn.CrossEntropyLoss()
    data = [(torch.randn(1, 3, dtype=torch.float64).expand(6, 3), torch.tensor([0, 1, 2, 3, 0, 1]))]
    objective, at = objective_of(model, loss_func, data)
    curvature = build("kfac", at.x, Space(), {}).curvature
    curvature.start(objective, at)
    assert torch.allclose(curvature.matrix(), dense_gauss_newton(model, loss_func, data), atol=1e-12)


def test_kfac_is_block_diagonal_with_a_spectrum_of_its_own():
    model, data = made(nn.MSELoss())
    objective, at = objective_of(model, nn.MSELoss(), data)
    curvature = build("kfac", at.x, Space(), {}).curvature
    curvature.start(objective, at)
    B = curvature.matrix()
    assert torch.allclose(B, B.T, atol=1e-12)
    assert float(B[:16, 16:].abs().max()) == 0
    seen = curvature.spectrum(at.g)
    assert np.sort(seen.w) == pytest.approx(torch.linalg.eigvalsh(B).numpy(), abs=1e-12)
    assert torch.allclose(seen.lift(seen.w * seen.c), B @ at.g)
    v = torch.linspace(-1, 1, len(at.g), dtype=torch.float64)
    assert torch.allclose(seen.lift(curvature.spectrum(v).c), v)


@pytest.mark.parametrize("method", ALL)
def test_every_method_lowers_the_loss_of_a_module(method):
    loss_func = {"gauss-newton": nn.MSELoss(), "natural": nn.CrossEntropyLoss(), "kfac": nn.BCEWithLogitsLoss()}[
        method.partition("/")[0]
    ]
    model, data = made(loss_func)
    loss = ModuleLoss(model, loss_func, data)
    before = loss().item()
    result = signedstep.minimize(loss, method=method, options={"maxiter": 6})
    # the dense decomposition lists null directions too, where damping divides rounding by rounding
    assert result.fun < (1.0 if "dense" in method else 0.95) * before
    assert np.all(np.diff([result.history.f0, *result.history.f]) <= 0)
    assert loss().item() == pytest.approx(result.fun), "the module is left at the result"
    assert torch.equal(loss.x0, result.x)


@pytest.mark.parametrize("method", [*MODELS, "newton-cg"])
def test_both_fronts_walk_alike(method, dtype):
    model, data = made(nn.MSELoss(), dtype)
    twin = copy.deepcopy(model)
    expected = signedstep.minimize(ModuleLoss(model, nn.MSELoss(), data), method=method, options={"maxiter": 5})
    optimizer = signedstep.SecondOrder(twin.parameters(), method, max_iter=5, max_eval=100)
    optimizer.step(ModuleLoss(twin, nn.MSELoss(), data))
    assert optimizer.history.f.tolist() == expected.history.f.tolist()
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(p, q)


@pytest.mark.parametrize("method", MODELS)
def test_frozen_parameters_mini_batches_and_resuming(method):
    model, data = made(nn.MSELoss())
    model[0].weight.requires_grad_(False)  # type: ignore[index]
    frozen = model[0].weight.clone()  # type: ignore[index]
    optimizer = signedstep.SecondOrder(model.parameters(), method, max_iter=3, max_eval=100)
    losses = [ModuleLoss(model, nn.MSELoss(), batch) for batch in data]
    for loss in losses:
        before = loss().item()
        assert optimizer.step(loss) < before
    assert torch.equal(model[0].weight, frozen)  # type: ignore[index]
    saved, weights = optimizer.state_dict(), copy.deepcopy(model.state_dict())
    optimizer.step(losses[0])
    expected = [p.detach().clone() for p in model.parameters()]
    model.load_state_dict(weights)
    again = signedstep.SecondOrder(model.parameters(), method, max_iter=3, max_eval=100)
    again.load_state_dict(saved)
    again.step(losses[0])
    assert all(torch.equal(a, b) for a, b in zip(expected, model.parameters(), strict=True))


def test_a_convolutional_network_under_kfac():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(3 * 16, 4)).double()
    data = (torch.randn(20, 1, 6, 6, dtype=torch.float64), torch.arange(20) % 4)
    loss = ModuleLoss(model, nn.CrossEntropyLoss(), data)
    result = signedstep.minimize(loss, method="kfac", options={"maxiter": 15})
    assert result.fun < 0.1 * result.history.f0


@pytest.mark.parametrize("method", MODELS)
def test_losses_that_overflow_leave_the_gradient(method):
    """Factors and products that are not finite say nothing; a finite loss can still be lowered."""
    model = nn.Linear(2, 1, dtype=torch.float64)
    with torch.no_grad():
        model.weight.fill_(1e-160), model.bias.zero_()
    data = (torch.full((3, 2), 1e160, dtype=torch.float64), torch.ones(3, 1, dtype=torch.float64))
    result = signedstep.minimize(ModuleLoss(model, nn.MSELoss(), data), method=method, options={"maxiter": 3})
    assert result.fun <= result.history.f0
    assert np.isfinite(result.fun)


# Refusals


def test_what_they_need_is_said():
    for method in MODELS:
        with pytest.raises(TypeError, match=f"'{method}/trust' needs .*ModuleLoss"):
            signedstep.minimize(lambda x: (x**2).sum(), torch.ones(2), method=method)
    with pytest.raises(TypeError, match=r"'kfac/trust' needs a module .*, got a LeastSquares"):
        signedstep.minimize(LeastSquares(lambda x: x), torch.ones(2), method="kfac")
    with pytest.raises(TypeError, match="brings its own derivatives, so jac= must be None"):
        signedstep.minimize(LeastSquares(lambda x: x), np.ones(2), jac=lambda x: x)
    with pytest.raises(ValueError, match="for arrays only"):
        signedstep.minimize(LeastSquares(lambda x: x, lambda x: x), torch.ones(2))
    with pytest.raises(TypeError, match="residuals must be callable"):
        LeastSquares(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="x0 must be"):
        signedstep.minimize(lambda x: (x**2).sum())


def test_what_modules_cannot_do_is_said():
    model, data = made(nn.MSELoss())
    plain = signedstep.SecondOrder(model.parameters(), "gauss-newton")
    with pytest.raises(TypeError, match=r"signedstep\.ModuleLoss\(model, loss_func, data\)"):
        plain.step(lambda: nn.MSELoss()(model(data[0][0]), data[0][1]))
    with pytest.raises(ValueError, match="cannot maximize"):
        signedstep.SecondOrder(model.parameters(), "kfac", maximize=True).step(ModuleLoss(model, nn.MSELoss(), data))
    with pytest.raises(TypeError, match="that of a likelihood: MSELoss"):
        signedstep.minimize(ModuleLoss(model, nn.HuberLoss(), data), method="natural")
    with pytest.raises(ValueError, match="reduction 'mean' or 'sum'"):
        ModuleLoss(model, nn.MSELoss(reduction="none"), data)
    with pytest.raises(
        ValueError, match=r"a loss of torch\.nn .*, such as nn\.CrossEntropyLoss\(\), got <function mse"
    ):
        ModuleLoss(model, nn.functional.mse_loss, data)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"a batch \(X, y\) or several, .*, got a tensor"):
        ModuleLoss(model, nn.MSELoss(), torch.zeros(3, 2))
    with pytest.raises(ValueError, match="no examples"):
        ModuleLoss(model, nn.MSELoss(), [])
    normed = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2)).double()
    with pytest.raises(NotImplementedError):
        signedstep.minimize(ModuleLoss(normed, nn.MSELoss(), data), method="kfac")


def test_gauss_newton_takes_losses_that_are_no_likelihood():
    model, data = made(nn.MSELoss())
    result = signedstep.minimize(
        ModuleLoss(model, nn.HuberLoss(), data), method="gauss-newton", options={"maxiter": 10}
    )
    assert result.fun < 0.9 * result.history.f0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("how", sorted({*globalizations("kfac")} - {"damp-dense"}))  # which sees numbers only
def test_kfac_does_not_walk_where_the_softmax_is_flat(how, dtype):
    """A number added to all outputs changes nothing: there the gradient is rounding, and no curvature holds it."""
    for seed in range(4):
        torch.manual_seed(seed)
        X, y, net = torch.randn(10, 2, dtype=dtype), torch.randint(3, (10,)), nn.Linear(2, 3, dtype=dtype)
        loss = ModuleLoss(net, nn.CrossEntropyLoss(label_smoothing=0.1), (X, y))
        start = loss.x0
        best = signedstep.minimize(loss, start, method="gauss-newton")
        found = signedstep.minimize(loss, start, method=f"kfac/{how}", options={"maxiter": 150})
        assert found.x.abs().max() < 10
        assert found.fun <= best.fun + 1e-3


@pytest.mark.parametrize("wrap", [np.asarray, scipy.sparse.csr_array, aslinearoperator])
def test_a_jacobian_of_the_wrong_shape_is_refused(wrap):
    residuals = LeastSquares(lambda x: np.arange(3) * x[0] + x[1], jac=lambda x: wrap(np.ones((2, 3))))
    with pytest.raises(ValueError, match=r"shape \(3, 2\), a row for each residual, got \(2, 3\)"):
        signedstep.minimize(residuals, np.ones(2))


def test_jacobians_may_have_the_shape_of_x_or_no_second_axis():
    flat = signedstep.minimize(LeastSquares(lambda x: 3 * x - 1, jac=lambda x: np.full(1, 3.0)), np.ones(1))
    shaped = signedstep.minimize(
        LeastSquares(lambda x: 3 * x.reshape(-1) - 1, jac=lambda x: 3 * np.eye(4).reshape(4, 2, 2)), np.ones((2, 2))
    )
    assert flat.success
    assert shaped.success
    np.testing.assert_allclose(shaped.x, 1 / 3)


@pytest.mark.parametrize("jac", [None, lambda x: np.diag([1.0, 2.0])])
def test_residuals_may_write_into_their_argument(jac):
    def residuals(x):
        x -= 1
        return x * np.array([1.0, 2.0])

    result = signedstep.minimize(LeastSquares(residuals, jac), np.array([3.0, 4.0]), method="gauss-newton")
    assert result.success
    np.testing.assert_allclose(result.x, 1, atol=1e-5)


def test_modules_and_starts_of_the_wrong_kind():
    X, y = torch.randn(4, 2), torch.randn(4, 1)
    with pytest.raises(TypeError, match=r"model must be a torch.nn.Module, got 3"):
        ModuleLoss(3, nn.MSELoss(), (X, y))  # type: ignore[arg-type]
    loss = ModuleLoss(nn.Linear(2, 1), nn.MSELoss(), (X, y))
    for x0 in (torch.zeros(5), np.zeros(3)):
        with pytest.raises(ValueError, match="a tensor of its 3 parameters"):
            signedstep.minimize(loss, x0)


@pytest.mark.parametrize("how", [{"weight": torch.tensor([1.0, 3.0])}, {"ignore_index": 0}])
def test_batches_whose_means_are_not_the_mean_are_refused(how):
    X, y = torch.randn(6, 2), torch.tensor([0, 1, 1, 1, 1, 0])
    batches = [(X[:2], y[:2]), (X[2:], y[2:])]
    with pytest.raises(ValueError, match="class weights or ignored labels"):
        ModuleLoss(nn.Linear(2, 2), nn.CrossEntropyLoss(**how), batches)
    assert ModuleLoss(nn.Linear(2, 2), nn.CrossEntropyLoss(**how), (X, y))().isfinite()
    assert ModuleLoss(nn.Linear(2, 2), nn.CrossEntropyLoss(**how, reduction="sum"), batches)().isfinite()
    assert ModuleLoss(nn.Linear(2, 2), nn.CrossEntropyLoss(), batches)().isfinite()


def test_what_a_module_loss_does_not_take_is_said():
    model, data = made(nn.MSELoss())
    loss = ModuleLoss(model, nn.MSELoss(), data)
    other = torch.float32 if loss.x0.dtype == torch.float64 else torch.float64
    with pytest.raises(ValueError, match=f"must be {loss.x0.dtype} on cpu .*, got {other} on cpu"):
        signedstep.minimize(loss, loss.x0.to(other))
    with pytest.raises(TypeError, match=r"no arguments beside its data, got args=\(1, 2\)"):
        signedstep.minimize(loss, args=(1, 2))
    with pytest.raises(TypeError, match="use 'newton-cg'"):
        signedstep.minimize(loss, method="newton")


def test_subclasses_are_what_they_come_from():
    class Fit(LeastSquares):
        pass

    assert signedstep.minimize(Fit(stacked(decay)), torch.ones(2, dtype=torch.float64), method="gauss-newton").success
    with pytest.raises(TypeError, match="got a LeastSquares"):
        signedstep.minimize(Fit(stacked(decay)), torch.ones(2, dtype=torch.float64), method="kfac")


def test_squares_of_integer_residuals_do_not_overflow():
    fun = LeastSquares(lambda x: np.rint(1000 * x).astype(np.int32))
    assert signedstep.minimize(fun, np.array([100.0, 100.0])).fun >= 0


def test_residuals_that_do_not_depend_on_x_are_named():
    with pytest.raises(TypeError, match="residuals must return a torch tensor that depends on x"):
        signedstep.minimize(LeastSquares(lambda x: torch.ones(2)), torch.ones(2))


def test_data_that_can_be_gone_through_only_once_are_refused():
    X, y = torch.ones(3, 2), torch.ones(3, 1)
    for data in (iter([(X, y)]), zip([X], [y], strict=True), ((X, y) for _ in range(2))):
        with pytest.raises(TypeError, match="only once"):
            ModuleLoss(nn.Linear(2, 1), nn.MSELoss(), data)


def test_kfac_refuses_layers_that_share_a_weight():
    one, two = nn.Linear(3, 3), nn.Linear(3, 3)
    two.weight = one.weight
    model = nn.Sequential(one, nn.Tanh(), two)
    with pytest.raises(ValueError, match="two layers share a weight"):
        signedstep.minimize(ModuleLoss(model, nn.MSELoss(), (torch.randn(5, 3), torch.randn(5, 3))), method="kfac")


@pytest.mark.parametrize("method", ["gauss-newton", "natural", "kfac"])
def test_layers_that_write_statistics_or_have_no_factors_are_named(method):
    inputs, targets = torch.randn(20, 3), torch.randn(20, 1)

    def run(norm: nn.Module) -> float:
        loss = ModuleLoss(nn.Sequential(nn.Linear(3, 4), norm, nn.Linear(4, 1)), nn.MSELoss(), (inputs, targets))
        result = signedstep.minimize(loss, loss.x0, method=method, options={"maxiter": 2})
        return result.fun - result.history.f[0]

    with pytest.raises(ValueError, match=r"layer '1', a BatchNorm1d, .* call model.eval\(\)"):
        run(nn.BatchNorm1d(4))
    if method == "kfac":
        with pytest.raises(NotImplementedError, match=r"linear and convolutional layers, .* use 'natural'"):
            run(nn.BatchNorm1d(4, track_running_stats=False))
    else:
        assert run(nn.BatchNorm1d(4, track_running_stats=False)) < 0


@pytest.mark.parametrize("method", ["gauss-newton/flip", "gauss-newton/wolfe", "natural/damp"])
@pytest.mark.parametrize("given", [True, False])
def test_a_jacobian_is_evaluated_once_a_point(method, given):
    """Where a search ended at a trial before its last, residuals were evaluated again, beyond the budget."""
    A = np.array([[-0.63533084, 1.57000018], [0.76173627, -1.37799988]])

    def residuals(x):
        if x[0] > 1.5:
            raise ValueError("wall")
        z = A @ x
        return z + 0.3 * np.sin(2 * z) + np.array([0.37261245, -1.88778221])

    jac = (lambda x: (1 + 0.6 * np.cos(2 * (A @ x)))[:, None] * A) if given else None
    problem, x0 = signedstep.LeastSquares(residuals, jac), [0.00099816, 0.18209386]
    for maxfun in range(60, 100, 3):
        assert signedstep.minimize(problem, x0, method=method, options={"maxfun": maxfun}).nfev <= maxfun


def test_a_jacobian_may_be_a_tensor_that_remembers_where_it_came_from():
    A = torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=torch.float64, requires_grad=True)
    problem = signedstep.LeastSquares(lambda x: A.detach().numpy() @ x - 1, lambda x: A)
    assert signedstep.minimize(problem, np.zeros(2), method="gauss-newton").success


@pytest.mark.parametrize("sparse", [False, True])
def test_users_may_fill_the_same_jacobian_at_each_point(sparse):
    """A search may return to a trial before its last, whose Jacobian is then the one that counts."""
    A = np.array([[1.0, 2.0], [-3.0, 1.0], [2.0, -1.0]])
    buffer = scipy.sparse.csr_array(np.ones((3, 2))) if sparse else np.empty((3, 2))

    def filled(x):
        J = (1 + 3 * np.cos(3 * (A @ x)))[:, None] * A
        if sparse:
            buffer.data[:] = J.reshape(-1)
        else:
            buffer[:] = J
        return buffer

    residuals = lambda x: A @ x + np.sin(3 * (A @ x)) - 1  # noqa: E731
    for start in np.random.default_rng(0).normal(size=(20, 2)):
        options = {"max_linesearch": 3, "c2": 1e-3, "maxiter": 20}
        one, other = (
            signedstep.minimize(
                signedstep.LeastSquares(residuals, jac), start, method="gauss-newton/flip", options=options
            )
            for jac in (filled, lambda x: filled(x).copy())
        )
        assert one.history.f.tolist() == other.history.f.tolist()


@pytest.mark.parametrize(("method", "kept"), [("lbfgs/wolfe", False), ("gauss-newton/trust", True)])
def test_points_keep_a_jacobian_only_where_it_is_wanted(method, kept):
    problem, x = LeastSquares(lambda x: x**3 + x - 2, lambda x: np.diag(3 * x**2 + 1)), torch.zeros(3)
    objective = bound(problem, Derivatives(None, None, None), (), x, (3,), method, tensors=False)
    assert (objective(x.double()).aux is not None) == kept
