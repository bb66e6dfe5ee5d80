"""The torch.optim front and its data: full batches evaluated once, mini-batches, and the same runs as `minimize`."""

import pytest
import torch
from torch.func import functional_call

import signedstep
from conftest import network
from training import CLASSES, Counted, assert_left_at, batch, bowl, copies, fit, leaf, model

every_class = pytest.mark.parametrize("make", CLASSES)


# The same as minimize


@pytest.mark.parametrize("per_step", [40, 7, 1])
@pytest.mark.parametrize(
    "method", ["lsr1/wolfe+-", "sr1/wolfe+-", "lsr1/flip", "sr1/flip", "lbfgs", "bfgs", "lsr1/clip", "lsr1/damp", "gd"]
)
def test_one_flat_parameter_gives_the_losses_of_minimize(method, per_step):
    loss, start = network()
    reference = signedstep.minimize(loss, start, method=method, options={"maxiter": 40, "gtol": 0})
    x = start.clone().requires_grad_()
    optimizer = signedstep.SecondOrder(
        [x], method, max_iter=per_step, max_eval=10**6, tolerance_grad=0, tolerance_change=0, reuse=True
    )
    while len(optimizer.history) < 40:
        optimizer.param_groups[0]["max_iter"] = min(per_step, 40 - len(optimizer.history))
        returned = optimizer.step(Counted(lambda: loss(x)))
    assert len(reference.history) == 40
    for column in ("f", "grad_norm", "alpha", "cosine", "evals", "learned"):
        assert list(optimizer.history[column]) == list(reference.history[column]), column
    assert returned.item() == reference.fun
    assert torch.equal(x.detach(), reference.x)
    assert optimizer.n_evals == reference.nfev
    assert (min(optimizer.history.alpha) < 0) == method.endswith("wolfe+-"), "negative steps are among them"


