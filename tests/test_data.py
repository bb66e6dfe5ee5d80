"""The data sets: the table against the files, the order of the sources, downloads that fail in every way."""

import argparse
import lzma
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from signedstep.experiments import data, sources
from signedstep.experiments.commands import data as command
from signedstep.experiments.data import SETS, DataError
from signedstep.experiments.identity import checked, content
from signedstep.experiments.readers import read

HEART = (sources.PACKAGED / "heart").read_bytes()
FOLDER = os.environ.get(sources.VARIABLE)
needs_files = pytest.mark.skipif(not FOLDER, reason=f"{sources.VARIABLE} names no folder with LIBSVM's files")
ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache, and no folder of the user's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.delenv(sources.VARIABLE, raising=False)
    return tmp_path / "caches" / "signedstep"


def run(*words: str) -> int:
    """The exit status of `signedstep data ...`."""
    parser = argparse.ArgumentParser()
    command.add(parser.add_subparsers())
    arguments = parser.parse_args(["data", *words])
    return arguments.run(arguments)


# The table and what is inside the package


def test_the_table_is_that_of_the_paper():
    paper = "a1a a9a colon-cancer gisette heart ijcnn1 ionosphere leukemia madelon mushrooms splice svmguide3 w1a w8a"
    assert [*paper.split(), "breast_cancer", "digits"] == list(SETS)
    for name, dataset in SETS.items():
        assert dataset.name == name
        assert sum(dataset.labels.values()) == dataset.rows
        assert len(dataset.labels) == 2
        assert dataset.scaling
        assert dataset.source
        assert (dataset.sha256 is None) == (name in ("gisette", "breast_cancer", "digits"))
        assert dataset.url is None or dataset.url.startswith("https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/")


def test_what_is_inside_loads_without_network():
    assert data.available() == ["heart", "breast_cancer", "digits"]
    for name in data.available():
        loaded = data.load(name)
        assert loaded.X.shape == (SETS[name].rows, SETS[name].features)
        assert loaded.X.dtype == loaded.y.dtype == np.float64
        assert list(np.unique(loaded.y)) == [-1, 1]
        assert (loaded.y == -1).sum() == SETS[name].labels[min(SETS[name].labels)]
        assert np.isfinite(loaded.X).all()
        assert SETS[name].scaling in loaded.text


def test_scaling_is_what_the_table_says():
    digits, cancer = data.load("digits").X, data.load("breast_cancer").X
    varying = digits.std(axis=0) > 0
    np.testing.assert_array_equal(digits[:, varying].min(axis=0), -1)
    np.testing.assert_array_equal(digits[:, varying].max(axis=0), 1)
    assert not digits[:, ~varying].any()
    assert not varying.all()
    np.testing.assert_allclose(cancer.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(cancer.var(axis=0), 1)


@needs_files
@pytest.mark.parametrize("name", [name for name, dataset in SETS.items() if dataset.content and dataset.file])
def test_every_file_is_the_set_of_the_table(name):
    (place, *_) = sources.copies(SETS[name], Path(str(FOLDER)))
    start = time.process_time()
    table = checked(SETS[name], place.path)
    assert time.process_time() - start < 2
    assert table.sha256 == SETS[name].sha256
    loaded = data.load(name, Path(str(FOLDER)))
    density = np.count_nonzero(table.X.toarray()) / (table.X.shape[0] * table.X.shape[1])
    assert isinstance(loaded.X, csr_array) == (density < 0.2)
    if "[-1, 1]" in SETS[name].scaling:
        assert loaded.X.min() == -1
        assert loaded.X.max() == 1
    if name == "splice":
        np.testing.assert_allclose(loaded.X, (2 * table.X.toarray() - 5) / 3, atol=1e-15)


# Where a set is found


@pytest.mark.parametrize("name", ["heart", "heart_scale", "heart.xz", "heart_scale.xz"])
def test_a_file_of_the_users_comes_first_whatever_it_is_called(tmp_path, monkeypatch, name):
    (tmp_path / name).write_bytes(lzma.compress(HEART) if name.endswith(".xz") else HEART)
    (place, packaged) = sources.copies(SETS["heart"], tmp_path)
    assert place == ("data folder", tmp_path / name)
    assert packaged.where == "package"
    monkeypatch.setenv(sources.VARIABLE, str(tmp_path))
    assert next(sources.copies(SETS["heart"])) == place


def test_the_page_s_name_goes_before_the_set_s(tmp_path):
    (tmp_path / "heart").write_bytes(HEART.replace(b":0.", b":0.5"))  # the page has another, unscaled file of this name
    (tmp_path / "heart_scale").write_bytes(HEART)
    np.testing.assert_array_equal(data.load("heart", tmp_path).X, data.load("heart").X)


def test_a_folder_that_does_not_exist_is_named(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"data_dir must be a folder, got .*nowhere"):
        data.load("heart", tmp_path / "nowhere")
    monkeypatch.setenv(sources.VARIABLE, "nowhere")
    with pytest.raises(DataError, match="SIGNEDSTEP_DATA must be a folder, got 'nowhere'"):
        data.available()


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda text: text + b"+1 1:1\n", "rows and features are (271, 13), expected are (270, 13)"),
        (lambda text: text.replace(b"+1 ", b"-1 ", 1), "rows by label are"),
        (lambda text: text.replace(b"1:0.708333", b"1:0.708334", 1), "other numbers are not"),
        (lambda text: text.replace(b" 13:", b" 14:", 1), "line 1: the index 14 is above 13"),
        (lambda text: text[: len(text) // 2], "rows and features are"),
        (lambda text: b"", "there are no rows"),
    ],
)
def test_a_file_with_other_numbers_is_refused(tmp_path, damage, complaint):
    (tmp_path / "heart").write_bytes(damage(HEART))
    with pytest.raises(DataError, match=re.escape(complaint)) as caught:
        data.load("heart", tmp_path)
    assert str(tmp_path / "heart") in str(caught.value)
    assert run("verify", "--data-dir", str(tmp_path)) == 1


