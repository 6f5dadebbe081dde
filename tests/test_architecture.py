"""The layers of the code as its imports show them: a package imports those below it, and none above."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "elmo_zh"
MODULES = {
    ".".join(("elmo_zh", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

# From the top down, as the map in docs/architecture.md has them; tests/test_pages.py checks that none is missing there.
MAP = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8").split("\n## ")[1]
LAYERS = ["__main__", *re.findall(r"`(\w+)(?:/|\.py)`", "".join(re.findall(r"^\| `.+? \|", MAP, re.MULTILINE)))]
LAYER_OF = {name: number for number, name in enumerate(LAYERS)}
WITHOUT_TORCH = {*LAYERS[LAYERS.index("reader") :], "scoring"} - {"word2vec", "pictures", "hdf5", "allocator"}
KEPT_APART = {("training", "embed"), ("embed", "training")}
NO_NAMES = {"utils", "common", "helpers", "misc"}


def package_of(module: str) -> str:
    """The first name below elmo_zh: corpus, of elmo_zh.corpus.text_files."""
    return module.split(".")[1]


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def imports_of(module: str) -> Iterator[str]:
    """Every module that a module imports, at its top or inside functions."""
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import, which this test does not follow"
            assert node.module is not None
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else node.module


def own_imports() -> Iterator[tuple[str, str]]:
    """Module and imported module within the package; elmo_zh itself is above all layers."""
    for module in MODULES:
        if module != "elmo_zh":
            yield from ((module, other) for other in imports_of(module) if other.startswith("elmo_zh."))


def calls_of(module: str) -> Iterator[str]:
    """What is called, as far as it is a name: print, path.open, sys.stdout.write."""
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield ast.unparse(node.func)


def test_imports_only_go_down() -> None:
    upward = [
        f"{module} imports {other}"
        for module, other in own_imports()
        if LAYER_OF[package_of(other)] < LAYER_OF[package_of(module)]
    ]
    assert upward == []
    assert not NO_NAMES & {part for module in MODULES for part in module.split(".")}


def test_training_and_embed_never_import_each_other() -> None:
    assert [pair for pair in own_imports() if (package_of(pair[0]), package_of(pair[1])) in KEPT_APART] == []


def test_no_module_reads_arrays_past_errors_of_the_disk() -> None:
    """`elmo_zh/run/arrays.py` says which errors NumPy's own functions pass over."""
    found = [
        f"{module}: {ast.unparse(node)}"
        for module in MODULES
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr in ("fromfile", "tofile") or ast.unparse(node.func) in ("np.load", "np.save", "np.savez"))
        and not any(keyword.arg == "mmap_mode" for keyword in node.keywords)
        and module != "elmo_zh.run.arrays"
    ]
    assert found == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    below = defaultdict(set)
    for module, other in own_imports():
        below[module].add(other)
    # Take away what imports nothing that is left, again and again.
    while free := [module for module in below if not below[module] & below.keys()]:
        for module in free:
            del below[module]
    assert sorted(below) == []


def test_packages_without_torch() -> None:
    found = [
        f"{module} imports {other}"
        for module in MODULES
        if module != "elmo_zh" and package_of(module) in WITHOUT_TORCH
        for other in imports_of(module)
        if other.split(".")[0] in ("torch", "h5py", "safetensors", "gensim", "matplotlib")
    ]
    assert found == []


def test_only_the_command_line_knows_click_and_prints() -> None:
    for module in MODULES:
        if module == "elmo_zh" or package_of(module) != "cli":
            assert not {"click", "tqdm"} & {other.split(".")[0] for other in imports_of(module)}, module
            speaking = {"print", "sys.stdout.write", "sys.stderr.write", "sys.exit", "exit", "input"}
            assert not speaking & set(calls_of(module)), module


def test_the_model_opens_no_file_and_logs_nothing() -> None:
    for module in MODULES:
        if module.startswith("elmo_zh.model"):
            # One starts a thread and has to know of forks; one reads to what the user has limited oneDNN.
            may_import_os = module in ("elmo_zh.model.kernels.execution", "elmo_zh.model.kernels.products")
            forbidden = {"logging", "pathlib", "io", *([] if may_import_os else ["os"])}
            assert not forbidden & {other.split(".")[0] for other in imports_of(module)}
            # One warns if torch lacks something.
            may_warn = module == "elmo_zh.model.kernels.products"
            speaking = (".open", ".read_text", *([] if may_warn else [".warn"]))
            assert not any(call == "open" or call.endswith(speaking) for call in calls_of(module))
