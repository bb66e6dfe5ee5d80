"""Sums over n against float64 references, at lengths around the sizes of blocks and stretches, in C and by torch."""

import math

import numpy as np
import pytest
import torch

from signedstep import native
from signedstep.space import Space

LENGTHS = [0, 1, 3, 4095, 4097, 8191, 8192, 8193, 12289, 20001, 2**17, 2**17 + 1, 2**18 + 5, 2**20 + 5]


@pytest.fixture(params=["C", "torch"], autouse=True)
def made_by(request, monkeypatch):
    """Who makes the passes."""
    if request.param == "torch":
        monkeypatch.setattr(native, "_native", None)
    elif not native.available():
        pytest.skip("the passes in C were not built: is there a C compiler?")


def vectors(rows: int, n: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(rows, n, generator=torch.Generator().manual_seed(n), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("n", LENGTHS)
def test_inner_products(n, dtype):
    A, B = vectors(4, n, dtype), vectors(3, n, dtype) + 0.1
    exact = (A.double() @ B.double().T).numpy()
    sizes = np.outer(A.double().norm(dim=1), B.double().norm(dim=1)) + 1e-300
    tolerance = 30 * torch.finfo(dtype).eps
    space = Space()
    assert (np.abs(space.inner(A, list(B)) - exact) <= tolerance * sizes).all()
    assert (np.abs(space.inner(A, [B[0]]) - exact[:, :1]) <= tolerance * sizes[:, :1]).all()
    assert (np.abs(np.array(space.dots(A[0], list(B))) - exact[0]) <= tolerance * sizes[0]).all()
    assert space.inner(A, list(B)).dtype == np.float64


@pytest.mark.parametrize("n", LENGTHS)
def test_linear_combinations(n, dtype):
    A, v = vectors(5, n, dtype), vectors(6, n, dtype)[-1]
    c = np.array([1.0, -2.0, 0.5, 3.0, 0.0])
    exact = torch.from_numpy(c) @ A.double() - 0.7 * v.double()
    before = v.clone()
    result = Space().combine(c, A, -0.7, v)
    assert result.dtype == dtype
    assert torch.allclose(result.double(), exact, rtol=0, atol=50 * torch.finfo(dtype).eps)
    assert torch.equal(v, before)


def test_squares_outside_the_range_of_float32():
    space = Space()
    for size in (1e25, 1e-25):
        v = torch.full((3,), size, dtype=torch.float32)
        assert space.square(v) == pytest.approx(3 * size**2, rel=1e-6)


def test_a_remembered_square_belongs_to_its_vector():
    space = Space()
    a, *others = (torch.full((3,), float(i)) for i in range(1, 7))
    space.remember(a, 7.0)
    assert (space.square(a), space.square(others[0]), space.square(a)) == (7.0, 12.0, 7.0)
    space.remember(a, 8.0)
    assert [space.square(v) for v in (a, *others, a)] == [8.0, 12.0, 27.0, 48.0, 75.0, 108.0, 3.0]


def test_largest_entry():
    space = Space()
    assert space.largest(torch.tensor([1.0, -3.0, 2.0])) == 3.0
    assert space.largest(torch.zeros(0)) == 0.0
    assert np.isnan(space.largest(torch.tensor([1.0, float("nan")])))
    assert space.largest(torch.tensor([-float("inf"), 1.0])) == np.inf


@pytest.mark.parametrize("t", [1e300, -1e300])
def test_a_step_beyond_the_precision_is_the_longest_there_is(t):
    """Where gradients underflow, steps may be longer than float32 can say."""
    x, p = torch.zeros(2), torch.tensor([1e-40, 0.0])
    assert Space().moved(x, p, t).tolist() == pytest.approx([math.copysign(3.4e-2, t), 0.0], rel=1e-2)


@pytest.mark.parametrize("n", [5, 30_000])
@pytest.mark.parametrize("size", [1e-25, 1e25])
def test_products_outside_the_range_of_float32(n, size):
    """A row and a vector in a range that their products leave; those of another vector in the same call stay right."""
    A, b = torch.rand(3, n) * size, torch.rand(n)
    found = Space().inner(A, [b, b * size])
    exact = A.double() @ torch.stack([b, b * size], 1).double()
    np.testing.assert_allclose(found, exact.numpy(), rtol=1e-4)


def test_tiny_rows_meet_small_vectors():
    """Products below the range of float32, of vectors whose own squares are within it."""
    A, v = torch.rand(3, 50) * 1e-35, torch.rand(50) * 1e-14
    np.testing.assert_allclose(Space().inner(A, [v]), (A.double() @ v.double()[:, None]).numpy(), rtol=1e-5)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 7])
