"""Feed mutated data files to the readers: no crash, no hang, no misreading, no valid file refused.

A file that is accepted must hold what scikit-learn (LIBSVM text) or NumPy (CSV, npz) reads in it, where they accept it.
A LIBSVM text that scikit-learn reads as two finite classes must be accepted.
"""

import argparse
import bz2
import gzip
import io
import lzma
import random
import signal
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file

from signedstep.experiments.readers import LIMITS, DataError, Table, read
from signedstep.experiments.readers.table import shape

SECONDS = 5  # for one file of a few hundred bytes
PACKERS = {".xz": lzma, ".gz": gzip, ".bz2": bz2}
SNIPPETS = (
    ':| |\n|\r\n|\r|\t|\v|\0|#|,|;|"|-|+|.|_|nan|inf|-inf|1e999|1e-400|0x10|1_0|1e|qid:1|1,2|\ufeff|٣'
    "|0|0:1|-1:1|1.5:1|1:1|16777216:1|99999999999999999999:1|"
)
TOKENS = [snippet.encode() for snippet in SNIPPETS.split("|")]


def number(rng: random.Random) -> str:
    x = rng.choice([0.0, 1.0, -1.0, rng.gauss(0, 1), rng.gauss(0, 1e9), 5e-324, 1.7e308])
    return rng.choice([repr(x), f"{x:g}", f"{x:+.3e}", f"{x:.0f}." if abs(x) < 1e15 else "1.", ".5", "3"])


def libsvm(rng: random.Random) -> bytes:
    """A valid LIBSVM file."""
    labels = rng.choice([("-1", "+1"), ("1", "2"), ("0", "1"), ("-1.0", "1.0"), ("7.5", "-3e2")])
    lines = []
    for row in range(rng.randint(2, 8)):
        indices = sorted(rng.sample(range(1, 12), rng.randint(1, 6)))
        pairs = [f"{i}:{number(rng)}" for i in indices]
        query = [f"qid:{row}"] if rng.random() < 0.05 else []
        comment = ["# 1:2 a comment"] if rng.random() < 0.1 else []
        lines.append(rng.choice([" ", "  ", "\t"]).join([labels[row % 2], *query, *pairs, *comment]))
        lines += [""] * (rng.random() < 0.1)
    end = rng.choice(["\n", "\r\n", " \n"])
    return (end.join(lines) + end * (rng.random() < 0.8)).encode()


def separated(rng: random.Random) -> bytes:
    """A valid CSV file."""
    delimiter, columns = rng.choice([",", ";", "\t", " "]), rng.randint(1, 4)
    lines = [delimiter.join([*(f"x{i}" for i in range(columns)), "label"])] * (rng.random() < 0.5)
    for row in range(rng.randint(2, 8)):
        lines.append(delimiter.join([*(number(rng) for _ in range(columns)), str(row % 2)]))
    return ("\n".join(lines) + "\n").encode()


def archive(rng: random.Random) -> bytes:
    """A valid npz file."""
    rows, file = rng.randint(2, 8), io.BytesIO()
    X = np.array([[rng.gauss(0, 1) for _ in range(3)] for _ in range(rows)])
    save = rng.choice([np.savez, np.savez_compressed])
    save(file, X=X.astype(rng.choice(["f4", "f8", "i2"])), y=np.arange(rows) % 2)
    return file.getvalue()


def mutated(data: bytes, rng: random.Random) -> bytes:
    """The bytes after up to four small accidents."""
    for _ in range(rng.choice([0, 0, 1, 1, 2, 4])):
        i, j = sorted(rng.randint(0, len(data)) for _ in range(2))
        accident = rng.randrange(6)
        if accident == 0:
            data = data[:i] + rng.choice(TOKENS) + data[i:]
        elif accident == 1:
            data = data[:i] + rng.choice(TOKENS) + data[i + rng.randint(1, 4) :]
        elif accident == 2:
            data = data[:i] + bytes([rng.randrange(256)]) + data[i + 1 :]
        elif accident == 3:
            data = data[:i] + data[min(j, i + rng.randint(1, 30)) :]
        elif accident == 4:
            data = data[:j] + data[i:j] + data[j:]
        elif rng.random() < 0.3:
            data = data[:i]
    return data


MAKERS = {".libsvm": libsvm, ".csv": separated, ".npz": archive}


