"""The readers of data files: valid files as others read them, all others refused with file and line."""

import bz2
import gzip
import io
import lzma
import os
import random
import re
import time
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from fuzz_readers import MAKERS, TOKENS, attempt, example, judge
from signedstep.experiments.readers import DataError, Limits, Table, read

GOOD = b"+1 1:0.5 3:-2e-3 # first\n\n-1 2:1\r\n# only a comment\n1 qid:4 3:.25\n"


def reading(folder: Path, data: bytes, name: str = "data", **options) -> Table:
    path = folder / name
    path.write_bytes(data)
    return read(path, **options)


def refusal(folder: Path, data: bytes, name: str = "data", **options) -> str:
    with pytest.raises(DataError) as caught:
        reading(folder, data, name, **options)
    assert str(caught.value).startswith(str(folder / name))
    return str(caught.value)


# LIBSVM text


@pytest.mark.parametrize(
    ("ending", "pack"), [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress), (".bz2", bz2.compress)]
)
def test_libsvm_by_hand(tmp_path, ending, pack):
    table = reading(tmp_path, pack(GOOD), f"data{ending}")
    np.testing.assert_array_equal(table.X.toarray(), [[0.5, 0, -2e-3], [0, 1, 0], [0, 0, 0.25]])
    np.testing.assert_array_equal(table.y, [1, -1, 1])
    assert table.labels == (-1, 1)


def test_streams_one_behind_the_other_and_padding_are_read_to_the_end(tmp_path):
    for ending, pack in ((".xz", lzma.compress), (".gz", gzip.compress), (".bz2", bz2.compress)):
        table = reading(tmp_path, pack(GOOD) + pack(GOOD) + b"\0" * 8, f"data{ending}")
        assert table.X.shape == (6, 3)


@pytest.mark.parametrize("labels", [("0", "1"), ("1", "2"), ("-1.0", "1.0"), ("-7", "-3.5")])
def test_any_two_labels_become_minus_and_plus_one(tmp_path, labels):
    low, high = labels
    assert list(reading(tmp_path, f"{high} 1:1\n{low} 1:2\n".encode()).y) == [1, -1]


@given(
    X=arrays.arrays(np.float64, arrays.array_shapes(min_dims=2, max_dims=2), elements=st.floats(-1e300, 1e300)),
    flips=st.integers(0, 2**10),
    comment=st.sampled_from(["", "three\nlines of\ncomment"]),
)
def test_what_scikit_learn_writes_is_read_as_it_reads_it(tmp_path_factory, X, flips, comment):
    y = np.array([(flips >> i) & 1 for i in range(len(X))], float)
    if len(np.unique(y)) < 2 or not X.any():
        return
    file = io.BytesIO()
    dump_svmlight_file(X, y, file, zero_based=False, comment=comment)
    table = reading(tmp_path_factory.getbasetemp(), file.getvalue())
    expected, labels = load_svmlight_file(io.BytesIO(file.getvalue()), zero_based=False)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(table.X, part), getattr(expected, part))
    assert table.X.shape == expected.shape
    np.testing.assert_array_equal(table.y, 2 * labels - 1)


BAD_LINES = {
    "x 1:1": "label 'x' is not a number; labels must be two numbers",
    "1_0 1:1": "label '1_0' is not a number",
    "nan 1:1": "label is nan",
    "inf 1:1": "label is inf",
    "1 0:1": "index 0 is below 1",
    "1 -2:1": "index -2 is below 1",
    "1 1.5:1": "index '1.5' is not a whole number",
    "1 :1": "index '' is not a whole number",
    "1 99999999999999999999:1": "index '99999999999999999999' is not",
    "1 10000001:1": "index 10000001 is above 10000000",
    "1 2:1 2:1": "index 2 follows 2",
    "1 3:1 2:1": "index 2 follows 3",
    "1 1:nan": "feature 1 is nan",
    "1 1:-inf": "feature 1 is -inf",
    "1 1:1e999": "feature 1 is inf",
    "1 1:": "value '' of feature 1",
    "1 1:2:3": "value '2:3' of feature 1",
    "1 1:2:3 4": "value '2:3' of feature 1",
    "1 1": "'1' is not of the form index:value",
    "1 1: 2": "value '' of feature 1",
    "1 1:1_0": "value '1_0' of feature 1",
    "1 1:1\0": "NUL byte",
    "1 qid:x 1:1": "index 'qid'",
    "2 1:1": "2 is a third label beside 1 and -1",
}


