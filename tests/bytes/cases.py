# SPDX-License-Identifier: Apache-2.0
"""The cases of check.py: for each a directory, and the programs that write files there."""

import dataclasses
import importlib.util
import json
import re
import struct
import zipfile
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Normal initial values go through log, sqrt and cos of the C library; uniform ones are whole numbers scaled.
NORMAL = re.compile(r"RandomNormal <(shape = \[[^\]]*\])[^>]*>")

COMMAND, WRITER = "onnxtrain", "write_files"  # the programs, as calls name them
SGD, MOMENTUM = ["--optimizer", "sgd"], ["--optimizer", "sgd-momentum", "--momentum", "0.5", "--nesterov"]
ADAMW, DECAYED = ["--optimizer", "adamw"], ["--optimizer", "adamw", "--adam-mode", "0", "--weight-decay", "0.01", "--beta2", "0.99"]
CLIPPED, NONE = ["--optimizer", "sgd", "--clip-norm", "1"], ["--optimizer", "none"]
OPTIMIZERS = {"sgd": SGD, "momentum": MOMENTUM, "adamw": ADAMW, "adamw0": DECAYED, "clipped": CLIPPED, "none": NONE}
LOSSES = ("cross-entropy", "mse", "l1", "bce-with-logits")


@dataclasses.dataclass
class Case:
    name: str
    inputs: dict = dataclasses.field(default_factory=dict)  # file: bytes, written into the folder before
    calls: list = dataclasses.field(default_factory=list)  # argument lists, run in the folder one after the other

    def call(self, program, *arguments):
        self.calls.append([program, *map(str, arguments)])
        return self


def stored(path):
    """The bytes of a model in the repository, with uniform initial values for normal ones."""
    data = path.read_bytes()
    return NORMAL.sub(r"RandomUniform <\1>", data.decode()).encode() if path.suffix == ".onnxtxt" else data


def trained(name, model, data, *options, ort=False):
    """Artifacts, what is exported of their untrained state, and the checkpoint of a new session."""
    case = Case(name, {model: data}).call(COMMAND, "artifacts", model, "--out", ".", *options, *["--ort-format"] * ort)
    return case.call(COMMAND, "export", ".", "--out", "exported.onnx").call(WRITER, "session", ".", "session")


def choice(name, among):
    """One of several by the name alone, so that new models change nothing for others."""
    return list(among)[zlib.crc32(name.encode()) % len(among)]


def of_repository():
    """Every model that lies in the repository, with a loss and an optimizer."""
    paths = [ROOT / "examples/c/line.onnxtxt", ROOT / "examples/digits/digits.onnxtxt", ROOT / "examples/mnist/lenet.onnxtxt"]
    for folder, ending in (("golden/data", "onnxtxt"), ("exporters/buffers", "onnx"), ("exporters/fixed", "onnx"),
                           ("exporters/sharing", "onnx")):
        paths += sorted((ROOT / "tests" / folder).glob(f"*.{ending}"))
    for path in paths:
        name = f"{path.parent.name if path.parent.name != 'data' else 'golden'}/{path.stem}"
        optimizer = choice(name, OPTIMIZERS)
        loss = choice("loss of " + name, LOSSES)
        yield trained(name, f"model{path.suffix}", stored(path), "--loss", loss, *OPTIMIZERS[optimizer])


def of_bench():
    """Those of the benchmark that are small: resnet18 has 45 MB of parameters."""
    spec = importlib.util.spec_from_file_location("models", ROOT / "bench" / "models.py")
    models = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(models)
    for name in ("mlp", "lenet"):
        text = NORMAL.sub(r"RandomUniform <\1>", models.onnx_text(name))
        yield trained(f"bench/{name}", "model.onnxtxt", text.encode(), *SGD)