def example(rng: random.Random) -> tuple[str, bytes, bool]:
    """A file to try: ending of its name, content, and whether any compression is intact."""
    kind = rng.choices(list(MAKERS), weights=(6, 2, 2))[0]
    data = mutated(MAKERS[kind](rng), rng)
    if kind == ".npz" or rng.random() < 0.7:
        return kind, data, True
    packing = rng.choice(list(PACKERS))
    packed = PACKERS[packing].compress(data)
    broken = mutated(packed, rng)
    return kind + packing, broken, broken == packed


def attempt(path: Path, data: bytes) -> Table | DataError:
    path.write_bytes(data)
    try:
        return read(path)
    except DataError as error:
        return error


def judge(kind: str, data: bytes, intact: bool, got: Table | DataError) -> str:
    """A word for how it went; AssertionError if it went wrong."""
    peer = _peer(kind, data, got)
    if isinstance(got, DataError):
        assert f"file{kind}" in str(got), f"the error does not name the file: {got}"
        if peer is None:
            return "refused"
        due = intact and kind.startswith(".libsvm") and _is_due(*peer)
        assert not due, f"a valid file is refused: {got}"
        return "refused, not by the peer"
    assert np.isfinite(got.X.data if isinstance(got.X, csr_array) else got.X).all()
    assert set(np.unique(got.y)) == {-1.0, 1.0}
    assert len(got.y) == shape(got.X)[0]
    if peer is None:
        return "accepted"
    X, y, _ = peer
    assert shape(got.X) == X.shape
    assert abs(got.X - X).max() == 0
    assert np.array_equal(np.where(got.y < 0, *got.labels), y)
    return "accepted, as the peer"


def _peer(kind: str, data: bytes, got: Table | DataError) -> Any:
    """Features, labels and text as the peer reads them, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ending = Path(kind).suffix or kind
            text = PACKERS[ending].decompress(data) if ending in PACKERS else data
            if kind.startswith(".libsvm"):
                return *load_svmlight_file(io.BytesIO(text), zero_based=False), text  # pyright: ignore[reportArgumentType]
            if isinstance(got, DataError):
                return None
            if kind == ".npz":
                arrays = np.load(io.BytesIO(text), allow_pickle=False)
                return arrays["X"], arrays["y"], text
            whole = _loaded(text.removeprefix(b"\xef\xbb\xbf").decode(), shape(got.X)[0])
            return whole[:, :-1], whole[:, -1], text
    except Exception:  # the peer may fail as it likes
        return None


def _loaded(text: str, rows: int) -> np.ndarray:
    """The numbers of a CSV file, by NumPy."""
    lines = [line for line in text.split("\n") if line.strip(" \r") and not line.lstrip(" \r").startswith("#")]
    delimiter = next((d for d in ",;\t" if d in lines[0]), None)
    header = int(len(lines) == rows + 1)  # any more lines, and the shapes will differ
    return np.loadtxt(lines, delimiter=delimiter, skiprows=header, comments=None, quotechar='"', ndmin=2)


def _is_due(X: Any, y: np.ndarray, text: bytes) -> bool:
    """Whether a file that scikit-learn reads is one that we promise to read."""
    strange = any(mark in text for mark in (b"_", b"\0", b"qid"))
    finite = np.isfinite(X.data).all() and np.isfinite(y).all()
    return bool(not strange and finite and X.nnz and X.shape[1] <= LIMITS.features and len(np.unique(y)) == 2)


def _hanging(*_) -> None:
    raise TimeoutError(f"the reader took more than {SECONDS} seconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    signal.signal(signal.SIGALRM, _hanging)
    verdicts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for i in range(arguments.files):
            kind, data, intact = example(random.Random(f"{arguments.seed}/{i}"))
            try:
                signal.alarm(SECONDS)
                got = attempt(Path(folder) / f"file{kind}", data)
                signal.alarm(0)
                verdicts[kind, judge(kind, data, intact, got)] += 1
            except Exception as error:
                raise SystemExit(f"file {i} of seed {arguments.seed}: {kind} {data!r}: {error!r}") from error
    for (kind, verdict), count in sorted(verdicts.items()):
        print(f"{kind:13} {verdict:25} {count:7}")
    print(f"{verdicts.total()} files, no crash, no hang, no misreading, no valid LIBSVM text refused")


if __name__ == "__main__":
    main()
