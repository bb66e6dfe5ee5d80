"""What the torch.optim front trains: groups, layouts, precisions, complex numbers, and parameters that come and go."""

import pytest
import torch
from torch import nn

import signedstep
from training import CLASSES, Counted, assert_left_at, assert_same, bowl, copies, fit, leaf, model

every_class = pytest.mark.parametrize("make", CLASSES)


def trained(*params: torch.Tensor, make=signedstep.LSR1, steps=3, **options):
    """Train on the bowl; what a step leaves is checked on the way."""
    optimizer = make(params, max_iter=8, **options)
    for _ in range(steps):
        returned = optimizer.step(lambda: bowl(*params))
    assert_left_at(returned, lambda: bowl(*params), list(params))
    return optimizer


@every_class
def test_groups_are_one_vector(make):
    one, two = model(), model()
    single = make(one.parameters(), max_iter=10)
    several = make([{"params": [p]} for p in two.parameters()], max_iter=10)
    assert torch.equal(single.step(fit(one)), several.step(fit(two)))
    assert_same(one.parameters(), two.parameters())


def test_groups_share_their_options():
    p, q = leaf(3.0), leaf(4.0)
    optimizer = signedstep.LSR1([{"params": [p], "lr": 0.5, "max_iter": 3, "name": "head"}, {"params": [q]}])
    assert (optimizer.param_groups[1]["max_iter"], optimizer.param_groups[1]["lr"]) == (3, 0.5)
    optimizer.step(lambda: bowl(p, q))
    assert len(optimizer.history) <= 3
    with pytest.raises(ValueError, match="max_iter must be 20 as in the first group, got 5"):
        signedstep.LSR1([{"params": [p]}, {"params": [q], "max_iter": 5}])
    optimizer.param_groups[1]["max_iter"] = 1
    with pytest.raises(ValueError, match="max_iter must be 3 as in the first group, got 1"):
        optimizer.step(lambda: bowl(p, q))
    optimizer.param_groups[1]["max_iter"] = 3
    optimizer.param_groups[1]["lr"] = 0.1
    before = copies([p, q])
    with pytest.raises(ValueError, match=r"lr must be the same in each, got \[0\.1, 0\.5\]"):
        optimizer.step(lambda: bowl(p, q))
    assert_same([p, q], before)


def test_an_empty_group_is_no_obstacle():
    p = leaf(3.0, 4.0)
    optimizer = signedstep.LSR1([{"params": []}, {"params": [p]}], max_iter=4, max_eval=99)
    assert optimizer.step(lambda: bowl(p)) < 2
    other = signedstep.LSR1([{"params": []}, {"params": [p]}])
    other.load_state_dict(optimizer.state_dict())
    assert other.state_dict()["state"][0]["n_iter"] == 4


@every_class
def test_named_parameters(make):
    one, two = model(), model()
    named = make(one.named_parameters(), max_iter=5)
    plain = make(two.parameters(), max_iter=5)
    assert named.param_groups[0]["param_names"] == [name for name, _ in one.named_parameters()]
    assert torch.equal(named.step(fit(one)), plain.step(fit(two)))
    named.load_state_dict(named.state_dict())
    named.add_param_group({"params": [("extra", leaf(1.0))]})
    assert named.step(fit(one)) < plain.step(lambda: fit(two)() + 0 * two[0].bias.sum()) * 1.5


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(4, 3, dtype=torch.float64).T,
        lambda: torch.randn(8, dtype=torch.float64)[::2],
        lambda: torch.randn(4, 6, dtype=torch.float64)[1:3, ::3],
        lambda: torch.randn(2, 3, 4, 5, dtype=torch.float64).to(memory_format=torch.channels_last),
        lambda: torch.randn(2, 3, 4, dtype=torch.complex128).permute(2, 0, 1),
        lambda: torch.randn(6, dtype=torch.complex128).real,
    ],
    ids=["transposed", "every second", "cut out", "channels last", "permuted complex", "real part"],
)
def test_leaves_need_not_be_contiguous(make):
    torch.manual_seed(0)
    base = make()
    awkward, plain = base.detach().requires_grad_(), base.clone(memory_format=torch.contiguous_format).requires_grad_()
    rest = awkward._base.clone() if awkward._base is not None else None
    assert_same(copies([awkward]), copies([plain]))
    trained(awkward, steps=1), trained(plain, steps=1)
    torch.testing.assert_close(awkward, plain, rtol=1e-4, atol=1e-4)  # sums run in the order of memory
    trained(awkward)
    assert bowl(awkward) < 1e-3
    if rest is not None and rest.numel() > awkward.numel():
        assert (awkward._base == rest).sum() >= rest.numel() - awkward.numel(), "what lies between is not touched"


