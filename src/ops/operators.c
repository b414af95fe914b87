// SPDX-License-Identifier: Apache-2.0
// The operator table as text, for `onnxtrain ops` and the documentation.
#include <string.h>

#include "onnxtrain/operators.h"
#include "ops/table.h"

// The record that models of today have; of an operator that is only raised, its last.
static const ot_op_def *newest_record(const ot_op_def *records)
{
    while (records[1].name != NULL)
        records++;
    return records;
}

// Whether gradients reach what is read at the port: floats, of which the record does not say no.
static bool passes_gradient(const ot_op_def *op, const ot_port *port)
{
    const uint64_t floats = UINT64_C(1) << OT_F32 | UINT64_C(1) << OT_F64;

    return (port->flags & (OT_PORT_NO_GRAD | OT_PORT_STATE | OT_PORT_TYPE_ONLY)) == 0 &&
           (ot__op_type_set(op, port->type) & floats) != 0;
}

// "yes", "none", "rewritten", or a list of the inputs that have one.
static void write_gradient(ot__buf *out, const ot_op_def *op)
{
    // One that is only raised has the gradient of what it becomes.
    const bool is_raised = op->upgrade != NULL && (op->flags & OT_OP_NO_GRAD) == 0;
    const bool has_one = is_raised || ot__op_is_differentiable(op) || ot__op_is_composed(op);
    bool reaches_all = true;

    for (const ot_port *port = op->inputs; port != NULL && port->name != NULL; port++)
        reaches_all = reaches_all && passes_gradient(op, port);
    if (!has_one || reaches_all) {
        ot__json_string(out, "gradient",
                        has_one                                    ? "yes"
                        : op->upgrade == NULL && op->train != NULL ? "rewritten"
                                                                   : "none");
        return;
    }
    ot__json_open(out, "gradient", '[');
    for (const ot_port *port = op->inputs; port->name != NULL; port++)
        if (passes_gradient(op, port))
            ot__json_string(out, NULL, port->name);
    ot__json_close(out, ']');
}

static void write_kernels(ot__buf *out, const ot_op_def *op)
{
    ot__json_open(out, "kernels", '[');
    if (ot__op_is_composed(op))
        ot__json_string(out, NULL, "composed");
    for (const ot_kernel *k = op->kernels; k != NULL && k->name != NULL; k++)
        if (k == op->kernels || strcmp(k->name, k[-1].name) != 0)
            ot__json_string(out, NULL, k->name);
    ot__json_close(out, ']');
}

static void write_certificate(ot__buf *out, const ot_op_def *op)
{
    const ot__certificate *c = ot__op_certificate(op);

    if (c == NULL) {
        ot__json_raw(out, "worst_error", "null");
        ot__json_raw(out, "cases", "null");
        ot__json_raw(out, "node_tests", "null");
        return;
    }
    ot__json_float(out, "worst_error", c->worst_error);
    ot__json_int(out, "cases", c->n_cases);
    ot__json_int(out, "node_tests", c->n_node_tests);
}

static void write_operator(ot__buf *out, const ot_op_def *records)
{
    const ot_op_def *op = newest_record(records);

    ot__json_open(out, NULL, '{');
    ot__json_string(out, "name", op->name);
    ot__json_string(out, "domain",
                    op->domain != NULL && op->domain[0] != '\0' ? op->domain : "ai.onnx");
    write_gradient(out, op);
    ot__json_open(out, "opsets", '[');
    for (const ot_op_def *r = records; r->name != NULL; r++)
        ot__json_int(out, NULL, r->since);
    ot__json_close(out, ']');
    ot__json_string(out, "types", op->upgrade == NULL && op->types != NULL ? op->types : "");
    write_kernels(out, op);
    write_certificate(out, op);
    ot__json_bool(out, "internal", (op->flags & OT_OP_INTERNAL) != 0);
    ot__json_close(out, '}');
}

static const struct {
    const char *name, *types, *gradient;
    int opsets[3];
} without_record[] = {
    {"If", "B: bool; V: any string", "yes", {1, 11, 13}},
    {"Loop", "I: i64; B: bool; V: any string", "yes", {1, 11, 13}},
    {"Scan", "I: i64; V: any", "yes", {8, 9, 11}},
    {"SequenceEmpty", "S: any string", "none", {11}},
    {"SequenceConstruct", "T: any string", "yes", {11}},
    {"SequenceAt", "S: any string; I: i32 i64", "yes", {11}},
    {"SequenceInsert", "S: any string; I: i32 i64", "yes", {11}},
    {"SequenceErase", "S: any string; I: i32 i64", "yes", {11}},
    {"SequenceLength", "S: any string", "none", {11}},
    {"SequenceMap", "S: any string; V: any string", "yes", {17}},
    {"SplitToSequence", "T: any string; I: i32 i64", "yes", {11}},
    {"ConcatFromSequence", "S: any string", "yes", {11}},
};

const char *ot__op_without_record(int i)
{
    return i < (int)OT_COUNT(without_record) ? without_record[i].name : NULL;
}

static void write_without_record(ot__buf *out, size_t i)
{
    const ot_op_def op = {.name = without_record[i].name};

    ot__json_open(out, NULL, '{');
    ot__json_string(out, "name", without_record[i].name);
    ot__json_string(out, "domain", "ai.onnx");
    ot__json_string(out, "gradient", without_record[i].gradient);
    ot__json_open(out, "opsets", '[');
    for (size_t k = 0; k < OT_COUNT(without_record[i].opsets) && without_record[i].opsets[k] > 0;
         k++)
        ot__json_int(out, NULL, without_record[i].opsets[k]);
    ot__json_close(out, ']');
    ot__json_string(out, "types", without_record[i].types);
    ot__json_open(out, "kernels", '[');
    ot__json_string(out, NULL, "composed");
    ot__json_close(out, ']');
    write_certificate(out, &op);
    ot__json_bool(out, "internal", false);
    ot__json_close(out, '}');
}

ot_status ot_operators_json(char **out)
{
    ot__buf text = {0};
    ot_status st;

    OT_TRY(OT_OUT(out));
    ot__json_open(&text, NULL, '[');
    for (int i = 0, n = ot__op_count(); i < n; i++)
        write_operator(&text, ot__op_records(i));
    for (size_t i = 0; i < OT_COUNT(without_record); i++)
        write_without_record(&text, i);
    ot__json_close(&text, ']');
    st = ot__buf_status(&text);
    if (st == OT_OK)
        *out = text.data;
    else
        ot__buf_deinit(&text);
    return st;
}