def test_another_layout_of_the_same_numbers_is_accepted(tmp_path, capsys):
    (tmp_path / "heart").write_bytes(b"# heart\n" + HEART.replace(b" \n", b"\r\n"))
    np.testing.assert_array_equal(data.load("heart", tmp_path).X, data.load("heart").X)
    assert run("verify", "heart", "--data-dir", str(tmp_path)) == 0
    assert "laid out otherwise" in capsys.readouterr().out


def test_content_sees_every_number_and_no_layout(tmp_path):
    def digest(text: str) -> str:
        (tmp_path / "file").write_text(text)
        return content(read(tmp_path / "file"))

    same = ["1 1:1 3:2\n2 2:1\n", "1 1:1.0 2:0 3:2e0 # zero\n\n2 2:1 3:-0\n", "-7 1:1 3:2\n9 2:1"]
    other = [
        "1 1:1 3:2\n2 3:1\n",
        "1 1:1 2:1 3:2\n2\n",
        "2 1:1 3:2\n1 2:1\n",
        "1 1:1 3:2\n2 2:1\n1\n",
        "1 1:1 3:3\n2 2:1",
    ]
    assert len({digest(text) for text in same}) == 1
    assert len({digest(text) for text in (*other, same[0])}) == len(other) + 1


def test_own_files_and_unknown_names(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("ill,age\n0,50\n1,70\n0,60\n")
    mine = data.load(str(path), label="ill")
    assert mine.name == "mine.csv"
    np.testing.assert_array_equal(mine.X, [[50], [70], [60]])
    np.testing.assert_array_equal(mine.y, [-1, 1, -1])
    path.write_text("0,0,0,0,0,1\n0,0,0,0,0,2\n0,0,3,0,0,2\n")
    assert isinstance(data.load(str(path)).X, csr_array)
    with pytest.raises(DataError, match="'hart' is neither a file nor one of the data sets a1a, a9a"):
        data.load("hart")


# Downloads, from a server of our own


class Page(BaseHTTPRequestHandler):
    """Serves heart, or something worse."""

    def do_GET(self):
        kind = self.path.strip("/").split("/")[0]
        if kind == "missing":
            self.send_error(404)
            return
        body = HEART.replace(b"0.708333", b"0.708334", 1) if kind == "wrong" else HEART
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if kind in ("right", "wrong") else body[: len(body) // 2])
        if kind == "stuck":
            self.wfile.flush()
            time.sleep(20)

    def log_message(self, *_):
        pass


@pytest.fixture
def page(monkeypatch) -> Iterator[str]:
    monkeypatch.setattr(sources, "PACKAGED", Path("nowhere"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def serve(monkeypatch, page: str, kind: str) -> None:
    monkeypatch.setitem(SETS, "heart", replace(SETS["heart"], page=f"{page}/{kind}/"))


def test_a_download_is_kept(page, monkeypatch, cache, capsys):
    serve(monkeypatch, page, "right")
    assert "heart" not in data.available()
    assert run("fetch", "heart") == 0
    assert [path.name for path in cache.iterdir()] == ["heart_scale"]
    serve(monkeypatch, page, "missing")  # it is not asked again
    assert run("fetch", "heart") == 0
    assert "heart" in data.available()
    assert data.load("heart").X.shape == (270, 13)
    assert run("verify", "heart") == 0
    assert re.search("heart +ok +cache +all numbers and the text's sha256", capsys.readouterr().out)


def test_load_downloads_by_itself_and_fetch_replaces_a_damaged_file(page, monkeypatch, cache):
    serve(monkeypatch, page, "right")
    assert data.load("heart").X.shape == (270, 13)
    (cache / "heart_scale").write_bytes(HEART[:1000])
    with pytest.raises(DataError, match="`signedstep data fetch heart` replaces it"):
        data.load("heart")
    assert run("verify") == 1
    assert run("fetch", "heart") == 0
    assert (cache / "heart_scale").read_bytes() == HEART


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        ("missing", "the download failed: 404"),
        ("truncated", "the download failed: .*IncompleteRead"),
        ("wrong", "this is not heart: shape and labels are right, other numbers are not"),
    ],
)
def test_a_bad_download_leaves_nothing(page, monkeypatch, cache, capsys, kind, complaint):
    serve(monkeypatch, page, kind)
    assert run("fetch", "heart") == 1
    message = capsys.readouterr().err
    assert re.search(complaint, message)
    assert f"{page}/{kind}/heart_scale" in message
    assert list(cache.iterdir()) == []


def test_no_network_is_said_plainly(monkeypatch, cache, capsys):
    monkeypatch.setitem(SETS, "a1a", replace(SETS["a1a"], page="http://127.0.0.1:1/"))
    with pytest.raises(DataError, match=r"http://127.0.0.1:1/a1a: the server cannot be reached. .*SIGNEDSTEP_DATA"):
        data.load("a1a")
    assert run("fetch", "a1a") == 1
    assert "a1a: http://127.0.0.1:1/a1a: the server cannot be reached" in capsys.readouterr().err
    assert list(cache.iterdir()) == []


def test_what_comes_with_the_package_is_not_fetched(cache, capsys):
    assert run("fetch", "heart", "digits") == 0
    assert capsys.readouterr().out.splitlines() == [
        "heart: nothing to fetch, it comes with this package",
        "digits: nothing to fetch, it comes with scikit-learn",
    ]
    assert not cache.exists()


def test_a_killed_download_leaves_no_file_of_that_name(page, monkeypatch, cache):
    code = f"""
from dataclasses import replace
from signedstep.experiments.sets import SETS
from signedstep.experiments.sources import fetch
fetch(replace(SETS["heart"], page="{page}/stuck/"))"""
    process = subprocess.Popen([sys.executable, "-c", code])
    while not any(path.stat().st_size for path in cache.glob("tmp*")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (left,) = cache.iterdir()
    assert left.name.startswith("tmp")
    assert "heart" not in data.available()
    os.utime(left, (time.time() - 2 * sources.STALE,) * 2)
    serve(monkeypatch, page, "right")
    assert run("fetch", "heart") == 0
    assert [path.name for path in cache.iterdir()] == ["heart_scale"]


# The command


def test_the_list_says_what_is_here(tmp_path, capsys):
    (tmp_path / "w1a.bz2").touch()
    assert run("list", "--data-dir", str(tmp_path)) == 0
    text = capsys.readouterr().out
    assert re.search(r"^heart +package +270 x 13 ", text, re.MULTILINE)
    assert re.search(r"^w1a +data folder +2477 x 300 ", text, re.MULTILINE)
    assert re.search(r"^a9a +32561 x 123 ", text, re.MULTILINE)
    assert "4 of 16 load without network" in text
    assert max(map(len, text.splitlines())) <= 80


def test_wrong_questions(capsys, monkeypatch):
    assert run("fetch", "hart") == 2
    assert "must be one of a1a" in capsys.readouterr().err
    assert run("verify", "gisette") == 1
    assert "not here" in capsys.readouterr().out
    monkeypatch.setenv(sources.VARIABLE, "nowhere")
    for action in ("list", "fetch", "verify"):
        assert run(action, *["heart"] * (action == "fetch")) == 2
        assert capsys.readouterr().err == "signedstep: SIGNEDSTEP_DATA must be a folder, got 'nowhere'\n"


def test_the_page_on_data_has_the_table_that_the_command_prints(capsys):
    assert run("list", "--markdown") == 0
    assert capsys.readouterr().out in (ROOT / "docs" / "data.md").read_text()