@pytest.mark.parametrize("line", BAD_LINES)
def test_a_bad_line_is_named(tmp_path, line):
    text = f"1 1:1\n\n-1 1:2\n{line}\n1 1:3\n".encode()
    assert re.search(f", line 4: .*{re.escape(BAD_LINES[line])}", refusal(tmp_path, text))


def test_a_table_with_columns_under_another_name_is_told_how_to_be_called(tmp_path):
    text = refusal(tmp_path, b"age,pulse,ill\n50,60,1\n", "mine.data")
    assert "line 1: the label 'age,pulse,ill' is not a number; labels must be two numbers; a table" in text
    assert text.endswith("a table with columns must be called .csv or .tsv")


def test_files_that_hold_no_two_classes(tmp_path):
    assert "no rows" in refusal(tmp_path, b"")
    assert "no rows" in refusal(tmp_path, b"\n# nothing\n")
    assert "no features" in refusal(tmp_path, b"1\n-1\n")
    assert "every row has the label 3" in refusal(tmp_path, b"3 1:1\n3 1:2\n")
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "nowhere")
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path)


# Damaged and hostile files


@pytest.mark.parametrize(("ending", "pack"), [(".xz", lzma.compress), (".gz", gzip.compress), (".bz2", bz2.compress)])
def test_every_truncation_and_appendix_of_a_compressed_file_is_refused(tmp_path, ending, pack):
    whole = pack(GOOD)
    for length in range(len(whole)):
        assert refusal(tmp_path, whole[:length], f"data{ending}")
    assert "cannot be read" in refusal(tmp_path, whole + b"rubbish", f"data{ending}")
    assert "does not begin as such" in refusal(tmp_path, GOOD, f"data{ending}")