def test_lazy_conjugates_are_refused_not_ignored():
    z = torch.tensor([1 + 2j, 3j]).conj().requires_grad_()
    x = torch.tensor([1 + 2j, 3j]).conj().imag.requires_grad_()
    assert z.is_conj()
    assert x.is_neg()
    for lazy in (z, x):
        with pytest.raises(ValueError, match="lazy conjugate or negative"):
            signedstep.LSR1([lazy]).step(lambda lazy=lazy: bowl(lazy))


@every_class
def test_mixed_precisions_train_together(make):
    params = [leaf(3.0, -2.0, dtype=t) for t in (torch.bfloat16, torch.float16, torch.float32, torch.float64)]
    optimizer = trained(*params, make=make, steps=6)
    assert optimizer.state_dict()["state"][0]["engine"]["x"].dtype == torch.float64
    for p in params:
        assert (p.detach() - 1).abs().max() <= 2 * torch.finfo(p.dtype).eps + 1e-6


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_keeps_a_master_copy(dtype):
    p = leaf(3.0, -2.0, 5.0, dtype=dtype)
    optimizer = trained(p, steps=2)
    master = optimizer.state_dict()["state"][0]["engine"]["x"]
    assert master.dtype == torch.float32
    assert torch.equal(master.to(dtype), p.detach())
    assert not torch.equal(master, p.detach().float()), "finer than the parameter"


def test_half_precision_survives_trials_beyond_its_range():
    p = leaf(3e4, -3e4, dtype=torch.float16)
    optimizer = signedstep.LSR1([p], lr=1e6, max_iter=5)
    before = ((p.double() / 1e4 - 1) ** 2).sum().item()
    assert optimizer.step(lambda: ((p.double() / 1e4 - 1) ** 2).sum()) < before
    assert p.isfinite().all()


@every_class
def test_complex_parameters_move_like_pairs_of_real_ones(make):
    z = torch.tensor([[3 - 1j, 0.5j], [2 + 0j, -1 - 1j]], dtype=torch.complex128, requires_grad=True)
    x = torch.view_as_real(z.detach()).clone().requires_grad_()
    trained(z, make=make)
    optimizer = make([x], max_iter=8)
    for _ in range(3):
        optimizer.step(lambda: bowl(torch.view_as_complex(x)))
    torch.testing.assert_close(torch.view_as_real(z.detach()), x.detach(), rtol=0, atol=0)
    assert (z.detach() - 1 - 0.5j).abs().max() < 1e-3


def test_scalars_and_empty_shapes():
    shapes = [(), (0,), (0, 3), (3, 0), (2, 0, 4), (1,), (2, 2)]
    params = [torch.full(shape, 3.0, requires_grad=True) for shape in shapes]
    trained(*params)
    assert [tuple(p.shape) for p in params] == shapes
    assert bowl(*params) < 1e-3


def test_nothing_but_empty_or_frozen_parameters():
    for p in (torch.zeros(0, requires_grad=True), torch.ones(2)):
        optimizer = signedstep.LSR1([p])
        assert optimizer.step(lambda p=p: p.sum() * 2 + 1) == p.sum() * 2 + 1
        assert optimizer.n_evals == 1


