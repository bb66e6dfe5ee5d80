"""The store: what was put comes back, what is damaged or of another run does not, and nothing is ever half there."""

import json
import math
import re
import warnings
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import signedstep
from signedstep.experiments import fingerprint
from signedstep.experiments.bench import execute
from signedstep.experiments.runs import Budget, Network, Outcome, Run, Trace
from signedstep.experiments.store import Store, StoreError

RUN = Run("heart", Network(2), "lsr1-wolfe+-", 3, Budget(10, 20, 60.0))
TRACE = Trace([0.5, 0.1 + 0.2], [1.0, 1e-300], [1, 3], [0.0, 0.01], [None, -0.5], [None, -1e-3])
OUTCOME = Outcome(
    RUN, TRACE, False, "The time limit of 60 s was reached.", 151, 0.9, {"signedstep": signedstep.__version__}
)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def test_what_is_put_comes_back_to_the_last_bit(store):
    assert store.get(RUN) is None
    path = store.put(OUTCOME)
    assert store.get(RUN) == OUTCOME
    assert Store(store.folder).outcomes() == [OUTCOME]
    assert path.relative_to(store.folder).as_posix() == "heart/2x10-tanh-mse/lsr1-wolfe+--seed3.json"
    assert [file for file in store.folder.rglob("*") if file.is_file()] == [path]


@pytest.mark.parametrize(
    "other",
    [{"budget": Budget(10, 20, 61.0)}, {"network": Network(2, scale=1.0000001)}, {"code": "older"}],
    ids=["budget", "network", "code"],
)
def test_the_outcome_of_another_run_does_not_count(store, other):
    store.put(OUTCOME)
    asked = replace(RUN, **other)
    store.file(asked).parent.mkdir(parents=True, exist_ok=True)
    store.file(asked).write_bytes(store.file(RUN).read_bytes())
    with pytest.warns(UserWarning, match="is of another budget, network or code"):
        assert store.get(asked) is None


def test_the_outcome_of_another_version_does_not_count(store):
    store.put(replace(OUTCOME, environment={"signedstep": "0.0.1"}))
    with pytest.warns(UserWarning, match=r"was made by version 0\.0\.1"):
        assert store.get(RUN) is None
    with pytest.warns(UserWarning, match=r"left out"):
        assert store.outcomes() == []


def change_version_of(package, monkeypatch):
    """Make a package seem another version of itself."""
    real = fingerprint.version
    monkeypatch.setattr(fingerprint, "version", lambda name: "99" if name == package else real(name))


@pytest.mark.parametrize(
    ("family", "solver", "package"),
    [
        ("cutest", "auto", "jax"),
        ("cutest", "scipy-bfgs", "equinox"),
        ("networks", "optax-lbfgs", "jaxlib"),
        ("networks", "optimistix-lbfgs", "lineax"),
        ("networks", "torch-lbfgs", "scikit-learn"),
    ],
)
def test_another_version_of_a_package_that_computes_the_numbers_is_another_run(family, solver, package, monkeypatch):
    if not all(map(find_spec, ("sif2jax", "optax", "optimistix"))):
        pytest.skip("the extra bench is not installed")
    before = execute.fingerprint.__wrapped__(family, solver)
    assert execute.fingerprint.__wrapped__(family, solver) == before
    change_version_of(package, monkeypatch)
    assert execute.fingerprint.__wrapped__(family, solver) != before


@pytest.mark.parametrize("package", ["torch", "numpy", "scipy", "scikit-learn"])
def test_so_it_is_for_training_runs(package, monkeypatch):
    before = fingerprint.of_studies.__wrapped__()
    change_version_of(package, monkeypatch)
    assert fingerprint.of_studies.__wrapped__() != before


@pytest.mark.parametrize("name", ["readers/libsvm.py", "readers/table.py", "identity.py", "sources.py", "child.py"])
def test_so_it_is_for_code_that_reads_data_or_trains(name, monkeypatch):
    studies, bench = fingerprint.of_studies.__wrapped__(), execute.fingerprint.__wrapped__("networks", "torch-lbfgs")
    real, edited = Path.read_bytes, fingerprint.EXPERIMENTS / name
    monkeypatch.setattr(Path, "read_bytes", lambda path: real(path) + b"# edited" * (path == edited))
    assert fingerprint.of_studies.__wrapped__() != studies
    assert (execute.fingerprint.__wrapped__("networks", "torch-lbfgs") != bench) is (name != "child.py")


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "\0" * len(text),
        lambda text: "[1, 2]",
        lambda text: text.replace('"format": 1', '"format": 2'),
        lambda text: text.replace('"seed"', '"sead"'),
        lambda text: text.replace('"evals": [1, 3]', '"evals": [1]'),
        lambda text: text.replace('"f": [0.5', '"f": [NaN'),
        lambda text: text.replace('"trace": {', '"trace": {"g": 1, '),
    ],
)
def test_a_damaged_file_is_run_again(store, damage):
    path = store.put(OUTCOME)
    text = path.read_text()
    assert damage(text) != text
    path.write_text(damage(text))
    with pytest.warns(UserWarning, match="it will be run again"):
        assert store.get(RUN) is None
    with pytest.warns(UserWarning, match="left out"):
        assert store.outcomes() == []
    store.put(OUTCOME)
    assert store.get(RUN) == OUTCOME


@given(st.data())
def test_no_cut_and_no_changed_byte_is_taken_for_an_outcome(tmp_path_factory, data):
    store = Store(tmp_path_factory.mktemp("store"))
    path = store.put(OUTCOME)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 2))]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert store.get(RUN) in (None, OUTCOME)
        assert store.outcomes() in ([], [OUTCOME])


def test_what_is_not_json_is_not_written(store):
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.put(replace(OUTCOME, trace=replace(TRACE, f=[0.5, math.inf])))
    assert store.outcomes() == []
    store.put(OUTCOME)
    json.loads(store.file(RUN).read_text(), parse_constant=pytest.fail)


def test_what_a_killed_writer_left_is_not_read(store):
    path = store.put(OUTCOME)
    path.with_name(f".{path.name}.123.tmp").write_text('{"format": 1')
    assert store.outcomes() == [OUTCOME]


@pytest.mark.parametrize("kind", ["a folder is there", "a file is above"])
def test_a_place_that_cannot_take_an_outcome_is_named_before_it_is_run(store, kind):
    place = store.file(RUN)
    if kind == "a folder is there":
        place.mkdir(parents=True)
    else:
        place.parent.parent.mkdir(parents=True)
        place.parent.touch()
    for ask in (lambda: store.get(RUN), lambda: store.put(OUTCOME)):
        with pytest.raises(StoreError, match=f"the outcome of a run cannot be kept in {re.escape(str(place))}: "):
            ask()
    assert store.outcomes() == []
    assert not list(store.folder.rglob("*.tmp"))


def test_a_file_that_may_not_be_read_is_run_again(store, monkeypatch):
    store.put(OUTCOME)

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)  # root may read anything
    with pytest.warns(UserWarning, match="cannot be read; it will be run again"):
        assert store.get(RUN) is None


def test_a_file_in_the_wrong_place_is_left_out(store):
    path = store.put(OUTCOME)
    path.with_name("gd-seed0.json").write_bytes(path.read_bytes())
    with pytest.warns(UserWarning, match="is not in the place of its run"):
        assert store.outcomes() == [OUTCOME]


@pytest.mark.parametrize("name", ["cli.py", "__main__.py"])
def test_the_command_line_computes_no_numbers(name):
    assert fingerprint.PACKAGE / name not in fingerprint.library()
    assert (fingerprint.PACKAGE / name).is_file()