@pytest.mark.parametrize("search", ["more-thuente", "zoom"])
@pytest.mark.parametrize("method", ["lsr1/wolfe+-", "sr1/wolfe+-", "lsr1/flip", "lbfgs"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_network_gives_the_losses_of_minimize(method, dtype, search):
    net = model(dtype=dtype)
    X, y = batch(dtype=dtype)
    shapes = {name: p.shape for name, p in net.named_parameters()}

    def loss(x):
        parts = x.split([shape.numel() for shape in shapes.values()])
        params = {name: part.view(shapes[name]) for name, part in zip(shapes, parts, strict=True)}
        return (functional_call(net, params, (X,)) - y).square().mean()

    start = torch.nn.utils.parameters_to_vector(net.parameters()).detach()
    reference = signedstep.minimize(loss, start, method=method, options={"maxiter": 40, "gtol": 0, "search": search})
    optimizer = signedstep.SecondOrder(
        net.parameters(), method, max_iter=40, max_eval=10**6, tolerance_grad=0, tolerance_change=0, search=search
    )
    optimizer.step(Counted(fit(net), optimizer))
    assert len(reference.history) == 40
    assert list(optimizer.history.f) == list(reference.history.f)
    assert list(optimizer.history.alpha) == list(reference.history.alpha)


# Full batches


@every_class
def test_reuse_saves_the_evaluation_at_the_start_of_a_step(make):
    def run(reuse):
        net = model()
        optimizer = make(net.parameters(), max_iter=3, max_eval=100, reuse=reuse)
        closure = Counted(fit(net), optimizer)
        losses = []
        for _ in range(6):
            losses.append(optimizer.step(closure).item())
            optimizer.zero_grad()  # gradients may go in between
        assert_left_at(optimizer.step(closure), fit(net), list(net.parameters()))
        assert optimizer.n_evals == closure.calls
        return losses, closure.calls

    (plain, calls), (reused, fewer) = run(False), run(True)
    assert plain == reused
    assert fewer == calls - 6


@every_class
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_reuse_notices_parameters_that_were_changed(make, dtype):
    p = leaf(3.0, 4.0, dtype=dtype)
    optimizer = make([p], max_iter=2, reuse=True)
    closure = Counted(lambda: bowl(p))
    for change in (
        lambda: p.data.copy_(torch.tensor([5.0, -6.0])),
        lambda: p.data.mul_(3),
        lambda: torch.nn.init.constant_(p, -4.0),
        lambda: setattr(p, "data", torch.tensor([7.0, 8.0], dtype=dtype)),
    ):
        optimizer.step(closure)
        change()
        here, calls = bowl(p).item(), closure.calls
        returned = optimizer.step(closure)
        assert closure.values[calls] == here
        assert returned < here
        assert_left_at(returned, lambda: bowl(p), [p])


@every_class
@pytest.mark.parametrize("factor", [100.0, 0.01, -1.0])
def test_reuse_survives_a_loss_that_changes_after_all(make, factor):
    """Declared wrongly: the first search may fail against a stale loss, but then the truth is looked up."""
    net = model()
    optimizer = make(net.parameters(), max_iter=4, reuse=True)
    optimizer.step(Counted(fit(net)))
    start = 1 / factor if factor < 0 else 0

    def changed():
        return factor * fit(net)() + start + (sum(p.pow(4).sum() for p in net.parameters()) if factor < 0 else 0)

    before = changed().item()
    for _ in range(3):
        returned = optimizer.step(Counted(changed))
        assert_left_at(returned, changed, list(net.parameters()))
    assert returned.item() < before


# Mini-batches


class Batches:
    """Hands out one batch per step and writes down which batch each closure call saw."""

    def __init__(self, net, size=20, count=8):
        X, y = batch(size=size * count)
        self.net, self.batches = net, list(zip(X.split(size), y.split(size), strict=True))
        self.whole, self.now = (X, y), 0
        self.log: list[tuple[int, torch.Tensor, torch.Tensor]] = []

    def loss(self):
        return fit(self.net, self.batches[self.now])()

    def __call__(self):
        loss = self.loss()
        loss.backward()
        flat = torch.cat([p.detach().reshape(-1) for p in self.net.parameters()])
        gradient = torch.cat([p.grad.reshape(-1) for p in self.net.parameters()])
        self.log.append((self.now, flat, gradient))
        return loss


@pytest.mark.parametrize("make", [signedstep.LSR1, signedstep.LBFGS])
def test_both_ends_of_a_pair_come_from_one_batch(make):
    """The stored pairs are looked up in the log: s and y are differences of two calls that saw the same batch."""
    net = model()
    data = Batches(net)
    optimizer = make(net.parameters(), max_iter=1, max_eval=10)
    explained = 0
    for step in range(10):
        data.now = step % len(data.batches)
        first = len(data.log)
        returned = optimizer.step(data)
        assert_left_at(returned, data.loss, list(net.parameters()))
        assert {now for now, _, _ in data.log[first:]} == {data.now}
        if not optimizer.history[-1].learned:
            continue
        pairs = optimizer.state_dict()["state"][0]["engine"]["curvature"]["pairs"]
        s, y = pairs["rows"][2 * pairs["order"][-1]], pairs["rows"][2 * pairs["order"][-1] + 1]
        (_, x0, g0), here = data.log[first], torch.nn.utils.parameters_to_vector(net.parameters())
        x, g = next((x, g) for _, x, g in data.log[first + 1 :] if torch.equal(x, here))
        torch.testing.assert_close(s, (x - x0) / (x - x0).norm(), rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(y, (g - g0) / (x - x0).norm(), rtol=1e-9, atol=1e-12)
        explained += 1
    assert explained >= 8


@every_class
@pytest.mark.parametrize("max_iter", [1, 3])
def test_stochastic_training_ends_lower_and_finite(make, max_iter):
    net = model()
    data = Batches(net, size=40)
    optimizer = make(net.parameters(), max_iter=max_iter, lr=0.5)
    before = fit(net, data.whole)().item()
    for step in range(60):
        data.now = step % len(data.batches)
        optimizer.step(data)
        assert all(p.isfinite().all() for p in net.parameters())
    assert fit(net, data.whole)().item() < 0.8 * before
    assert optimizer.n_evals == len(data.log)


@every_class
def test_noise_in_every_call_does_not_blow_up(make):
    """Dropout and the like: no two calls agree, and searches fail; parameters stay finite and no loss explodes."""
    torch.manual_seed(0)
    net = model()
    optimizer = make(net.parameters(), max_iter=4)
    before = fit(net)().item()
    for _ in range(30):
        optimizer.step(Counted(lambda: fit(net)() * (1 + 0.1 * torch.randn(())) + 0.01 * torch.randn(())))
    assert all(p.isfinite().all() for p in net.parameters())
    assert fit(net)().item() < before


def test_a_step_that_changes_nothing_learns_nothing():
    p = leaf(1.0, 1.0)
    optimizer = signedstep.LSR1([p])
    for _ in range(2):
        before = copies([p])
        assert optimizer.step(lambda: bowl(p)) == 0
        assert torch.equal(before[0], p)
    assert optimizer.status is signedstep.Status.GRADIENT
    assert (optimizer.n_evals, len(optimizer.history)) == (2, 0)


@pytest.mark.parametrize("make", [signedstep.Mix, signedstep.LSR1])
def test_a_small_rate_does_not_compound(make):
    """lr shortens the first trial of each step, not that of the step before once more."""
    d = torch.logspace(0, 2, 50, dtype=torch.float64)
    p = torch.ones(50, dtype=torch.float64, requires_grad=True)
    optimizer = make([p], lr=0.1, max_iter=25, max_eval=999, tolerance_change=0, tolerance_grad=0)
    first = (0.5 * (d * p * p).sum()).item()
    last = optimizer.step(lambda: 0.5 * (d * p * p).sum())
    assert last < 0.1 * first
    assert min(optimizer.history.alpha[1:6]) > 0.05


def test_aux_is_that_of_the_newest_call_even_where_nothing_moved():
    p = torch.zeros(2, requires_grad=True)
    optimizer = signedstep.LBFGS([p])
    for aux in ("first", "second"):
        optimizer.step(lambda aux=aux: ((p**2).sum(), aux))
        assert optimizer.aux == aux


@every_class
def test_a_loss_that_no_parameter_is_in_is_a_mistake(make):
    other = torch.ones(2, requires_grad=True)
    optimizer = make([torch.ones(2, requires_grad=True)])
    with pytest.raises(RuntimeError, match="depends on none of the parameters"):
        optimizer.step(lambda: (other**2).sum())


def test_dropout_trains_with_a_seed_for_each_step():
    """A mask for each call hides from a search what a step does, which docs/torch.md says."""
    ends = []
    for of_a_step in (False, True):
        torch.manual_seed(0)
        x = torch.randn(200, 5)
        y = (x[:, :1] * x[:, 1:2] > 0).float()
        trained = torch.nn.Sequential(
            torch.nn.Linear(5, 30), torch.nn.Tanh(), torch.nn.Dropout(0.3), torch.nn.Linear(30, 1)
        )
        optimizer = signedstep.Mix(trained.parameters(), max_iter=5)
        for seed in range(40):

            def closure(seed=seed, of_a_step=of_a_step, trained=trained, x=x, y=y):
                if of_a_step:
                    torch.manual_seed(seed)
                return torch.nn.functional.binary_cross_entropy_with_logits(trained(x), y)

            optimizer.step(closure)
        trained.eval()
        ends.append(closure().item())
    assert ends[1] < ends[0] / 3


def test_second_derivatives_follow_the_closure_of_each_step_under_reuse():
    """A model of one point is told of the new closure, though nothing is evaluated at the start of the step."""
    calls = {}
    for reuse in (False, True):
        net = model()
        optimizer = signedstep.SecondOrder(net.parameters(), "newton-cg", max_iter=2, max_eval=100, reuse=reuse)
        losses = [optimizer.step(lambda net=net: fit(net)()).item() for _ in range(4)]
        calls[reuse] = losses, optimizer.n_evals
    assert calls[True][0] == calls[False][0]
    assert calls[True][1] < calls[False][1]