def test_frozen_parameters_stay():
    net = model()
    net[0].weight.requires_grad_(False)
    optimizer = signedstep.LSR1(net.parameters(), max_iter=8)
    before = copies(net.parameters())
    optimizer.step(Counted(fit(net), optimizer))
    assert torch.equal(net[0].weight, before[0])
    assert net[0].weight.grad is None
    assert not any(torch.equal(p, q) for p, q in zip(list(net.parameters())[1:], before[1:], strict=True))


@every_class
def test_unfreezing_restarts_the_curvature_and_goes_on(make):
    net = model()
    net[0].weight.requires_grad_(False)
    optimizer = make(net.parameters(), max_iter=5, max_eval=100)
    closure = Counted(fit(net), optimizer)
    optimizer.step(closure)
    net[0].weight.requires_grad_(True)
    before = net[0].weight.detach().clone()
    returned = optimizer.step(closure)
    assert not torch.equal(net[0].weight, before)
    assert_left_at(returned, fit(net), list(net.parameters()))
    assert optimizer.history.cosine[5] == pytest.approx(1), "the gradient again"
    assert list(optimizer.history.k) == list(range(1, 11))
    assert optimizer.n_evals == closure.calls
    assert optimizer.state_dict()["state"][0]["n_iter"] == 10


def test_other_parameters_of_the_same_shapes_restart_the_curvature():
    p, q = leaf(3.0, 4.0), leaf(5.0, -6.0).requires_grad_(False)
    optimizer = signedstep.LSR1([p, q], max_iter=3)
    optimizer.step(lambda: bowl(p, q))
    p.requires_grad_(False), q.requires_grad_(True)
    (before,), done = copies([p]), len(optimizer.history)
    optimizer.step(lambda: bowl(p, q))
    assert torch.equal(p, before)
    assert optimizer.history.cosine[done] == pytest.approx(1)


def test_a_changed_precision_restarts_the_curvature():
    net = model(dtype=torch.float32)
    optimizer = signedstep.LSR1(net.parameters(), max_iter=5)
    first = optimizer.step(Counted(fit(net)))
    net.double()
    second = optimizer.step(Counted(fit(net)))
    assert second.dtype == torch.float64
    assert second < first


@every_class
def test_add_param_group_after_steps(make):
    p, q = leaf(3.0, 4.0), leaf(5.0, -6.0, 7.0)
    optimizer = make([p], max_iter=4)
    closure = Counted(lambda: bowl(p, q))
    optimizer.step(closure)
    optimizer.param_groups[0]["lr"] = 0.5  # a new group takes what the others have now
    optimizer.add_param_group({"params": [q]})
    calls = [optimizer.step(closure).item() for _ in range(14)]
    assert calls[-1] == min(closure.values) < 1e-4
    assert optimizer.n_evals == closure.calls


@pytest.mark.parametrize("change", ["freeze", "add"])
def test_parameters_that_change_right_after_loading(change):
    p, q = leaf(3.0, 4.0), leaf(5.0, -6.0, 7.0)
    both = [p, q] if change == "freeze" else [p]
    first = signedstep.LSR1(both, max_iter=4)
    first.step(lambda: bowl(*both))
    second = signedstep.LSR1(both, max_iter=4)
    second.load_state_dict(first.state_dict())
    if change == "freeze":
        q.requires_grad_(False)
    else:
        second.add_param_group({"params": [q]})
    before = bowl(p, q).item()
    assert second.step(lambda: bowl(p, q)) < before
    assert second.history.cosine[0] == pytest.approx(1)
    assert second.n_evals > first.n_evals
    assert second.state_dict()["state"][0]["n_iter"] == len(first.history) + len(second.history)


