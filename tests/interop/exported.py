# SPDX-License-Identifier: Apache-2.0
"""The models that matrix.py exported, in plain onnxruntime: exported.py FOLDER

FOLDER/exports has a folder per case: expected.npz, with input, expected output and how far it may be off, and the models.
Writes FOLDER/exported.json: for every case the largest share of what is allowed.
"""
import json
import pathlib
import sys

import numpy as np
import onnxruntime


def share(path, expected):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options)
    names = [value.name for value in session.get_inputs()], [value.name for value in session.get_outputs()]
    if names != (["x"], ["y"]):
        return f"inputs and outputs are {names}, expected x and y"
    found = session.run(None, {"x": expected["x"]})[0]
    distance = float(np.linalg.norm(found - expected["y"]) / expected["allowed"])
    return distance if distance <= 1 else f"y is off by {distance:.3g} times what is allowed"


def main():
    onnxruntime.set_default_logger_severity(3)
    folder = pathlib.Path(sys.argv[1])
    results, failed, count = {}, 0, 0
    for path in sorted(folder.glob("exports/*/expected.npz")):
        case, expected = path.parent, np.load(path)
        for model in sorted(case.glob("*.onnx")):
            found, count = share(str(model), expected), count + 1
            if isinstance(found, str):
                failed += 1
                print(f"    {case.name}: exported from {model.stem}: {found}", flush=True)
            else:
                results[case.name] = max(found, results.get(case.name, 0.0))
    version = onnxruntime.__version__
    print(f"{count} exported models in onnxruntime {version}: {'FAILED' if failed else 'ok'}, {failed} differ", flush=True)
    folder.joinpath("exported.json").write_text(json.dumps({"version": version, "count": count, "shares": results}))
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
