"""The layers of docs/design.md: each module imports only what is left of it."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "signedstep"
DRAWN = re.search(r"## Layers.*?```\n(.*?)```", (ROOT / "docs" / "design.md").read_text(), re.DOTALL)
assert DRAWN
LAYERS = [{name.strip(" /\n") for name in layer.split(",")} for layer in DRAWN[1].split("<-")]
MODULES = sorted(SOURCE.rglob("*.py"))


def layer(module: str) -> int:
    return next(i for i, names in enumerate(LAYERS) if module in names)


def imports(path: Path, *, inside_functions: bool) -> set[str]:
    """The modules that a file imports, at its top level or anywhere."""
    tree = ast.parse(path.read_text())
    nodes = ast.walk(tree) if inside_functions else tree.body
    found = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


@pytest.mark.parametrize("path", [p for p in MODULES if p != SOURCE / "__init__.py"], ids=lambda p: p.stem)
def test_modules_import_only_lower_layers(path):
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    used = {name.split(".")[1] for name in imports(path, inside_functions=True) if name.startswith("signedstep.")}
    known = set().union(*LAYERS)
    assert own in known, f"{own} has no place in LAYERS"
    for module in (used & known) - {own}:
        assert layer(module) < layer(own), f"{own} imports {module}"


@pytest.mark.parametrize("path", [p for p in MODULES if "experiments" not in p.parts], ids=lambda p: p.stem)
def test_no_plotting_or_data_frames_at_import(path):
    roots = {name.split(".")[0] for name in imports(path, inside_functions=False)}
    assert not roots & {"matplotlib", "pandas"}


@pytest.mark.parametrize("path", [p for p in MODULES if "experiments" not in p.parts], ids=lambda p: p.stem)
def test_only_objectives_differentiate(path):
    used = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
    if path.stem not in ("tensors", "closure", "residuals", "module"):
        assert not used & {"autograd", "backward", "jvp"}


def test_torch_may_be_built_without_distributed():
    """As it is where somebody builds it with USE_DISTRIBUTED=0: torch.distributed then says so and has nothing else."""
    code = """
import sys, types, torch
for name in [name for name in sys.modules if name.startswith("torch.distributed")]:
    del sys.modules[name]
nothing = types.ModuleType("torch.distributed")
nothing.is_available = nothing.is_initialized = lambda: False
sys.modules["torch.distributed"] = torch.distributed = nothing
import signedstep
assert signedstep.minimize(lambda x: (x**2).sum(), torch.ones(3)).success
"""
    subprocess.run([sys.executable, "-c", code], check=True)
