"""The torch.optim front among others: learning rates and schedulers, hooks, modes of torch and compiled models."""

import gc
import shutil
import weakref

import pytest
import torch
from scipy.optimize import OptimizeWarning
from torch.optim import lr_scheduler

import signedstep
from training import CLASSES, Counted, assert_left_at, assert_same, batch, bowl, copies, fit, leaf, model

every_class = pytest.mark.parametrize("make", CLASSES)

# Learning rates


@pytest.mark.parametrize("kind", [float, torch.tensor, lambda lr: torch.tensor([lr], dtype=torch.float64)])
def test_the_learning_rate_scales_the_first_trial(kind):
    def trials(lr):
        p = leaf(30.0, 40.0)
        seen = []

        def closure():
            seen.append(p.detach().clone())
            return bowl(p)

        signedstep.LSR1([p], lr=lr, max_iter=1).step(closure)
        return (seen[1] - seen[0]).norm().item()

    assert trials(kind(0.25)) == pytest.approx(0.25 * trials(1), rel=1e-6)


@pytest.mark.parametrize("lr", [1e-3, 1e-300, 5e-324, 1e3])
def test_extreme_learning_rates_are_survived(lr):
    p = leaf(3e3, 4e3)
    optimizer = signedstep.LSR1([p], lr=lr, max_iter=3)
    before = bowl(p).item()
    assert optimizer.step(lambda: bowl(p)) <= before


@pytest.mark.parametrize("reuse", [False, True])
def test_a_learning_rate_of_zero_evaluates_without_moving(reuse):
    p = leaf(3.0, 4.0)
    optimizer = signedstep.LSR1([p], max_iter=1, reuse=reuse)
    optimizer.step(lambda: bowl(p))
    scheduler = lr_scheduler.LambdaLR(optimizer, lambda epoch: 0)
    (before,), calls = copies([p]), optimizer.n_evals
    returned = optimizer.step(lambda: bowl(p))
    scheduler.step()
    assert torch.equal(p.detach(), before)
    assert optimizer.n_evals == calls + 1
    assert_left_at(returned, lambda: bowl(p), [p])


@pytest.mark.parametrize("lr", [0.8, torch.tensor(0.8)])
def test_step_schedulers_attach(lr):
    net = model()
    optimizer = signedstep.LSR1(net.parameters(), lr=lr, max_iter=2)
    scheduler = lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    losses = []
    for _ in range(3):
        losses.append(optimizer.step(Counted(fit(net))).item())
        scheduler.step()
    assert losses == sorted(losses, reverse=True)
    assert float(optimizer.param_groups[0]["lr"]) == pytest.approx(0.1)


def test_plateau_schedulers_attach():
    p = leaf(3.0, 4.0)
    optimizer = signedstep.LSR1([p], max_iter=30, tolerance_grad=1e-10)
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    for _ in range(5):
        scheduler.step(optimizer.step(lambda: bowl(p)))
    assert optimizer.param_groups[0]["lr"] < 0.2


# Hooks


def test_step_hooks_run_around_the_step():
    p, seen = leaf(3.0, 4.0), []
    optimizer = signedstep.LSR1([p], max_iter=1)
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: seen.append(("pre", p.detach().clone())))
    optimizer.register_step_post_hook(lambda opt, args, kwargs: seen.append(("post", p.detach().clone())))
    (before,) = copies([p])
    optimizer.step(lambda: bowl(p))
    assert [when for when, _ in seen] == ["pre", "post"]
    assert torch.equal(seen[0][1], before)
    assert torch.equal(seen[1][1], p.detach())


def test_state_dict_hooks_run_and_may_change_what_is_saved_and_loaded():
    p, seen = leaf(3.0, 4.0), []
    optimizer = signedstep.LSR1([p], max_iter=2)
    optimizer.step(lambda: bowl(p))
    optimizer.register_state_dict_pre_hook(lambda opt: seen.append("before saving"))
    optimizer.register_state_dict_post_hook(lambda opt, saved: {**saved, "note": "mine"})
    saved = optimizer.state_dict()
    assert (seen, saved["note"]) == (["before saving"], "mine")

    other = signedstep.LSR1([leaf(3.0, 4.0)])
    other.register_load_state_dict_pre_hook(lambda opt, given: given["wrapped"])
    other.register_load_state_dict_post_hook(lambda opt: seen.append(opt.param_groups[0]["max_iter"]))
    other.load_state_dict({"wrapped": saved})
    assert seen[-1] == 2
    assert other.state_dict()["state"][0]["n_iter"] == 2


# Surroundings


