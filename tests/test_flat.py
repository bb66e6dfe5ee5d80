"""The flat vector: any list of tensors goes in and comes out."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from signedstep.flat import Flat

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128]


@st.composite
def parameters(draw):
    """Tensors of any shape, precision and stride, some of them frozen."""
    torch.manual_seed(draw(st.integers(0, 100)))
    params = []
    for _ in range(draw(st.integers(0, 6))):
        shape = draw(st.lists(st.integers(0, 4), max_size=3))
        p = torch.randn([*shape, 2]).to(draw(st.sampled_from(DTYPES)))[..., draw(st.integers(0, 1))]
        p = p if draw(st.booleans()) else p.permute(tuple(reversed(range(p.dim()))))
        params.append(p.detach().requires_grad_(draw(st.booleans()) or draw(st.booleans())))
    return params


def numbers(tensors, dtype):
    """The reference: a Python loop."""
    parts = [torch.view_as_real(t).reshape(-1) if t.is_complex() else t.reshape(-1) for t in tensors]
    return torch.cat([torch.zeros(0, dtype=dtype), *(part.to(dtype) for part in parts)])


@given(parameters())
def test_parameters_go_in_and_come_out(params):
    flat = Flat(params)
    free = [p.detach() for p in params if p.requires_grad]
    frozen = [p.clone() for p in params if not p.requires_grad]
    before = [p.clone() for p in free]
    x = flat.read()
    assert flat.dtype == x.dtype
    assert torch.equal(x, numbers(free, flat.dtype))
    assert flat.n == len(x)
    assert flat.holds(x)
    moved = x + 1
    flat.write(moved)
    assert flat.holds(moved)
    assert flat.holds(x) == (flat.n == 0)
    for p, q in zip(free, before, strict=True):
        assert torch.equal(
            p, (q.to(x.dtype.to_complex()) + 1 + 1j if p.is_complex() else q.to(x.dtype) + 1).to(p.dtype)
        )
    flat.write(x)
    assert all(torch.equal(p, q) for p, q in zip(free, before, strict=True))
    assert all(torch.equal(p, q) for p, q in zip([p for p in params if not p.requires_grad], frozen, strict=True))
    assert torch.equal(x, numbers(free, flat.dtype)), "a copy, not a view"


@given(parameters(), st.data())
def test_gradients_go_in_and_come_out(params, data):
    flat = Flat(params)
    free = [p for p in params if p.requires_grad]
    for p in free:
        p.grad = data.draw(st.sampled_from([None, torch.ones_like(p), 2 * torch.ones_like(p).to_sparse()]))
    dense = [torch.zeros_like(p) if p.grad is None else p.grad.to_dense() for p in free]
    assert flat.has_grads() == any(p.grad is not None for p in free)
    given = [p.grad is not None for p in free]
    g = flat.read_grads()
    assert torch.equal(g, numbers(dense, flat.dtype))
    wanted = torch.arange(flat.n, dtype=flat.dtype)
    flat.write_grads(wanted)
    assert torch.equal(flat.read_grads(), wanted)
    for p, had in zip(free, given, strict=True):
        assert (p.grad is not None) == (had or bool(p.grad is not None and p.grad.any()))
        assert p.grad is None or (p.grad.dtype == p.dtype and p.grad.shape == p.shape)
    assert all(p.grad is None for p in params if not p.requires_grad)
    flat.clear_grads()
    assert not flat.has_grads()
    assert not flat.read_grads().any()


@pytest.mark.parametrize(
    ("dtypes", "widest"),
    [
        ([torch.bfloat16], torch.float32),
        ([torch.float16, torch.bfloat16], torch.float32),
        ([torch.float16, torch.float64], torch.float64),
        ([torch.complex64], torch.float32),
        ([torch.complex128, torch.float32], torch.float64),
        ([], torch.float32),
    ],
)
def test_the_vector_has_the_widest_precision(dtypes, widest):
    assert Flat(torch.ones(2, dtype=t, requires_grad=True) for t in dtypes).read().dtype == widest


def test_the_same_parameters_are_those_not_others_like_them():
    p, q = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    assert Flat([p, q]).same(Flat([p, q]))
    assert not Flat([p, q]).same(Flat([q, p]))
    assert not Flat([p, q]).same(Flat([p]))
    flat = Flat([p])
    p.data = p.data.double()
    assert not flat.same(Flat([p]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("sizes", [[5], [1, 0, 7], [70_000, 1, 0, 200_000, 4096], [1000] * 300])
def test_many_or_long_parameters_of_one_kind(sizes, threads, dtype):
    """They are copied in C where it was built, by several threads if they are long."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        params = [torch.randn(size, dtype=dtype, requires_grad=True) for size in sizes]
        flat = Flat(params)
        assert torch.equal(flat.read(), numbers([p.detach() for p in params], dtype))
        wanted = torch.randn(flat.n, dtype=dtype)
        flat.write(wanted)
        assert torch.equal(numbers([p.detach() for p in params], dtype), wanted)
        for p in params:
            p.grad = torch.randn_like(p)
        assert torch.equal(flat.read_grads(), numbers([p.grad for p in params], dtype))
    finally:
        torch.set_num_threads(before)


def test_a_graph_that_is_older_than_the_parameters_is_refused():
    """Autograd notices that numbers have changed which it keeps for a backward pass, as under torch's LBFGS."""
    p = torch.ones(3, requires_grad=True)
    loss = (p * p).sum()
    Flat([p]).write(torch.zeros(3))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_gradients_that_belong_to_a_graph_are_read_without_it():
    p = torch.ones(3, requires_grad=True)
    (p.grad,) = torch.autograd.grad((p**3).sum(), p, create_graph=True)
    assert p.grad.requires_grad
    with torch.enable_grad():
        assert not Flat([p]).read_grads().requires_grad
    p.grad = None  # the graph holds itself