@pytest.mark.parametrize(
    ("ending", "pack"), [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress), (".bz2", bz2.compress)]
)
@pytest.mark.parametrize("content", [b"1" + b" " * 1000 + b"1:1\n", b" " * 1000], ids=["many lines", "one line"])
def test_bombs_are_refused_before_they_fill_the_memory(tmp_path, ending, pack, content):
    path = tmp_path / f"data{ending}"
    path.write_bytes(pack(content * (2**26 // len(content))))
    tracemalloc.start()
    with pytest.raises(DataError, match="longer than"):
        read(path, limits=Limits(line=2**16, text=2**22))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24


def test_a_line_of_ten_gigabytes_is_refused_at_once(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(GOOD)
    os.truncate(path, 10**10)  # with zeros that take no room on the disk
    with pytest.raises(DataError, match="line 6: the line is longer than the limit of 16777216 bytes"):
        read(path)


def test_xz_that_asks_for_gigabytes_is_refused(tmp_path):
    packed = bytearray(lzma.compress(GOOD))
    assert packed[14:16] == b"\x21\x01"  # the LZMA2 filter; its dictionary size is the next byte
    packed[16] = 40
    size = (packed[12] + 1) * 4
    packed[12 + size - 4 : 12 + size] = zlib.crc32(packed[12 : 12 + size - 4]).to_bytes(4, "little")
    assert "emory" in refusal(tmp_path, bytes(packed), "data.xz")


def test_limits_of_rows_features_and_values(tmp_path):
    assert "line 5: there are more rows" in refusal(tmp_path, GOOD, limits=Limits(rows=2))
    assert "line 1: the index 3 is above 2" in refusal(tmp_path, GOOD, limits=Limits(features=2))
    assert "line 3: there are more values" in refusal(tmp_path, GOOD, limits=Limits(values=2))
    csv = b"1,2,0\n3,4,1\n"
    assert "line 2: there are more rows" in refusal(tmp_path, csv, "a.csv", limits=Limits(rows=1))
    assert "line 1: there are more features" in refusal(tmp_path, csv, "a.csv", limits=Limits(features=1))
    assert "line 2: there are more values" in refusal(tmp_path, csv, "a.csv", limits=Limits(values=5))


EDITS = st.lists(
    st.tuples(st.integers(0, len(GOOD)), st.integers(0, 5), st.sampled_from(TOKENS) | st.binary(max_size=3)), max_size=5
)


@given(kind=st.sampled_from([".libsvm", ".csv"]), seed=st.integers(0, 99), edits=EDITS)
def test_edited_files_are_refused_or_read_as_others_do(tmp_path_factory, kind, seed, edits):
    data = MAKERS[kind](random.Random(seed))
    for start, length, put in edits:
        data = data[:start] + put + data[start + length :]
    started = time.perf_counter()
    got = attempt(tmp_path_factory.getbasetemp() / f"file{kind}", data)
    assert time.perf_counter() - started < 5
    judge(kind, data, True, got)


def test_five_hundred_fuzzed_files(tmp_path):
    verdicts = set()
    for i in range(500):
        kind, data, intact = example(random.Random(i))
        verdicts.add(judge(kind, data, intact, attempt(tmp_path / f"file{kind}", data)))
    assert verdicts >= {"accepted, as the peer", "refused", "refused, not by the peer"}


@pytest.mark.parametrize("kind", MAKERS)
def test_the_judge_of_the_fuzzing_notices_a_misreading_and_a_wrong_refusal(tmp_path, kind):
    data = MAKERS[kind](random.Random(1))
    got = attempt(tmp_path / f"file{kind}", data)
    assert judge(kind, data, True, got) == "accepted, as the peer"
    with pytest.raises(AssertionError):
        judge(kind, data, True, Table(got.X + got.X[::-1] + got.X, got.y, got.labels))
    with pytest.raises(AssertionError):
        judge(kind, data, True, Table(got.X, -got.y, got.labels))
    if kind == ".libsvm":
        with pytest.raises(AssertionError):
            judge(kind, data, True, DataError(f"file{kind}: refused"))


# CSV


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " ", ", "])
@pytest.mark.parametrize("header", ["", "age pulse ill\n"])
def test_csv(tmp_path, delimiter, header):
    text = (header + "1.5 -2 1\n# comment\n\n3 4e1 2\r\n").replace(" ", delimiter).replace(f"#{delimiter}", "# ")
    table = reading(tmp_path, text.encode(), "a.csv")
    np.testing.assert_array_equal(table.X, [[1.5, -2], [3, 40]])
    np.testing.assert_array_equal(table.y, [-1, 1])


def test_the_label_is_a_column_by_name_or_number(tmp_path):
    text = '\ufeff"ill, or not",age,pulse\n1,50,"60"\n0,70,80\n'.encode()
    for label in ("ill, or not", 0, "0"):
        table = reading(tmp_path, text, "a.csv", label=label)
        np.testing.assert_array_equal(table.X, [[50, 60], [70, 80]])
        np.testing.assert_array_equal(table.y, [1, -1])
    for label in (-1, "-1", 2):
        np.testing.assert_array_equal(reading(tmp_path, text, "a.csv", label=label).X, [[1, 50], [0, 70]])
    for label in ("Age", 3, -2, "-2", "-3", ""):
        complaint = refusal(tmp_path, text, "a.csv", label=label)
        assert f"no one column is called {label!r}" in complaint
        assert "numbers go from 0 to 2, -1 is the last" in complaint


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a,b,c\n1,2,0\n1,,1\n", "line 3: the value of column 2 is missing; features must be numbers"),
        ("1,2,0\n1,NA,1\n", "line 2: the value of column 2 'NA' is not a number"),
        ("1,2,0\n1,nan,1\n", "line 2, column 2: the value is nan"),
        ("1,2,0\n1,1e999,1\n", "line 2, column 2: the value is inf"),
        ("1,2,0\n1,1_0,1\n", "line 2: the value of column 2 '1_0' is not a number"),
        ("1,2,0\n1,2,1,\n", "line 2: the line has 4 columns, the first one has 3"),
        ("1,2,0\n7\n", "line 2: the line has 1 column, the first one has 3"),
        ("1,2,setosa\n", "line 1: the value of column 3 'setosa' is not a number; labels must be two numbers"),
        ("a,b,c\n1,2,yes\n", "line 2: the value of column 3 'yes' is not a number; labels must be two numbers"),
        ("1,5;2,5;0\n", "line 1: the line has ',' and ';'"),
        ("5\n6\n", "line 1: the line has one column"),
        ('1,2,0\n1,"2,1\n', "line 2: the quotes are not right"),
        (
            "1,2,0\n3,4,1\n5,6,2\n",
            "line 3: 2 is a third label beside 0 and 1, accepted are exactly two different labels, both",
        ),
        ("1,2,0\r3,4,1\r", "line 1: the line has a carriage return in its middle"),
        ("a,b\n", "there are no rows"),
        ("", "there are no rows"),
        ("1,2\0,0\n", "line 1: the line has a NUL byte"),
    ],
)
def test_bad_csv_is_named(tmp_path, text, complaint):
    assert complaint in refusal(tmp_path, text.encode(), "a.csv")


