#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a test that calls every public function without what it needs: each pointer NULL in turn while the other
arguments are good, all of them NULL, counts below zero, positions that are none; and, in debug builds, with each handle
in turn destroyed.

Usage: generate.py INCLUDE_DIR > calls.c

What a function does not take NULL for, it must refuse with OT_ERR_INVALID and a message that says so; what it may
be called without is listed in OPTIONAL. A function with an argument of a type that is not known here is an error, so
that new ones are not left out.
"""

import re
import sys
from pathlib import Path

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
DECLARATION = re.compile(r"OT_API\s+([^;]*?)\b(ot_\w+)\s*\(((?:[^()]|\([^()]*\))*)\)")

# Only the library makes these, and hands them to an operator's callbacks for the time of the call.
CONTEXTS = ("ot_infer", "ot_grad", "ot_upgrade", "ot_prep", "ot_run", "ot_node")

# May be NULL: the argument's name, alone or behind that of the function.
OPTIONAL = {
    "options", "findings", "record", "ot_record_write.data", "prefix", "validation", "last", "which", "output_names",
    "validation_dataset", "ot_checkpoint_save_buffer.to", "ot_session_save_buffer.to",
    "ot_train_describe.batches", "ot_record_data.batches",
    "violations", "ot_session_create.eval", "ot_session_create.optimizer",
    "ot_session_load.eval", "ot_session_load.optimizer",
    "ot_session_load_buffers.eval", "ot_session_load_buffers.optimizer",
    "ot_session_set_optimizer.optimizer", "ot_session_update.info",
    "how", "ot_config_set_train_function.function", "context", "description", "ot_trainer_create.optimizer",
    "ot_trainer_set_schedule.schedule", "user_dict",
    "ot_session_set_shards.state", "ot_session_check_shards.state", "ot_session_set_shards.report",
    "ot_session_check_shards.report",
    "ot_trainer_set_shards.state", "ot_trainer_check_shards.state", "ot_trainer_set_shards.report",
    "ot_trainer_check_shards.report",
    "ot_dict_load_hdf5.key", "ot_dict_load_hdf5_apart.key",
    "ot_dict_take_shards.parts", "ot_shards_save.comm", "ot_shards_load.comm", "ot_shards_job_start.comm",
    "ot_shards_job_prepare.comm", "ot_resume_create.comm",
    "ot_artifacts_set_optimizer_model.optimizer", "ot_tensor_create_strings.n_bytes",
}  # fmt: skip

# Counts and positions: any number may come.
COUNT = re.compile(r"(n_\w+|n|count)$")
POSITION = re.compile(r"(index|axis|mode|which|field)$")

GOOD = {  # by type; `w` is the world of the case
    "const ot_model *": "w.model",
    "ot_model *": "w.model",
    "ot_model **": "&w.out_model",
    "const ot_artifacts *": "w.artifacts",
    "ot_artifacts *": "w.artifacts",
    "ot_artifacts **": "&w.out_artifacts",
    "const ot_checkpoint *": "w.checkpoint",
    "ot_checkpoint *": "w.checkpoint",
    "ot_checkpoint **": "&w.out_checkpoint",
    "const ot_session *": "w.session",
    "ot_session *": "w.session",
    "ot_session **": "&w.out_session",
    "const ot_trainer *": "w.trainer",
    "ot_trainer *": "w.trainer",
    "ot_trainer **": "&w.out_trainer",
    "ot_runner *": "w.runner",
    "ot_runner **": "&w.out_runner",
    "const ot_gradients *": "w.gradients",
    "ot_gradients *": "w.gradients",
    "ot_gradients **": "&w.out_gradients",
    "const ot_report *": "w.report",
    "ot_report *": "w.report",
    "ot_report **": "&w.out_report",
    "const ot_record *": "w.record",
    "ot_record *": "w.record",
    "ot_record **": "&w.out_record",
    "const ot_record_given *": "&w.given",
    "ot_log_level *": "&w.out_level",
    "const ot_findings *": "w.findings",
    "ot_findings *": "w.findings",
    "ot_findings **": "&w.out_findings",
    "const ot_config *": "w.config",
    "ot_config *": "w.config",
    "ot_config **": "&w.out_config",
    "ot_config_source *": "&w.out_source",
    "const ot_dict *": "w.dict",
    "ot_dict *": "w.dict",
    "ot_dict **": "&w.out_dict",
    "ot_dict_kind *": "&w.out_dict_kind",
    "const ot_comm *": "w.comm",
    "ot_comm *": "w.comm",
    "ot_comm **": "&w.out_comm",
    "const ot_transport *": "&w.transport",
    "ot_agreement *": "&w.agreement",
    "ot_comm_counters *": "&w.counters",
    "const ot_sharding *": "w.sharding",
    "ot_sharding *": "w.sharding",
    "ot_sharding **": "&w.out_sharding",
    "const ot_cut *": "&w.cut",
    "const ot_box *": "&w.box",
    "ot_box *": "w.out_boxes",
    "ot_shard_box *": "&w.out_shard_box",
    "const int64_t **": "&w.out_integers",
    "ot_tensor *const *": "NULL",
    "const ot_shards **": "&w.out_shards",
    "const ot_shards_report *": "w.shards_report",
    "ot_shards_report *": "w.shards_report",
    "ot_shards_report **": "&w.out_shards_report",
    "ot_state_sink": "world_sink",
    "const ot_shards_item *": "&w.item",
    "ot_shards_info *": "&w.shards_info",
    "ot_shards_tensor *": "&w.shards_tensor",
    "ot_resume *": "w.resume",
    "const ot_resume *": "w.resume",
    "ot_resume **": "&w.out_resume",
    "ot_shards_job *": "w.job",
    "ot_shards_job **": "&w.out_job",
    "const ot_shards_reader *": "w.reader",
    "ot_shards_reader *": "w.reader",
    "ot_shards_reader **": "&w.out_reader",
    "const void **": "&w.out_bytes",
    "const ot_dataset *": "w.dataset",
    "ot_dataset *": "w.dataset",
    "ot_dataset **": "&w.out_dataset",
    "const ot_batches *": "w.batches",
    "ot_batches *": "w.batches",
    "ot_batches **": "&w.out_batches",
    "const ot_block *": "w.block",
    "ot_block *": "w.block",
    "ot_block **": "&w.out_block",
    "const ot_value *": "w.value",
    "ot_value *": "w.value",
    "ot_value *const *": "&w.value",
    "ot_value **": "&w.out_value",
    "const ot_tensor *": "w.tensor",
    "ot_tensor *": "w.tensor",
    "ot_tensor **": "&w.out_tensor",
    "const ot_tensor *const *": "w.tensors",
    "const ot_tensor **": "&w.out_borrowed",
    "const ot_feed *": "&w.feed",
    "const ot_bytes *": "&w.bytes",
    "const ot_binding *": "&w.binding",
    "const ot_schedule *": "&w.schedule",
    "const ot_step_info *": "&w.step_info",
    "ot_step_info *": "&w.step_info",
    "ot_memory *": "&w.memory",
    "const ot_parallel_ranks *": "&w.ranks",
    "ot_session_options *": "&w.session_options",
    "const ot_model_description *": "NULL",
    "const ot_optimizer_options *": "NULL",
    "ot_loss_scaler *": "&w.loss_scaler",
    "const ot_shape *": "&w.shape",
    "ot_shape *": "&w.out_shape",
    "ot_dtype *": "&w.out_dtype",
    "ot_property_kind *": "&w.out_kind",
    "ot_metrics *": "&w.out_metrics",
    "ot_hyper_info *": "&w.out_hyper",
    "ot_data_options *": "&w.data",
    "ot_batches_options *": "&w.batches_options",
    "ot_train_options *": "&w.train",
    "const char *": '"w"',
    "char *": "NULL",
    "char **": "&w.out_text",
    "const char **": "&w.out_name",
    "const char *const *": "w.names",
    "const void *": "w.numbers",
    "void *": "w.numbers",
    "const double *": "w.rates",
    "ot_update_info *": "&w.update",
    "const float *": "w.numbers",
    "float *": "w.numbers",
    "const int *": "w.positions",
    "int *": "w.positions",
    "const int64_t *": "w.integers",
    "int64_t *": "w.integers",
    "double *": "&w.out_double",
    "size_t *": "&w.out_size",
    "const size_t *": "w.sizes",
    "const ot_allocator *": "NULL",
    "ot_log_function": "NULL",
    "ot_config_train_function": "NULL",
    "size_t": "sizeof w.numbers",
    "int": "0",
    "unsigned": "0",
    "int64_t": "1",
    "uint64_t": "1",
    "double": "0.5",
    "float": "0.5f",
    "ot_dtype": "OT_F32",
}
# Handles, and what holds some: `dead` has been freed with all that it was.
HANDLES = re.compile(
    r"(const )?ot_(artifacts|batches|block|checkpoint|comm|config|dataset|dict|findings|gradients|model|record|report|resume|runner|session|sharding|shards_job|shards_reader|shards_report|tensor|trainer) \*$"
    r"|const ot_tensor \*const \*$|const ot_feed \*$"
)
OPTIONS = re.compile(r"const ot_\w+_options \*$")


def functions(include):
    for path in sorted((include / "onnxtrain").glob("*.h")):
        lines = [line for line in COMMENT.sub("", path.read_text()).splitlines() if not line.startswith("#")]
        for result, name, arguments in DECLARATION.findall("\n".join(lines)):
            if not re.match(rf"(const )?({'|'.join(CONTEXTS)})\b", arguments.strip()):
                arguments = [split(a) for a in arguments.split(",") if a.strip() != "void"]
                yield " ".join(result.split()), name, arguments


def split(argument):
    kind, name = re.fullmatch(r"(.*?)(\w+)", " ".join(argument.split())).groups()
    return kind.strip(), name


def good(function, kind, name):
    if function == "ot_train_batches" and name == "validation":
        return "&w.out_more_batches"
    if COUNT.match(name) and kind in ("int", "int64_t"):
        return "w.n_floats" if name == "count" else "1"
    if kind == "const char *" and name in ("path", "folder", "training", "eval", "optimizer"):
        return "w.path"
    if OPTIONS.match(kind):
        return "NULL"
    if kind not in GOOD and not is_pointer(kind):
        return f"({kind})0"  # of an enumeration
    if kind not in GOOD:
        sys.exit(f"{function}: no value for an argument of type '{kind}': add one to GOOD of {__file__}")
    return GOOD[kind]


def is_pointer(kind):
    return kind.endswith("*") or kind in ("ot_log_function", "ot_config_train_function", "ot_state_sink")


def is_optional(function, name):
    return name in OPTIONAL or f"{function}.{name}" in OPTIONAL


def call(result, function, values, what, expected):
    text = f"{function}({', '.join(values)})"
    if result == "ot_status":
        text = f'check_{expected}({text}, "{function}, {what}")'
    elif result != "void":
        text = f"(void){text}"
    return f"    {{\n        world w;\n        world_make(&w);\n        {text};\n        world_free(&w);\n    }}\n"


def cases(result, function, arguments):
    values = [good(function, kind, name) for kind, name in arguments]
    pointers = [i for i, (kind, _) in enumerate(arguments) if is_pointer(kind)]
    required = [i for i in pointers if not is_optional(function, arguments[i][1])]
    empty = ["NULL" if i in pointers else "0" for i in range(len(arguments))]
    empty = [f"({arguments[i][0]})0" if v == "0" else v for i, v in enumerate(empty)]
    yield call(result, function, empty, "all NULL", "null" if required else "message")
    if not function.endswith(("_destroy", "_free", "_take_checkpoint", "_take_tensor", "ot_set_allocator", "ot_set_log")):
        yield call(result, function, values, "all given", "message")
    for i in pointers:
        if len(pointers) > 1 or len(arguments) > 1:
            with_null = [*values[:i], "NULL", *values[i + 1 :]]
            yield call(result, function, with_null, f"{arguments[i][1]} NULL", "null" if i in required else "message")
    for i, (kind, name) in enumerate(arguments):
        numbers = ["-1"] if COUNT.match(name) else ["-1", "1000000"] if POSITION.match(name) else []
        for number in numbers if kind in ("int", "int64_t", "ot_mode", "ot_model_field") else []:
            with_number = [*values[:i], f"({kind})({number})", *values[i + 1 :]]
            yield call(result, function, with_number, f"{name} {number}", "refused")


def cases_of_the_dead(result, function, arguments):
    """With a destroyed handle in the place of each: memory that is gone, which the address sanitizer watches."""
    values = [good(function, kind, name) for kind, name in arguments]
    for i, (kind, name) in enumerate(arguments):
        if HANDLES.match(kind):
            with_dead = [*values[:i], values[i].replace("w.", "dead."), *values[i + 1 :]]
            call = f"{function}({', '.join(with_dead)})"
            call = call if result == "void" else f"(void){call}"
            yield (f"    {{\n        world w, dead;\n        world_make(&w);\n        world_make_dead(&dead);\n        {call};\n"
                   f'        check_dead("{function}, {name} destroyed");\n        world_free(&w);\n    }}\n')


def main():
    names, of_the_dead = [], []
    print('// Made by tests/null/generate.py.\n#include "null/world.h"\n')
    for result, function, arguments in functions(Path(sys.argv[1])):
        names.append(function)
        print(f"static void {function}_survives(void **state)\n{{\n    (void)state;")
        print("".join(cases(result, function, arguments)) + "}\n")
        dead = "".join(cases_of_the_dead(result, function, arguments))
        if dead:
            of_the_dead.append(function)
            print(f"#ifndef NDEBUG\nstatic void {function}_knows_the_dead(void **state)\n{{\n    (void)state;\n{dead}}}\n#endif\n")
    print("int main(void)\n{\n    const struct CMUnitTest tests[] = {")
    print("".join(f"        cmocka_unit_test({name}_survives),\n" for name in names))
    print("#ifndef NDEBUG")
    print("".join(f"        cmocka_unit_test({name}_knows_the_dead),\n" for name in of_the_dead) + "#endif\n    };\n")
    print("    return cmocka_run_group_tests(tests, make_folder, remove_folder);\n}")
    return 0 if len(names) > 100 else 1


if __name__ == "__main__":
    sys.exit(main())