def of_options():
    """One model with every loss, optimizer and option that changes what is written."""
    mlp = stored(ROOT / "tests/golden/data/mlp.onnxtxt")
    for loss in LOSSES:
        for name, optimizer in OPTIMIZERS.items():
            yield trained(f"options/{loss}-{name}", "model.onnxtxt", mlp, "--loss", loss, *optimizer, ort=name == "adamw")
    for name, options in {
            "sum": ["--reduction", "sum"], "none": ["--reduction", "none", *NONE],
            "classes": ["--ignore-index", "-100", "--class-weights", "1,2,0.5,1"], "last-axis": ["--class-axis", "-1"],
            "frozen": ["--freeze", "*bias"], "trained": ["--train", "fc1*", "--prefix", "some_"],
            "drawn": ["--init", "*weight=kaiming_uniform", "--init", "*bias=zeros", "--seed", "3"],
            "drawn-xavier": ["--init", "*weight=xavier_uniform", "--init", "*bias=ones"],
            "weighted": ["--loss", "0.5*mse"], "value": ["--loss-input", "y", "--target", "wanted", "--loss", "mse", *SGD]}.items():
        yield Case(f"options/{name}", {"model.onnxtxt": mlp}).call(COMMAND, "artifacts", "model.onnxtxt", "--out", ".", *options)


def of_kinds():
    """Models written for these cases, each with what others lack."""
    texts = {path.stem: path.read_bytes() for path in sorted((HERE / "models").glob("*.onnxtxt"))}

    def kind(name, *options, model=None, **more):
        return trained(f"kinds/{name}", "model.onnxtxt", texts[model or name], *options, **more)

    yield kind("functions", ort=True)
    yield kind("older", *SGD, ort=True)
    yield kind("older-stored", "--batch-norm", "stored", *DECAYED, model="older")
    yield kind("norms", "--loss", "mse")
    yield kind("recurrent", "--loss", "mse", *SGD)
    yield kind("batch_first", "--loss", "mse", ort=True)
    yield kind("fixed", "--loss", "mse", *MOMENTUM)
    yield kind("merged")
    yield kind("merged-shared", "--shared", "keep", *SGD, model="merged")
    yield kind("merged-one", "--shared", "n2.w*", model="merged")
    yield kind("heads", "--loss", "cross-entropy:scores", "--loss", "0.5*mse:depth=depth_target", "--output", "aux")
    custom = kind("heads-custom", "--loss", "cross-entropy", "--loss", "0.25*loss.onnxtxt", model="heads")
    custom.inputs["loss.onnxtxt"] = texts["heads_loss"]
    yield custom
    foreign = Case("kinds/foreign", {"model.onnxtxt": texts["foreign"]})
    yield foreign.call(COMMAND, "artifacts", "model.onnxtxt", "--out", ".", "--loss", "mse", "--train", "w", "--train", "b")
    external = kind("external", "--loss", "mse", *SGD)
    external.inputs["external.bin"] = struct.pack("<272f", *(k / 256 - 0.5 for k in range(272)))
    yield external.call(WRITER, "model", "model.onnxtxt", "again.onnx", 64)


