# SPDX-License-Identifier: Apache-2.0
"""Write down the public names and signatures of ONNX Runtime training, and the numbers of the scripts dropin*.py there, on request:

    python record_signatures.py

with a Python that has onnxruntime-training-cpu==1.19.2 (Python 3.8 to 3.11, numpy < 2, onnx < 1.17). Writes
onnxruntime_signatures.json (names, the order of parameters and their defaults) and onnxruntime_numbers.json beside
itself, which test_dropin_signatures.py and test_dropin.py compare the package with.
"""

import enum
import importlib
import inspect
import json
import os
import re
import runpy
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORD = HERE / "onnxruntime_signatures.json"
NUMBERS = HERE / "onnxruntime_numbers.json"
MODULES = [
    "onnxruntime",
    "onnxruntime.training.api",
    "onnxruntime.training.api.checkpoint_state",
    "onnxruntime.training.artifacts",
    "onnxruntime.training.onnxblock",
    "onnxruntime.training.onnxblock.blocks",
    "onnxruntime.training.onnxblock.loss",
    "onnxruntime.training.onnxblock.optim",
]
_SPECIAL = {"__init__", "__call__", "__getitem__", "__setitem__", "__contains__", "__iter__", "__len__"}
_WITH_VALUES = {"SessionOptions", "RunOptions"}  # whose attributes have a value worth knowing


def _default(value):
    return str(value) if isinstance(value, enum.Enum) or hasattr(value, "__members__") else repr(value)


def _parameter(parameter):
    name = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "") + parameter.name
    return name if parameter.default is parameter.empty else f"{name}={_default(parameter.default)}"


def _parameters(function):
    """Those of a Python function, or of a function in C++ by the first line of its help."""
    try:
        names = [_parameter(p) for p in inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        line = (function.__doc__ or "").split("\n")[0]
        inside = re.search(r"\((.*)\) ->", line)
        names = re.findall(r"(\w+): ", inside.group(1)) if inside else []
    return [name for name in names if name not in ("self", "cls")]


def describe_function(function):
    return f"({', '.join(_parameters(function))})"


def _describe_member(cls, instance, name):
    static = inspect.getattr_static(cls, name)
    if isinstance(static, (staticmethod, classmethod)):
        return f"{type(static).__name__} {describe_function(getattr(cls, name))}"
    if callable(getattr(cls, name)):
        return describe_function(getattr(cls, name))
    return "attribute" if instance is None else f"attribute {_default(getattr(instance, name))}"


def describe_class(cls):
    """Its public members, each as one line of text."""
    members = getattr(cls, "__members__", None)
    if members is not None:
        return {name: int(getattr(member, "value", member)) for name, member in members.items()}
    instance = cls() if cls.__name__ in _WITH_VALUES else None
    special = [n for n in _SPECIAL if hasattr(cls, n) and getattr(cls, n) is not getattr(object, n, None)]
    public = [n for n in dir(cls) if not n.startswith("_")]
    return {name: _describe_member(cls, instance, name) for name in public + special}


def describe_module(module, names):
    described = {}
    for name in names:
        value = getattr(module, name)
        described[name] = describe_class(value) if isinstance(value, type) else describe_function(value)
    return described


def _public(module):
    def is_own(value):
        # the package itself only imports; in its modules what they import is not theirs
        return module.__name__ == "onnxruntime" or value.__module__ == module.__name__

    listed = getattr(module, "__all__", None)
    names = listed or [n for n in dir(module) if not n.startswith("_")]
    values = {name: getattr(module, name) for name in names}
    return [n for n, v in values.items() if callable(v) and hasattr(v, "__module__") and (listed or is_own(v))]


def run_script(name):
    """What the script of this name leaves in `results`."""
    import onnx
    from dropin_model import files

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for file, text in files().items():
            onnx.save(onnx.parser.parse_model(text), file)
        names = runpy.run_path(str(HERE / f"{name}.py"))
        os.chdir(HERE)
    return names["results"]


def main():
    sys.path.insert(0, str(HERE.parent / "interop"))
    import theirs

    modules = {name: importlib.import_module(name) for name in MODULES}
    described = {name: describe_module(module, _public(module)) for name, module in modules.items()}
    record = {"version": theirs.onnxruntime.__version__, "modules": described}
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    scripts = []
    for script in ("dropin", "dropin_blocks", "dropin_edges"):
        lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in run_script(script).items()]
        scripts.append(f"{json.dumps(script)}: {{\n" + ",\n".join(lines) + "\n}")
    NUMBERS.write_text("{\n" + ",\n".join(scripts) + "\n}\n")


if __name__ == "__main__":
    main()