@every_class
def test_parameters_without_a_gradient_stay(make):
    p, q, unused = leaf(3.0, 4.0), leaf(5.0), leaf(7.0)
    optimizer = make([p, unused, q], max_iter=6)
    for _ in range(2):
        returned = optimizer.step(Counted(lambda: bowl(p, q)))
    assert unused.item() == 7
    assert unused.grad is None or not unused.grad.any()
    assert returned < 0.1
    optimizer.step(Counted(lambda: bowl(p, q, unused)))  # and joins when it has one
    assert unused.item() != 7


@every_class
@pytest.mark.parametrize("maximize", [False, True])
def test_sparse_gradients_count_in_full(make, maximize):
    """An embedding whose rows are used twice, once or never."""

    def run(sparse):
        torch.manual_seed(0)
        net = nn.Embedding(5, 3, sparse=sparse, dtype=torch.float64)
        index, target = torch.tensor([0, 2, 2, 4]), torch.ones(4, 3, dtype=torch.float64)
        sign = -1 if maximize else 1
        optimizer = make(net.parameters(), max_iter=5, maximize=maximize)
        closure = Counted(lambda: sign * (net(index) - target).pow(4).sum(), optimizer)
        returned = [optimizer.step(closure).item() for _ in range(2)]
        assert_left_at(returned[-1], closure.loss, list(net.parameters()))
        return returned, net.weight.detach()

    (losses, weight), (dense_losses, dense_weight) = run(True), run(False)
    assert losses == dense_losses
    assert torch.equal(weight, dense_weight)
    assert abs(losses[1]) < abs(losses[0])


@every_class
def test_maximize_is_minimising_the_negative(make):
    one, two = model(), model()
    up, down = make(one.parameters(), max_iter=5, maximize=True), make(two.parameters(), max_iter=5)
    for _ in range(3):
        highest, lowest = up.step(Counted(lambda: -fit(one)())), down.step(Counted(fit(two)))
        assert highest == -lowest
        assert_left_at(highest, lambda: -fit(one)(), list(one.parameters()))
    assert_same(one.parameters(), two.parameters())
    assert up.history.f0 == -down.history.f0
    assert list(up.history.f) == list(-down.history.f)


def test_zero_grad():
    net = model()
    optimizer = signedstep.LSR1(net.parameters(), max_iter=2)
    optimizer.step(fit(net))
    optimizer.zero_grad(set_to_none=False)
    assert all(not p.grad.any() for p in net.parameters())
    optimizer.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    optimizer.step(fit(net))
    assert all(p.grad.any() for p in net.parameters())


@pytest.mark.parametrize("clip", [False, True])
def test_weight_decay_and_clipping_live_in_the_closure(clip):
    """A penalty is part of the loss; clipped gradients are no gradients of it, yet must not break the run."""
    net = model()
    optimizer = signedstep.LSR1(net.parameters(), max_iter=10)

    def closure():
        optimizer.zero_grad()
        loss = fit(net)() + 0.1 * sum(p.square().sum() for p in net.parameters())
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), 0.05)
        return loss

    before = closure().item()
    size = sum(p.square().sum().item() for p in net.parameters())
    assert optimizer.step(closure) < before
    assert sum(p.square().sum().item() for p in net.parameters()) < size


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"parallel": True}, "parallel must be a signedstep.distributed.Parallel, got True"),
        ({"maximize": "yes"}, "maximize must be True or False, got 'yes'"),
        ({"reuse": 1}, "reuse must be True or False, got 1"),
        ({"lr": torch.tensor(1j)}, "lr must be a finite number that is not negative"),
    ],
)
def test_arguments_of_the_wrong_type(wrong, message):
    with pytest.raises(TypeError, match=message):
        signedstep.Mix([torch.ones(2, requires_grad=True)], **wrong)