def of_interop():
    """The models, artifacts and checkpoints that ONNX Runtime training accepted, and its own."""
    losses = {"CrossEntropyLoss": "cross-entropy", "MSELoss": "mse", "L1Loss": "l1", "BCEWithLogitsLoss": "bce-with-logits", None: "none"}
    for path in sorted((ROOT / "tests/interop/data").glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            files = {name: archive.read(name) for name in archive.namelist() if not name.endswith(".npz")}
        arguments = json.loads(files.pop("arguments.json"))
        options = ["--loss", losses[arguments["loss"]], "--optimizer", arguments["optimizer"].lower()]
        for option, key in (("--train", "requires_grad"), ("--freeze", "frozen_params"), ("--output", "additional_output_names")):
            options += [text for name in arguments[key] for text in (option, name)]
        if arguments["loss_input_names"]:
            options += ["--loss-input", arguments["loss_input_names"][0]]
        case = trained(f"interop/{path.stem}", "model.onnx", files.pop("model.onnx"), *options, ort=arguments["ort_format"])
        yield case.call(WRITER, "nominal", ".")
        again = Case(f"interop/{path.stem}-again", {name.replace("/", "_"): data for name, data in files.items()})
        for name in again.inputs:
            if "nominal" in name or "external" in name or name.endswith(".data"):
                continue
            if "checkpoint" in name:
                again.call(WRITER, "checkpoint", name, name + "_again")
            else:
                ending = ".onnx" if name.endswith(".ort") else ".onnxtxt"
                again.call(WRITER, "model", name, name + ending)
        yield again


def of_conversions():
    """Between text, protobuf and .ort, and into the form that training starts from."""
    corpus = ROOT / "tests" / "fuzz" / "corpus"
    for name in ("text/control.onnxtxt", "text/functions.onnxtxt", "text/kinds.onnxtxt", "text/mlp.onnxtxt", "text/printed.onnxtxt",
                 "onnx/control.onnx", "onnx/functions.onnx", "onnx/kinds.onnx", "onnx/mlp.onnx", "onnx/storage.onnx",
                 "ort/optimizer", "ort/parts", "ort/relu", "ort/sparse", "ort/training"):
        path = corpus / name
        model = "model" + (path.suffix or ".ort")
        case = Case(f"converted/{name.replace('/', '-').split('.')[0]}", {model: path.read_bytes()})
        yield case.call(WRITER, "model", model, "again.onnx").call(WRITER, "model", model, "again.onnxtxt")
    for name in ("transformer", "quantized", "lstm", "resnet"):
        case = Case(f"converted/{name}", {"model.onnxtxt": stored(ROOT / f"tests/golden/data/{name}.onnxtxt")})
        case.call(WRITER, "model", "model.onnxtxt", "out.onnx").call(WRITER, "model", "out.onnx", "again.onnxtxt")
        case.call(WRITER, "model", "out.onnx", "out.ort").call(WRITER, "model", "out.ort", "back.onnx")
        yield case.call(WRITER, "inferred", "out.onnx", "inferred.onnx")
    for name in ("functions", "older"):
        case = Case(f"converted/{name}", {"model.onnxtxt": (HERE / f"models/{name}.onnxtxt").read_bytes()})
        yield case.call(WRITER, "inferred", "model.onnxtxt", "inferred.onnx").call(WRITER, "model", "model.onnxtxt", "out.ort")


def of_gradients():
    """Gradient models: of whole models by the command, of every operator's node tests in one case."""
    for name, of, wrt in (("mlp", "y", "x"), ("resnet", "y", "x"), ("lstm", "y", "x"), ("transformer", "y", None), ("quantized", "y", "x")):
        data = stored(ROOT / f"tests/golden/data/{name}.onnxtxt")
        parameter = re.search(rb'<\s*(?:float)\[[^\]]*\] "?([\w.]+)"? =', data).group(1).decode()
        values = [text for value in (wrt, parameter) if value for text in ("--wrt", value)]
        case = Case(f"gradients/{name}", {"model.onnxtxt": data})
        for out, options in (("grad.onnx", []), ("kept.onnxtxt", ["--keep-operators"]), ("ones.onnx", ["--ones"])):
            case.call(COMMAND, "grad", "model.onnxtxt", "--of", of, *values, "--out", out, *options)
        yield case
    with zipfile.ZipFile(ROOT / "tests/conformance/node_tests.zip") as archive:
        names = [name for name in archive.namelist() if name.endswith(".onnx") and not name.endswith((".data.onnx", ".shapes.onnx"))]
        nodes = Case("gradients/nodes", {name[:-5]: archive.read(name) for name in sorted(names)})
    yield nodes.call(WRITER, "gradients", ".", *nodes.inputs)


def all_cases():
    for group in (of_repository, of_bench, of_options, of_kinds, of_interop, of_conversions, of_gradients):
        yield from group()
