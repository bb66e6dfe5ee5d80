"""The passes in C: what they may read, and that threads do not change a digit. Their sums: tests/test_space.py."""

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import torch

from signedstep import LeastSquares, minimize, native
from signedstep.native import small
from signedstep.space import Space

built = pytest.mark.skipif(not native.available(), reason="the passes in C were not built: is there a C compiler?")


@pytest.mark.skipif(
    not (shutil.which("cc") and Path(sysconfig.get_paths()["include"], "Python.h").exists()),
    reason="there is no C compiler, or no headers of Python",
)
def test_it_is_built_where_it_can_be():
    """An error in the C sources is a warning at installation, so somebody has to look."""
    assert native.available()
    assert small.available()


@pytest.mark.parametrize("name", ["MOST_VECTORS", "MOST_DIFFERENCES", "MOST_ROWS"])
def test_python_and_c_agree_on_how_much_a_call_takes(name):
    """The same names are written in both; C refuses what is more, and Python has to know beforehand."""
    sources = [path.read_text() for path in Path(native.__file__).parent.glob("*.[ch]")]
    (defined,) = [int(number) for text in sources for number in re.findall(rf"^#define {name} (\d+)", text, re.M)]
    assert defined == getattr(small if name == "MOST_ROWS" else native, name)


@pytest.fixture
def threads():
    """More threads than one, for the time of a test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def combined(c, A, scale, v):
    """A combination, with its products."""
    out = torch.empty_like(v)
    return native.combination(c, A, scale, v, out), out.tolist()


@built
@pytest.mark.parametrize("n", [3, 2048, 4097, 50_001, 400_003])
def test_threads_do_not_change_a_digit(n, dtype, threads):
    generator = torch.Generator().manual_seed(n)
    A, v = torch.randn(11, n, generator=generator, dtype=dtype), torch.randn(n, generator=generator, dtype=dtype)
    c = np.linspace(-1, 1, 11)
    found = []
    for count in (1, 2, 3):
        threads(count)
        VA, VV = native.grams(A, [(v, None), (v, A[0])], 2)
        found.append((VA.tolist(), VV.tolist(), native.dots(v, list(A[:3])), combined(c, A, 0.5, v)))
    assert found[0] == found[1] == found[2]


@built
def test_what_is_not_finite_stays_visible(dtype):
    """NaN and infinity anywhere in a row or a vector reach the sums that they belong to, and no others."""
    for n in (5, 16, 33, 5000):
        for bad in (float("nan"), float("inf")):
            for place in (0, n // 2, n - 1):
                A, v = torch.ones(6, n, dtype=dtype), torch.ones(n, dtype=dtype)
                A[2, place] = bad
                VA, VV = Space().grams(A, [(v, None)], 1)
                assert np.isfinite(VA[0]).tolist() == [True, True, False, True, True, True]
                assert np.isfinite(VV).all()
                out = Space().combine(np.ones(6), A, 1.0, v)
                assert torch.isfinite(out).sum() == n - 1
                v[place] = bad
                assert not np.isfinite(Space().grams(A, [(v, None)], 1)[1]).any()


@built
@pytest.mark.parametrize(
    "strange",
    [
        torch.ones(()).expand(8),
        torch.ones(16)[::2],
        torch.ones(8, dtype=torch.float64),
        torch.ones(8, dtype=torch.float16),
        torch.ones(9),
        torch.complex(torch.ones(8), torch.ones(8)).conj().imag,
        torch.ones(8, device="meta"),
    ],
    ids=["expanded", "strided", "double", "half", "long", "negative", "meta"],
)
def test_what_it_cannot_read_is_left_to_torch(strange):
    """Addresses are only handed over of vectors of one kind that lie in memory as they are."""
    A, v = torch.ones(2, 8), torch.ones(8)
    assert native.dots(v, [strange]) is None
    assert native.grams(A, [(v, strange)], 1) is None
    assert native.grams(A, [(strange, None)], 1) is None
    assert native.combination(np.ones(2), A, 1.0, strange, torch.empty(8)) is None
    assert native.combination(np.ones(2), A, 1.0, v, strange) is None
    assert native.scaled_differences(1.0, [(v, v, A[0]), (v, strange, A[1])]) is None
    assert native.grams(torch.ones(8, 2).T, [(v, None)], 1) is None
    assert native.dots(v, [v] * (native.MOST_VECTORS + 1)) is None
    assert native.gather(torch.ones(16), [v, strange]) is None
    assert native.gather(strange, [v]) is None
    assert native.scatter(torch.ones(16), [v, strange]) is None
    assert native.scatter(strange, [v]) is None


@built
@pytest.mark.parametrize(
    "c",
    [np.ones(2, np.float32), np.ones(2, int), np.ones(3), np.ones(4)[::2]],
    ids=["float32", "int", "long", "strided"],
)
def test_coefficients_are_as_many_float64_as_rows(c):
    assert native.combination(c, torch.ones(2, 8), 1.0, torch.ones(8), torch.empty(8)) is None


@built
def test_what_does_not_fit_is_refused():
    A, v = torch.ones(2, 8), torch.ones(8)
    assert native.grams(A, [(v, None)], 2) is None
    assert native.grams(A, [(v, v)] * 3, 1) is None
    assert native.grams(torch._neg_view(A), [(v, None)], 1) is None
    assert native.scaled_differences(1.0, [(v, v, A[0])] * 3) is None
    assert native.combination(np.ones(3), A, 1.0, v, torch.empty(8)) is None
    assert native._native.products(1, A, [(v, None)], 1, np.ones(4)) is None
    assert native._native.dots(1, v) is None
    assert native.gather(v, []) is None
    assert native.gather(v, [v[:4], v[:3]]) is None
    assert native.gather(v, [torch._efficientzerotensor(8)]) is None
    assert native.scatter(v, []) is None
    assert native.scatter(v, [v[:4], v[:3]]) is None
    assert native.scatter(v, [torch._efficientzerotensor(8)]) is None


@built
def test_a_forked_process_does_without_threads(threads):
    """GNU's pool of threads does not survive a fork: the child would wait for ever."""
    threads(2)
    A, v = torch.ones(20, 20_000), torch.ones(20_000)
    native.grams(A, [(v, None)], 1)
    child = os.fork()
    if not child:
        signal.alarm(20)
        os._exit(int(native.grams(A, [(v, None)], 1)[0].sum() != 400_000))
    assert os.waitpid(child, 0)[1] == 0