def test_other_things_that_are_no_closure_no_state_and_no_search():
    optimizer = signedstep.LSR1([torch.ones(2, requires_grad=True)])
    with pytest.raises(TypeError, match="needs a closure"):
        optimizer.step(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="no state dict of an optimizer"):
        optimizer.load_state_dict({})
    with pytest.raises(ValueError, match="line_search_fn must be one of"):
        signedstep.LSR1([torch.ones(2, requires_grad=True)], line_search_fn=[])  # pyright: ignore[reportArgumentType]


@every_class
def test_a_closure_may_give_a_parameter_other_memory(make):
    """As recurrent layers do that flatten their weights on a GPU; steps went into the memory of before."""
    p, q = leaf(3.0, 4.0), leaf(3.0, 4.0)

    def closure():
        with torch.no_grad():
            p.set_(p.detach().clone())
        return bowl(p)

    optimizer, reference = make([p], max_iter=8), make([q], max_iter=8)
    assert torch.equal(optimizer.step(closure), reference.step(lambda: bowl(q)))
    assert torch.equal(p, q)
    assert_left_at(optimizer.step(closure), lambda: bowl(p), [p])


def test_parameters_that_share_memory_are_refused():
    memory = torch.ones(4, 3)
    shared = [nn.Parameter(memory), nn.Parameter(torch.ones(2)), nn.Parameter(memory)]
    for params, names in [
        (shared, "parameters 0 and 2 share memory"),
        ([nn.Parameter(memory[:3]), nn.Parameter(memory[2:])], "parameters 0 and 1 share memory"),
        ([nn.Parameter(memory), nn.Parameter(memory.T)], "parameters 0 and 1 share memory"),
        ([nn.Parameter(torch.ones(1).expand(3))], r"parameter 0 of shape \(3,\) is expanded"),
    ]:
        optimizer = signedstep.LSR1(params)
        with pytest.raises(ValueError, match=names):
            optimizer.step(lambda: bowl(*params))  # noqa: B023


@every_class
@pytest.mark.filterwarnings("ignore:optimizer contains a parameter group with duplicate parameters")
def test_a_parameter_that_is_given_twice_counts_once(make):
    """As when the parameters of two modules with a tied weight are joined; torch only warns of it."""

    def run(*more):
        p, q = leaf(3.0, 4.0), leaf(5.0, -6.0, 7.0)
        optimizer = make([p, q, *[p] * len(more)], max_iter=4)
        return [optimizer.step(lambda: bowl(p, q)).item() for _ in range(3)], optimizer.state_dict()["state"]

    losses, state = run("again")
    assert losses == run()[0]
    assert len(state) == 1


def test_parameters_in_one_memory_that_do_not_meet():
    for params in (
        [nn.Parameter(part) for part in torch.full((9,), 3.0).split([4, 0, 5])],
        [nn.Parameter(torch.full((8,), 3.0)[::2]), nn.Parameter(torch.full((8,), 3.0)[1::2])],
        [nn.Parameter(part) for part in torch.view_as_real(torch.full((4,), 3 + 3j)).unbind(-1)],
        [nn.Parameter(torch.full((3, 4), 3.0).T)],
    ):
        assert signedstep.LSR1(params).step(lambda: bowl(*params)) < 1e-6  # noqa: B023


def test_no_parameters_at_all_are_named():
    with pytest.raises(ValueError, match="no parameter group of this optimizer holds a parameter"):
        signedstep.LBFGS([{"params": []}]).step(lambda: torch.ones(()))


