"""Memory for long vectors: used again, but never while somebody can still see what is in it."""

import gc
import weakref

import numpy as np
import pytest
import torch

from signedstep import minimize
from signedstep.room import Room
from signedstep.space import Space

LONG = 2**19
"""Numbers of 4 bytes from which memory is lent."""


def test_memory_is_used_again_when_a_vector_is_gone():
    room, v = Room(), torch.rand(LONG)
    first = room.copy(v)
    assert torch.equal(first, v)
    where = first.data_ptr()
    second = room.copy(v)
    assert second.data_ptr() != where
    del first
    third = room.like(v)
    assert third is not None
    assert third.data_ptr() == where
    assert torch.equal(second, v)


@pytest.mark.parametrize(
    "held",
    [
        lambda v: v[5:],
        lambda v: v.view(2, -1),
        lambda v: v.detach(),
        lambda v: v.numpy(),
        lambda v: np.asarray(v)[::2],
        lambda v: v.untyped_storage(),
        lambda v: torch.from_dlpack(v),
        lambda v: (v.requires_grad_() * 2).grad_fn,
    ],
    ids=["part", "view", "detached", "array", "strided array", "storage", "dlpack", "graph"],
)
def test_not_while_a_view_of_it_is_held(held):
    room, v = Room(), torch.ones(LONG)
    lent = room.copy(v)
    where, kept = lent.data_ptr(), held(lent)
    del lent
    gc.collect()
    busy = room.like(v)
    assert busy is not None
    assert busy.data_ptr() != where
    del kept
    gc.collect()
    again = room.like(v)
    assert again is not None
    assert again.data_ptr() == where


def test_vectors_outlive_the_room_and_do_not_keep_it():
    room = Room()
    kept, gone = room.copy(torch.ones(LONG)), room.copy(torch.ones(LONG))
    del gone
    (free,) = (weakref.ref(memory) for memories in room._free.values() for memory in memories)
    del room
    assert free() is None
    assert bool((kept == 1).all())
    del kept


def test_vectors_of_another_kind_get_memory_of_their_own():
    room = Room()
    room.copy(torch.ones(LONG))  # lent and given back
    for v in (torch.ones(LONG, dtype=torch.float64), torch.ones(2 * LONG), torch.ones(LONG)[None]):
        copy = room.copy(v)
        assert copy.dtype == v.dtype
        assert torch.equal(copy, v)


@pytest.mark.parametrize(
    "v",
    [torch.ones(1000), torch.ones(LONG, dtype=torch.bfloat16), torch.ones(LONG, device="meta"), torch.ones(0)],
    ids=["short", "half", "meta", "empty"],
)
def test_where_it_does_not_matter_torch_has_its_way(v):
    room = Room()
    assert room.like(v) is None
    assert room.copy(v).shape == v.shape


def test_under_another_default_device():
    v = torch.ones(LONG)
    with torch.device("meta"):
        assert torch.equal(Room().copy(v), v)


def test_new_points_are_new():
    space, v = Space(), torch.arange(LONG, dtype=torch.float32)
    moved = space.moved(v, v, 1.0)
    combined = space.combine(np.ones(1), v[None], 2.0, v)
    assert torch.equal(moved, 2 * v)
    assert torch.equal(combined, 3 * v)
    assert len({t.data_ptr() for t in (v, moved, combined)}) == 3


def test_what_a_function_has_been_given_stays_as_it_was():
    """A function may keep every x, and the caller every iterate and result."""
    d = torch.logspace(0, 2, LONG)
    given, sums = [], []

    def f(x):
        given.append(x)
        sums.append(x.double().sum().item())
        return 0.5 * (d * x).dot(x) - x.sum(), d * x - 1

    options = {"maxiter": 8, "history_size": 3, "return_all": True}
    first = minimize(f, torch.zeros(LONG), method="mix", jac=True, options=options)
    iterates = [x.double().sum().item() for x in first.allvecs]
    again = minimize(f, torch.zeros(LONG), method="mix", jac=True, options=options)
    assert [x.double().sum().item() for x in given] == sums
    assert [x.double().sum().item() for x in first.allvecs] == iterates
    assert torch.equal(first.x, again.x)
    assert torch.equal(first.x, first.allvecs[-1])
