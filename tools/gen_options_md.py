#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/options.md from the table of options.

usage: gen_options_md.py PROGRAM FILE [--check]

PROGRAM is list_options, FILE the page; --check compares instead of writing and fails when they differ.
"""
import subprocess
import sys

HEAD = """# Options and configurations

Made from the table of options by `./dev docs`; do not edit.

A configuration is JSON (`onnxtrain/config.h`):

```json
{
  "model": "model.onnx",
  "model_desc": {"inputs": [["x", ["batch", 4]], ["labels", ["batch"]]], "outputs": [["loss", [], true], ["scores", ["batch", 3]]]},
  "optimizer": {"name": "AdamWOptimizer", "lr": 0.001, "params": [{"params": ["*.bias"], "weight_decay_coef": 0, "lr_factor": 0.5}]},
  "options": {"batch": {"gradient_accumulation_steps": 4}, "onnxtrain": {"seed": 1}},
  "train": {"epochs": 3}
}
```

- It is at most 1 MiB long and 16 levels deep. A name twice in an object, bytes after it, fractions for integers and numbers beyond doubles are errors. All that is wrong is told at once; of an
  unknown name, the nearest known one.
- `model_desc`: a value is `[name, shape]`, an output may be `[name, shape, is_loss]`. A dim size is a number, or a text, which stands for the same number wherever it is used in a step.
- `optimizer`: `name` is that of the operator; `lr`, `max_norm` (clip the global norm; 0: no clipping), `average_decay`, and its hyper-parameters by their names, also with `_coef` behind. Each object in
  `params` has names or patterns (`*`, `?`) of parameters and what differs for them; later ones go before earlier ones.
- `train`: options of the command by their names without dashes. A list gives an option several times.
- Values also come from lines `path=value`, as `options.batch.gradient_accumulation_steps=4` or `model="model.onnx"`. Flags go before files, and files before the environment. Objects of several
  sources are merged, but one with a `type` replaces the one before.

## Options

Names and defaults are those of ONNX Runtime's `ORTTrainerOptions`; our own stand below `onnxtrain`. *Honoured*: it does what it says. *Accepted without effect*: a warning, where it is set to
something else than its default. *Refused unless default*: an error that names it.

| option | type | default | effect | what it is |
|---|---|---|---|---|
"""

TAIL = """
## Schedules

`options.lr_scheduler` is an object with a `type`. Those of ONNX Runtime take `total_steps` (at least 1) and `warmup` (0.002: the part of them over which the rate rises from 0; at least 0, below 1):

| type | more |
|---|---|
| `ConstantWarmupLRScheduler` | |
| `CosineWarmupLRScheduler` | `cycles` (0.5), above 0 |
| `LinearWarmupLRScheduler` | |
| `PolyWarmupLRScheduler` | `lr_end` (1e-7), below the learning rate; `power` (1.0) |

Our own, `constant`, `linear`, `cosine`, `step`, `exponential` and `polynomial`, take `warmup_steps` (0), `total_steps` (0), `step_size` (1), `gamma` (0.1), `power` (1), `end_factor` (0) and `cycles` (0); see
[learning-rate.md](learning-rate.md). Effective options are written in this form.

## Loss scaler

`options.mixed_precision.loss_scaler` is `{"type": "DynamicLossScaler"}` with `automatic_update` (true), `loss_scale` (65536), `up_scale_window` (2000), `min_loss_scale` (1) and `max_loss_scale` (16777216).
"""


def page(program):
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    rows = []
    for line in lines:
        path, kind, fallback, effect, text = line.split("\t")
        rows.append(f"| `{path}` | {kind} | `{fallback}` | {effect} | {text} |")
    return HEAD + "\n".join(rows) + "\n" + TAIL


def main():
    program, path = sys.argv[1:3]
    text = page(program)
    if "--check" not in sys.argv[3:]:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    with open(path, encoding="utf-8") as file:
        if file.read() == text:
            return 0
    print(f"{path} is not what the table of options says; `./dev docs` writes it anew", file=sys.stderr)
    return 1


sys.exit(main())