@pytest.mark.skipif(
    not hasattr(torch.Tensor, "grad_dtype"), reason="this torch has gradients like their parameters only"
)
@pytest.mark.parametrize("make", [*CLASSES, signedstep.Mix])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("of_gradient", [torch.bfloat16, torch.float32, torch.float64])
def test_gradients_may_have_another_precision(make, dtype, of_gradient):
    p, q = leaf(3.0, 4.0, dtype=dtype), leaf(2.5, dtype=dtype)
    p.grad_dtype = of_gradient
    optimizer = make([p, q], max_iter=8)
    before = bowl(p, q).item()
    for _ in range(3):
        after = optimizer.step(lambda: bowl(p, q)).item()
    assert after < 0.1 * before
    assert (p.dtype, p.grad.dtype, q.grad.dtype) == (dtype, of_gradient, dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_a_closure_may_change_the_precision_of_its_model(dtype):
    """Numbers of the old precision were written into the memory of the new one, and beyond it."""
    torch.manual_seed(0)
    net, x = nn.Linear(300, 50, bias=False), torch.randn(8, 300).to(dtype)
    optimizer = signedstep.LBFGS(net.parameters(), line_search_fn="strong_wolfe")

    def closure():
        net.to(dtype)
        optimizer.zero_grad()
        loss = net(x).float().square().mean()
        loss.backward()
        return loss

    before = closure().item()
    for _ in range(3):
        returned = optimizer.step(closure).item()
    assert returned == pytest.approx(closure().item(), abs=1e-6)
    assert returned < 1e-3 * before


def test_a_parameter_that_changes_its_size_within_a_step_is_a_failed_trial():
    p, calls = leaf(*torch.linspace(1, 2, 100).tolist()), []

    def closure():
        calls.append(1)
        if len(calls) == 2:
            p.data = torch.randn(10, dtype=torch.float64)
        return bowl(p)

    with pytest.raises(RuntimeError, match="a parameter has changed its size within a step"):
        signedstep.LBFGS([p]).step(closure)


@pytest.mark.parametrize("method", ["newton-cg", "newton-cg/flip", "newton-cg/clip", "newton-cg/cubic"])
def test_parameters_that_the_loss_does_not_depend_on_stay_where_negative_curvature_is_looked_for(method):
    """A random vector was part of what was found, and so of the step."""
    looked = 0
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        w = nn.Parameter(2 * torch.randn(4, generator=generator, dtype=torch.float64))
        idle = leaf(1.0, 2.0, 3.0)
        optimizer = signedstep.SecondOrder([w, idle], method, max_iter=5, max_eval=1000)
        for _ in range(6):
            optimizer.step(lambda w=w: 0.1 * (w**4).sum() - w.prod() + torch.cos(3 * w).sum())
        looked += optimizer._engine.curvature._probe is not None
        assert idle.tolist() == pytest.approx([1.0, 2.0, 3.0], abs=1e-9)
    assert looked


def test_a_parameter_without_a_gradient_has_none_afterwards():
    """Zeros in its place let another optimizer decay it now and then."""
    p, idle = leaf(3.0, 4.0), leaf(1.0, 1.0)
    optimizer = signedstep.LBFGS([p, idle], line_search_fn="strong_wolfe", max_iter=1, max_linesearch=2, c2=1e-3)
    for _ in range(8):
        optimizer.step(lambda: ((p - 1) ** 4).sum() + p.prod() + 5 * torch.sin(20 * p).sum())
        assert idle.grad is None


@pytest.mark.parametrize("make", CLASSES)
def test_lazy_modules_get_their_shapes_from_the_first_call(make):
    x = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    net = nn.Sequential(nn.LazyLinear(5), nn.Tanh(), nn.LazyLinear(1))
    optimizer = make(net.parameters())
    loss = lambda: (net(x) - x.sum(1, keepdim=True)).square().mean()  # noqa: E731
    first = optimizer.step(loss).item()
    assert optimizer.step(loss).item() <= first < 1
    assert optimizer.state_dict()["state"][0]["func_evals"] == optimizer.n_evals


def test_the_dict_of_a_group_stays_the_users():
    p, q = leaf(3.0), leaf(4.0)
    first, second = {"params": [p], "lr": 1.0}, {"params": [q]}
    optimizer = signedstep.LBFGS([first])
    optimizer.add_param_group(second)
    assert optimizer.param_groups[0] is first
    assert optimizer.param_groups[1] is second
    first["lr"] = second["lr"] = 0.1
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.1]