def test_csv_that_is_not_utf8(tmp_path):
    assert "line 2: the line is not UTF-8" in refusal(tmp_path, b"a,b\n\xff,1\n", "a.csv")


# npz


def packed(**members) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **members)
    return file.getvalue()


def test_npz(tmp_path):
    X = np.arange(6).reshape(3, 2)
    for stored in (X, X.astype(np.float32), np.asfortranarray(X), X.astype(">f8")):
        table = reading(tmp_path, packed(X=stored, y=[True, False, True]), "a.npz")
        np.testing.assert_array_equal(table.X, X)
        np.testing.assert_array_equal(table.y, [1, -1, 1])
        assert table.X.dtype == np.float64


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ({"X": [[1]]}, "no array y"),
        ({"X": [[1], [2]], "y": [1]}, "the shapes of X and y are (2, 1) and (1,)"),
        ({"X": [1, 2], "y": [1, 2]}, "the shapes of X and y"),
        ({"X": [[1], [np.nan]], "y": [1, 2]}, "X[1, 0] is nan"),
        ({"X": [[1], [2]], "y": [1, np.inf]}, "row 1 of y: the label is inf"),
        ({"X": [["a"], ["b"]], "y": [1, 2]}, "the type of X is <U1"),
        ({"X": np.array([[{}], [None]]), "y": [1, 2]}, "the type of X is object"),
        ({"X": [[1], [2]], "y": ["no", "yes"]}, "numbers of at most 8 bytes; labels must be two numbers"),
        ({"X": [[1j], [2]], "y": [1, 2]}, "the type of X is complex128"),
        ({"X": [[1], [2], [3]], "y": [1, 2, 3]}, "row 2 of y: 3 is a third label"),
    ],
)
def test_bad_npz_is_refused(tmp_path, members, complaint):
    assert complaint in refusal(tmp_path, packed(**members), "a.npz")


def test_npz_bombs_and_lies_are_refused(tmp_path):
    bomb = packed(X=np.zeros((2**20, 8)), y=np.arange(2**20) % 2)
    assert len(bomb) < 2**18
    assert "the limit is 1048576" in refusal(tmp_path, bomb, "a.npz", limits=Limits(text=2**20))
    assert "the limit is 1000 values" in refusal(tmp_path, bomb, "a.npz", limits=Limits(values=1000))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"descr": "<f8", "fortran_order": False, "shape": (10_000, 10_000)}
        )
        archive.writestr("X.npy", header.getvalue() + b"\0" * 80)
        archive.writestr("y.npy", header.getvalue())
    assert "the archive holds another number of values" in refusal(tmp_path, file.getvalue(), "a.npz")
    with zipfile.ZipFile(file, "w", compression=zipfile.ZIP_LZMA) as archive:
        archive.writestr("X.npy", b"")
    assert "a way that NumPy does not write" in refusal(tmp_path, file.getvalue(), "a.npz")
    assert "cannot be read" in refusal(tmp_path, b"PK not a zip", "a.npz")
