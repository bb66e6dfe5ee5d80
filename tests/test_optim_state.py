"""Saving and going on: state dicts, copies and pickles of the torch.optim front."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch

import signedstep
from training import CLASSES, Counted, assert_same, bowl, copies, fit, leaf, model

every_class = pytest.mark.parametrize("make", CLASSES)
KINDS = [
    *((make, {}) for make in CLASSES),
    (signedstep.LSR1, {"globalization": "wolfe+-"}),
    (signedstep.LSR1, {"globalization": "clip", "history_size": 3}),
    (signedstep.LSR1, {"globalization": "damp", "line_search_fn": "armijo"}),
    (signedstep.LBFGS, {"globalization": "flip", "history_size": 4}),
    (signedstep.LBFGS, {"line_search_fn": "strong_wolfe"}),
    (signedstep.SR1, {"globalization": "flip"}),
    (signedstep.SR1, {"globalization": "damp-dense"}),
    (signedstep.BFGS, {"gamma": 2.0}),
    (signedstep.SecondOrder, {}),
    (signedstep.SecondOrder, {"method": "gd"}),
]
every_kind = pytest.mark.parametrize(
    ("make", "options"), KINDS, ids=["-".join(map(str, (m.__name__, *o.values()))) for m, o in KINDS]
)
STEPS = 7


def on_disk(saved):
    """Through a file, read as safely as torch reads."""
    file = io.BytesIO()
    torch.save(saved, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def exact(saved):
    """A state dict spelled out, to be compared bit for bit."""
    if isinstance(saved, dict):
        return {name: exact(value) for name, value in saved.items()}
    if isinstance(saved, list):
        return [exact(value) for value in saved]
    return f"{saved.dtype} {saved.tolist()}" if isinstance(saved, torch.Tensor) else repr(saved)


def started(make, options, dtype=torch.float64, **more):
    net = model(dtype=dtype)
    return net, make(net.parameters(), **{"max_iter": 2, **options, **more})


def seen(net, optimizer, steps):
    """Losses, counts and gradients of some steps: whatever could differ."""
    for _ in range(steps):
        loss = optimizer.step(Counted(fit(net), optimizer)).item()
        grads = [p.grad.sum().item() for p in net.parameters() if p.grad is not None]
        yield loss, optimizer.n_evals, optimizer.status, grads


@every_kind
@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_resuming_at_any_step_is_exact(make, options, reuse, dtype):
    net, optimizer = started(make, options, dtype, reuse=reuse)
    saved = []
    whole = []
    for _ in range(STEPS):
        saved.append(on_disk({"model": net.state_dict(), "optimizer": optimizer.state_dict()}))
        whole += seen(net, optimizer, 1)
    for at, checkpoint in enumerate(saved):
        other, resumed = started(make, {**options, "max_iter": 9}, dtype)
        other.load_state_dict(checkpoint["model"])
        resumed.load_state_dict(checkpoint["optimizer"])
        for step in range(at, STEPS):
            assert list(seen(other, resumed, 1)) == whole[step : step + 1], at
            assert step + 1 == STEPS or exact(resumed.state_dict()["state"]) == exact(
                saved[step + 1]["optimizer"]["state"]
            )
        assert_same(other.parameters(), net.parameters())


@every_kind
@pytest.mark.parametrize("how", [copy.deepcopy, lambda both: pickle.loads(pickle.dumps(both))], ids=["copy", "pickle"])
def test_copies_of_model_and_optimizer_go_on_together_and_apart(make, options, how):
    net, optimizer = started(make, options)
    list(seen(net, optimizer, 3))
    other, copied = how((net, optimizer))
    assert copied.param_groups[0]["params"][0] is next(other.parameters())
    before = copies(other.parameters())
    rest = list(seen(net, optimizer, 3))
    assert_same(other.parameters(), before)
    assert list(seen(other, copied, 3)) == rest
    assert_same(net.parameters(), other.parameters())


@every_class
@pytest.mark.parametrize("again", [False, True], ids=["once", "twice"])
def test_a_snapshot_is_not_changed_by_later_steps(make, again):
    net, optimizer = started(make, {})
    list(seen(net, optimizer, 2))
    saved = optimizer.state_dict()
    before = on_disk(saved)
    list(seen(net, optimizer, 2))
    if again:
        optimizer.state_dict()
        list(seen(net, optimizer, 1))
    assert exact(saved) == exact(before)


@every_class
def test_a_snapshot_is_not_changed_by_those_who_load_it(make):
    net, optimizer = started(make, {})
    list(seen(net, optimizer, 2))
    saved = optimizer.state_dict()
    before, weights = on_disk(saved), copy.deepcopy(net.state_dict())
    runs = []
    for _ in range(2):
        other, resumed = started(make, {})
        other.load_state_dict(weights)
        resumed.load_state_dict(saved)
        runs.append(list(seen(other, resumed, 3)))
    assert exact(saved) == exact(before)
    assert runs[0] == runs[1]


@every_class
def test_the_counters_of_torch_are_in_the_state(make):
    net, optimizer = started(make, {}, max_iter=3, max_eval=50)
    assert optimizer.state_dict()["state"] == {}
    for steps in (1, 2):
        list(seen(net, optimizer, 1))
        state = optimizer.state_dict()["state"][0]
        assert (state["n_iter"], state["func_evals"]) == (3 * steps, optimizer.n_evals)
    assert not any(isinstance(v, torch.Tensor) for s in optimizer.state.values() for v in s.values())
    assert set(optimizer.state[net[0].weight]) == {"n_iter", "func_evals"}, "saving does not keep a second copy"


def test_loading_before_and_after_the_first_step():
    net, optimizer = started(signedstep.LSR1, {})
    fresh = optimizer.state_dict()
    first = list(seen(net, optimizer, 2))
    net.load_state_dict(model().state_dict())
    optimizer.load_state_dict(fresh)
    assert (optimizer.n_evals, len(optimizer.history)) == (0, 0)
    assert list(seen(net, optimizer, 2)) == first, "back at the beginning"


def test_a_loaded_state_may_be_saved_again_at_once():
    net, optimizer = started(signedstep.LSR1, {})
    list(seen(net, optimizer, 3))
    saved = optimizer.state_dict()
    _, other = started(signedstep.LSR1, {})
    other.load_state_dict(saved)
    assert exact(other.state_dict()) == exact(saved)
    assert other.n_evals == optimizer.n_evals


@every_class
@pytest.mark.parametrize(("old", "new"), [(torch.float32, torch.float64), (torch.float64, torch.float32)])
def test_a_checkpoint_of_another_precision_goes_on(make, old, new):
    net, optimizer = started(make, {}, old, max_iter=10)
    list(seen(net, optimizer, 1))
    other, resumed = started(make, {}, new)
    other.load_state_dict(net.state_dict())
    resumed.load_state_dict(on_disk(optimizer.state_dict()))
    loss = fit(other)().item()
    returned = resumed.step(fit(other))
    assert returned.dtype == new
    assert returned < loss
    assert resumed.history.cosine[0] < 0.999, "what was learned is still there"
    assert resumed.state_dict()["state"][0]["engine"]["x"].dtype == new


@every_class
def test_parameters_that_are_not_those_of_the_checkpoint_are_used_as_they_are(make):
    net, optimizer = started(make, {})
    list(seen(net, optimizer, 2))
    other = model(seed=5)
    resumed = make(other.parameters())
    resumed.load_state_dict(optimizer.state_dict())
    closure = Counted(fit(other))
    returned = resumed.step(closure)
    assert closure.values[0] == fit(model(seed=5))().item()
    assert returned < closure.values[0]


def refused(target, saved, words):
    before = on_disk(target.state_dict())
    with pytest.raises(ValueError, match=words):
        target.load_state_dict(saved)
    assert exact(target.state_dict()) == exact(before)


@pytest.mark.parametrize("steps", [0, 1])
def test_other_methods_are_refused(steps):
    net, target = started(signedstep.LSR1, {})
    list(seen(net, target, 1))
    others = [started(signedstep.LBFGS, {}), started(signedstep.LSR1, {"globalization": "wolfe+-"})]
    for other, optimizer in others:
        list(seen(other, optimizer, steps))
        refused(target, optimizer.state_dict(), "is of the method 'l.*', the optimizer's is 'lsr1/flip'")
    same = signedstep.SecondOrder(net.parameters(), "lsr1/flip")
    same.step(fit(net))
    target.load_state_dict(same.state_dict())
    assert target.step(fit(net)) < 1


@pytest.mark.parametrize("make", [torch.optim.LBFGS, torch.optim.SGD, torch.optim.Adam])
@pytest.mark.parametrize("steps", [0, 1])
def test_other_optimizers_are_refused(make, steps):
    net, target = started(signedstep.LBFGS, {})
    optimizer = make(net.parameters())
    for _ in range(steps):
        optimizer.step(Counted(fit(net), optimizer))
    refused(target, optimizer.state_dict(), "another optimizer than LBFGS")


@pytest.mark.parametrize(
    "other",
    [
        lambda: [leaf(1.0, 2.0, 3.0), leaf(4.0)],
        lambda: [leaf(4.0, 5.0), leaf(1.0, 2.0, 3.0)],
        lambda: [torch.zeros(3, 1, dtype=torch.float64, requires_grad=True), leaf(4.0, 5.0)],
        lambda: [leaf(1.0, 2.0, 3.0, dtype=torch.complex64), leaf(4.0, 5.0)],
        lambda: [leaf(1.0, 2.0, 3.0), leaf(4.0, 5.0).requires_grad_(False)],
        lambda: [leaf(1.0, 2.0, 3.0), leaf(4.0, 5.0), leaf(6.0)],
    ],
    ids=["shorter", "swapped", "reshaped", "complex", "frozen", "one more"],
)
def test_other_layouts_are_refused(other):
    first, second = [leaf(1.0, 2.0, 3.0), leaf(4.0, 5.0)], other()
    optimizer, target = signedstep.LSR1(first, max_iter=2), signedstep.LSR1(second, max_iter=2)
    optimizer.step(lambda: bowl(*first))
    target.step(lambda: bowl(*second))
    refused(target, optimizer.state_dict(), "shapes|size")
    refused(optimizer, target.state_dict(), "shapes|size")


def test_auto_keeps_the_method_that_it_chose():
    """`auto` may choose something else in another version; a saved run goes on with what it had."""
    net = model()
    optimizer = signedstep.SecondOrder(net.parameters(), history_size=50, max_iter=2)
    optimizer.step(fit(net))
    saved = optimizer.state_dict()
    assert saved["state"][0]["method"] == "mix/wolfe"
    other = signedstep.SecondOrder(net.parameters())
    other.load_state_dict(saved)
    assert other.step(fit(net)) == optimizer.step(fit(net)) or other.history.k[0] == 3


def test_schedulers_and_tensor_rates_are_saved_with_the_groups():
    net, optimizer = started(signedstep.LSR1, {"lr": torch.tensor(0.5)})
    list(seen(net, optimizer, 2))
    saved = on_disk(optimizer.state_dict())
    other, resumed = copy.deepcopy(net), None
    resumed = signedstep.LSR1(other.parameters())
    resumed.load_state_dict(saved)
    assert float(resumed.param_groups[0]["lr"]) == 0.5
    assert list(seen(other, resumed, 2)) == list(seen(net, optimizer, 2))


def test_the_repr_shows_the_options():
    assert "method: lsr1" in repr(signedstep.LSR1([leaf(1.0)]))


def test_a_checkpoint_of_pairs_that_are_no_use_in_another_precision_goes_on():
    """What float64 tells apart may be rounding in float32."""
    d = torch.tensor([1.0, 1.001, 5.0], dtype=torch.float64)

    def loss(p):
        return lambda: 0.5 * (d * p.double() ** 2).sum() + 0.01 * (p.double() ** 4).sum()

    p = torch.ones(3, dtype=torch.float64, requires_grad=True)
    optimizer = signedstep.LSR1([p], max_iter=5)
    optimizer.step(loss(p))
    q = p.detach().float().requires_grad_()
    again = signedstep.LSR1([q], max_iter=5)
    again.load_state_dict(optimizer.state_dict())
    before = loss(q)().item()
    assert again.step(loss(q)) < before


@pytest.mark.parametrize("change", ["unfreeze", "freeze", "group", "history_size", "c2"])
@every_class
def test_a_checkpoint_after_a_change_of_parameters_or_options_goes_on(make, change):
    """The model starts again there; counters are kept, and who loads it does what the other does."""

    def changed(net, optimizer):
        if change == "group":
            optimizer.add_param_group({"params": list(net[2].parameters())})
        elif change in ("history_size", "c2"):
            optimizer.param_groups[0][change] = {"history_size": 3, "c2": 0.5}[change]
        else:
            net[0].requires_grad_(change == "unfreeze")

    net = model()
    net[0].requires_grad_(change != "unfreeze")
    optimizer = make(net[0].parameters() if change == "group" else net.parameters(), max_iter=6, c2=0.9)
    list(seen(net, optimizer, 1))
    done = optimizer.state_dict()["state"][0]["n_iter"]
    changed(net, optimizer)
    saved, other = on_disk(optimizer.state_dict()), copy.deepcopy(net)
    assert saved["state"][0]["n_iter"] == done
    groups = [{"params": list(part.parameters())} for part in (other[0], other[2])]
    again = make(groups if change == "group" else other.parameters(), max_iter=6, c2=0.9)
    again.load_state_dict(saved)
    assert list(seen(other, again, 2)) == list(seen(net, optimizer, 2))
    assert optimizer.state_dict()["state"][0]["n_iter"] > done


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("change", ["replace", "reorder", "pop"])
def test_the_first_parameter_may_become_another_one(change, loaded):
    """The state is kept under it; what stayed under the one before could not be saved any more."""
    net = model()
    groups = [{"params": list(part.parameters())} for part in (net[0], net[2])]
    optimizer, saved = signedstep.LSR1(groups, max_iter=6), signedstep.LSR1(groups, max_iter=6)
    list(seen(net, optimizer, 1))
    if loaded:
        saved.load_state_dict(optimizer.state_dict())
        optimizer = saved
    done = optimizer.state_dict()["state"][0]["n_iter"]
    if change == "replace":
        net[0].weight = torch.nn.Parameter(net[0].weight.detach().clone())
        optimizer.param_groups[0]["params"][0] = net[0].weight
    elif change == "reorder":
        optimizer.param_groups.reverse()
    else:
        optimizer.param_groups.pop(0)
    assert optimizer.state_dict()["state"][0]["n_iter"] == done
    list(seen(net, optimizer, 1))
    assert list(optimizer.state) == [optimizer.param_groups[0]["params"][0]]
    assert optimizer.state_dict()["state"][0]["n_iter"] > done


@every_class
def test_clearing_the_state_starts_the_curvature_again(make):
    """So one does with `torch.optim.LBFGS`."""
    net, optimizer = started(make, {}, max_iter=6)
    list(seen(net, optimizer, 1))
    optimizer.state.clear()
    other = copy.deepcopy(net)
    new = make(other.parameters(), max_iter=6)
    assert [loss for loss, *_ in seen(net, optimizer, 2)] == [loss for loss, *_ in seen(other, new, 2)]
    assert optimizer.n_evals > new.n_evals


@every_class
def test_options_of_a_loaded_optimizer_may_be_changed(make):
    net, optimizer = started(make, {}, max_iter=12)
    list(seen(net, optimizer, 1))
    again = make(net.parameters(), max_iter=12)
    again.load_state_dict(optimizer.state_dict())
    again.param_groups[0]["history_size"] = 5
    (loss, *_), *_ = seen(net, again, 1)
    assert loss <= optimizer.history.f[-1]
    assert again.state_dict()["state"][0]["n_iter"] > optimizer.state_dict()["state"][0]["n_iter"]


@pytest.mark.parametrize("option", ["maximize", "reuse", "line_search_fn", "tolerance_change"])
def test_an_option_that_is_younger_than_the_state_has_its_default(option):
    net, optimizer = started(signedstep.LBFGS, {}, max_iter=4)
    list(seen(net, optimizer, 1))
    saved = optimizer.state_dict()
    del saved["param_groups"][0][option]
    again = signedstep.LBFGS(net.parameters(), max_iter=4)
    again.load_state_dict(saved)
    start = copies(net.parameters())
    went_on = list(seen(net, optimizer, 1))
    with torch.no_grad():
        for p, value in zip(net.parameters(), start, strict=True):
            p.copy_(value)
    assert list(seen(net, again, 1)) == went_on


@every_class
def test_tolerances_and_limits_are_read_at_each_step(make):
    net, optimizer = started(make, {}, max_iter=3)
    list(seen(net, optimizer, 1))
    learned = optimizer.state_dict()["state"][0]["n_iter"]
    optimizer.param_groups[0].update(tolerance_grad=1e3)
    list(seen(net, optimizer, 1))
    assert optimizer.status is signedstep.Status.GRADIENT
    assert optimizer.state_dict()["state"][0]["n_iter"] == learned


def test_a_method_changed_in_the_group_is_the_method_of_the_next_step():
    net, optimizer = started(signedstep.LSR1, {})
    list(seen(net, optimizer, 1))
    optimizer.param_groups[0]["method"] = "lbfgs"
    list(seen(net, optimizer, 1))
    assert optimizer.state_dict()["state"][0]["method"] == "lbfgs/wolfe"


@pytest.mark.parametrize("save", [copy.deepcopy, pickle.dumps, lambda optimizer: optimizer.state_dict()])
def test_saving_leaves_nothing_behind(save):
    p = leaf(3.0, 4.0)
    optimizer = signedstep.LSR1([p], max_iter=3)
    optimizer.step(lambda: bowl(p))
    before = dict(optimizer.state[p])
    save(optimizer)
    assert optimizer.state[p] == before
    assert set(before) == {"n_iter", "func_evals"}


def test_how_small_nothing_is_goes_with_the_state():
    """What is left of a loss that has nearly come to 0 is rounding; that depends on the loss at the start."""
    p = leaf(3.0, 4.0)
    optimizer = signedstep.LSR1([p], max_iter=3)
    optimizer.step(lambda: bowl(p))
    other = signedstep.LSR1([p], max_iter=3)
    other.load_state_dict(optimizer.state_dict())
    other.step(lambda: bowl(p))
    assert other._engine._nothing == optimizer._engine._nothing > 0


def test_numbers_of_numpy_can_be_saved_and_read_safely():
    """`tolerance_change=1.0 * np.finfo(float).eps` stands in many programs for PINNs."""
    net = model()
    options = {"tolerance_change": 1.0 * np.finfo(float).eps, "history_size": np.int64(7), "lr": np.float64(0.5)}
    optimizer = signedstep.LSR1([{"params": list(net.parameters()), "max_iter": np.int64(3)}], **options)
    optimizer.step(fit(net))
    group = on_disk(optimizer.state_dict())["param_groups"][0]
    assert {name: group[name] for name in options} == options
    assert group["max_iter"] == 3


def test_what_others_keep_beside_the_state_stays_and_is_saved():
    """As programs do that average weights around an optimizer."""
    p, q = leaf(3.0, 3.0), leaf(3.0)

    def averaged(optimizer, params, steps):
        for _ in range(steps):
            optimizer.step(lambda: ((params[0] - 2) ** 4).sum() + ((params[1] - 2) ** 4).sum())
            for each in params:
                slow = optimizer.state[each].setdefault("slow", each.detach().clone())
                slow += 0.5 * (each.detach() - slow)
                each.data.copy_(slow)

    optimizer = signedstep.LBFGS([p, q], max_iter=1)
    averaged(optimizer, [p, q], 6)
    assert p[0] == q[0]
    saved, others = on_disk(optimizer.state_dict()), [leaf(*p.tolist()), leaf(*q.tolist())]
    resumed = signedstep.LBFGS(others, max_iter=1)
    resumed.load_state_dict(saved)
    assert resumed.state[others[1]]["slow"] == optimizer.state[q]["slow"]
    averaged(optimizer, [p, q], 3)
    averaged(resumed, others, 3)
    assert_same([p, q], others)


def test_a_snapshot_keeps_its_learning_rate():
    net = model()
    optimizer = signedstep.LSR1(net.parameters(), lr=torch.tensor(0.5))
    snapshot = optimizer.state_dict()
    optimizer.param_groups[0]["lr"].fill_(0.1)
    assert snapshot["param_groups"][0]["lr"] == 0.5


def test_what_others_keep_may_have_any_name():
    p, q = leaf(3.0), leaf(4.0)
    optimizer = signedstep.LSR1([p, q], max_iter=2)
    optimizer.state[p]["shape"], optimizer.state[q]["shape"] = (1,), (1,)
    optimizer.step(lambda: bowl(p, q))
    assert optimizer.state[p]["shape"] == optimizer.state[q]["shape"] == (1,)
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.step(lambda: bowl(p, q))


def test_lazy_modules_before_their_first_call():
    net = torch.nn.LazyLinear(2)
    optimizer = signedstep.LSR1(net.parameters())
    assert optimizer.state_dict()["state"] == {}
    copy.deepcopy(optimizer)
    with pytest.raises(ValueError, match="call it once first"):
        signedstep.LSR1(net.parameters()).load_state_dict(optimizer.state_dict())