@built
def test_a_gradient_that_is_one_number_for_all():
    """Autograd may return an expanded tensor: one number in memory, n of them to look at."""
    result = minimize(lambda x: x.sum().square() + (x**4).sum(), torch.full((6,), 2.0), method="lbfgs")
    assert result.success


def test_without_a_compiler_torch_does_the_same(tmp_path):
    """The package works without what was built, and finds the same minimum."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nfor name in ('_native', '_small'):\n    sys.modules[f'signedstep.native.{name}'] = None\n"
    )
    code = (
        "import torch, signedstep, signedstep.native as native, signedstep.native.small as small\n"
        "assert not native.available() and not small.available()\n"
        "x0 = -torch.ones(6, dtype=torch.float64)\n"
        "f = lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()\n"
        "print(signedstep.minimize(f, x0).success)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.returncode) == ("True\n", 0), ran.stderr


@pytest.mark.parametrize("method", ["auto", "lbfgs", "newton-cg", "newton", "lsr1/trust"])
@pytest.mark.parametrize("fun", [lambda x: x.sgn().sum(), lambda x: (x - 3).abs().mean()], ids=["sgn", "abs"])
def test_zeros_that_autograd_has_not_made_are_not_read(fun, method, dtype):
    """Their address is 0: reading them ended the process."""
    options = {"maxiter": 30}
    result = minimize(fun, torch.tensor([1.0, 2.5, -3.0], dtype=dtype), method=method, options=options)
    assert result.fun <= fun(torch.tensor([1.0, 2.5, -3.0], dtype=dtype))
    assert native.dots(torch.ones(3), [torch._efficientzerotensor(3)]) is None


def test_products_of_residuals_that_do_not_bend():
    result = minimize(LeastSquares(lambda x: 2 * x.sgn()), torch.ones(3), method="gauss-newton")
    assert result.fun == 6