@pytest.mark.parametrize("trial", [False, True])
def test_products_of_differences(n, rows, trial, dtype):
    """V A' of the first vectors and V V' of all of them, as a new pair needs them."""
    A, (g, g_old, x, x_old) = vectors(rows, n, dtype), vectors(4, n, dtype) + 0.1
    V, made = [(g, None), (g, g_old), (x, x_old)], [g, g - g_old, x - x_old]
    if trial:
        V, made = [*V, (g_old, None)], [*made, g_old]
    VA, VV = Space().grams(A, V, 2)
    V = torch.stack(made).double()
    sizes, tolerance = V.norm(dim=1).numpy() + 1e-300, 100 * torch.finfo(dtype).eps
    exact = (V @ torch.cat((A.double(), V)).T).numpy()
    assert VA.shape == (2, rows)
    assert (np.abs(VA - exact[:2, :rows]) <= tolerance * np.outer(sizes[:2], A.double().norm(dim=1) + 1e-300)).all()
    assert (np.abs(VV - exact[:, rows:]) <= tolerance * np.outer(sizes, sizes)).all()


@pytest.mark.parametrize("size", [1e-25, 1e25])
def test_differences_outside_the_range_of_float32(size):
    A, V = torch.rand(3, 50), torch.rand(3, 50) * torch.tensor([[1.0], [size], [1.0]])
    VA, VV = Space().grams(A, [(v, None) for v in V], 2)
    exact = V.double() @ torch.cat((A, V)).double().T
    np.testing.assert_allclose(VA, exact[:2, :3].numpy(), rtol=1e-5)
    np.testing.assert_allclose(VV, exact[:, 3:].numpy(), rtol=1e-5)


@pytest.mark.parametrize("n", LENGTHS)
def test_differences_are_written_where_they_stay(n, dtype):
    rows, (a, b, c, d) = vectors(5, n, dtype), vectors(4, n, dtype)
    beside = rows[[0, 2, 4]].clone()
    Space().write_differences(0.3, (a, b, rows[1]), (c, d, rows[3]))
    assert torch.equal(rows[1], (a - b) * 0.3)
    assert torch.equal(rows[3], (c - d) * 0.3)
    assert torch.equal(rows[[0, 2, 4]], beside)


@pytest.mark.parametrize("n", [*LENGTHS, 400_003])
def test_products_that_come_with_a_combination_are_those_that_would_be_summed(n, dtype):
    """To the last digit, and only for the two vectors that they belong to."""
    space, A, (v, w) = Space(), vectors(5, n, dtype), vectors(2, n, dtype) + 0.1
    p = space.combine(np.array([1.0, -2.0, 0.5, 3.0, 0.0]), A, -0.7, v)
    assert space.dots(p, (v, p)) == Space().dots(p, (v, p))
    assert space.dots(p, (w, p)) == Space().dots(p, (w, p))
    assert space.dots(w, (v, p)) == Space().dots(w, (v, p))
    assert space.dots(p.clone(), (v, p)) == Space().dots(p, (v, p))


def test_autocast_does_not_touch_sums(dtype):
    A, v = vectors(3, 5000, dtype), vectors(1, 5000, dtype)[0]
    c = np.array([1.0, -2.0, 0.5])
    exact = Space().inner(A, [v]), Space().combine(c, A, 0.1, v)
    with torch.autocast("cpu", torch.bfloat16):
        found = Space().inner(A, [v]), Space().combine(c, A, 0.1, v)
    assert (found[0] == exact[0]).all()
    assert torch.equal(found[1], exact[1])