def trained(make=signedstep.LSR1):
    net = model()
    optimizer = make(net.parameters(), max_iter=6)
    optimizer.step(Counted(fit(net), optimizer))
    optimizer.step(Counted(fit(net), optimizer))
    return copies(net.parameters())


@every_class
def test_it_works_without_gradients_outside(make):
    with torch.no_grad():
        assert_same(trained(make), trained(make))
    with torch.no_grad():
        inside = trained(make)
    assert_same(inside, trained(make))


def test_inference_mode_is_an_error_that_changes_nothing():
    p = leaf(3.0, 4.0)
    (before,) = copies([p])
    optimizer = signedstep.LSR1([p])
    with torch.inference_mode(), pytest.raises(RuntimeError, match="left no gradient"):
        optimizer.step(lambda: bowl(p))
    assert torch.equal(p.detach(), before)
    assert optimizer.step(lambda: bowl(p)) < 1


@every_class
def test_the_default_device_does_not_matter(make):
    net = model()
    loss = fit(net)
    torch.set_default_device("meta")
    try:
        optimizer = make(net.parameters(), max_iter=6)
        for _ in range(2):
            optimizer.step(Counted(loss, optimizer))
            optimizer.load_state_dict(optimizer.state_dict())
    finally:
        torch.set_default_device(None)
    assert_same(copies(net.parameters()), trained(make))


@every_class
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_default_dtype_does_not_matter(make, dtype):
    def run():
        net = model(dtype=dtype)
        optimizer = make(net.parameters(), max_iter=6)
        returned = optimizer.step(Counted(fit(net), optimizer))
        assert returned.dtype == dtype
        return copies(net.parameters())

    reference = run()
    torch.set_default_dtype(torch.float64)
    try:
        assert_same(run(), reference)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_models_train():
    net = model(dtype=torch.float32)
    plain = fit(net)
    compiled = fit(torch.compile(net), batch(dtype=torch.float32))
    optimizer = signedstep.LSR1(net.parameters(), max_iter=15)
    before = plain().item()
    returned = optimizer.step(Counted(compiled, optimizer))
    assert returned.item() == pytest.approx(plain().item(), rel=1e-5)
    assert returned.item() < 0.5 * before


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_compiled_function_may_take_the_step():
    """As with `torch.optim.LBFGS`, the compiler leaves the step alone: it traced all of it, and lost its attributes."""

    def train(compiled):
        net = model()
        optimizer = signedstep.LBFGS(net.parameters(), max_iter=3)
        closure = Counted(fit(net), optimizer)

        def step():
            return optimizer.step(closure)

        run = torch.compile(step, backend="eager") if compiled else step
        return [run() for _ in range(3)] + copies(net.parameters())

    assert_same(train(compiled=True), train(compiled=False))


@every_class
def test_optimizers_are_free_as_soon_as_nobody_holds_them(make):
    """No cycle waits for the garbage collector, though closures know their optimizer, nor is the last batch kept."""

    def train():
        net, data = model(), torch.ones(3)
        optimizer = make(net.parameters(), max_iter=2)

        def closure():
            optimizer.zero_grad()
            loss = fit(net)() + 0 * data.sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        return optimizer, weakref.ref(data)

    gc.collect()
    gc.disable()
    try:
        optimizer, data = train()
        assert data() is None
        gone = weakref.ref(optimizer)
        del optimizer
        assert gone() is None
    finally:
        gc.enable()


@every_class
def test_a_step_within_autocast(make):
    """Casts of weights that autocast keeps are those of the last point: no trial showed a fall."""

    def run(outside: bool):
        net, X = model(dtype=torch.float32), torch.linspace(-1, 1, 40)[:, None].expand(40, net_inputs())
        optimizer = make(net.parameters(), max_iter=5)

        def closure():
            with torch.autocast("cpu", torch.bfloat16):
                return (net(X).float() - X[:, :1].square()).square().mean()

        losses = []
        for _ in range(2):
            with torch.autocast("cpu", torch.bfloat16, enabled=outside):
                losses.append(optimizer.step(closure).item())
        return losses

    assert run(outside=True) == run(outside=False)
    assert run(outside=True)[1] < run(outside=True)[0]


def net_inputs() -> int:
    return next(iter(model().parameters())).shape[1]


def test_options_without_effect_are_warned_of():
    p = leaf(3.0, 4.0)
    with pytest.warns(OptimizeWarning, match="'gd/wolfe' does not use beta, krylov_size"):
        signedstep.SecondOrder([p], "gd", beta="fr", krylov_size=3)
    with pytest.warns(OptimizeWarning, match="'bfgs/wolfe' does not use floor"):
        signedstep.BFGS([p], floor=0.1)
    signedstep.BFGS([p], history_size=5, line_search_fn="strong_wolfe")  # torch's own arguments
