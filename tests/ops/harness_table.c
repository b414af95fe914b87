// SPDX-License-Identifier: Apache-2.0
// The table itself: every operator once, and every record complete.
#include "harness_internal.h"

#include <string.h>

#include "kernels/kernels.h"

static const char *full_name(const ot_op_def *op, char *text, size_t size)
{
    const bool plain = op->domain == NULL || op->domain[0] == '\0';

    snprintf(text, size, "%s%s%s", plain ? "" : op->domain, plain ? "" : ".", op->name);
    return text;
}

static const ot_op_test *test_of(const ot_op_test *tests, const char *op)
{
    for (; tests != NULL; tests = tests->next)
        if (strcmp(tests->op, op) == 0)
            return tests;
    return NULL;
}

// Of a library that this build may be without.
static bool is_left_out(const ot_kernel *kernel)
{
    return !OT_WITH_ONEDNN && (kernel->flags & OT_KERNEL_LIBRARY) != 0;
}

// Elements of cases are numbers: entries for strings have tests of their own. An entry that several
// records share may have types that this one has not.
static bool takes_numbers(const ot_op_def *op, const ot_kernel *kernel, const ot_port *ports)
{
    uint64_t set, own;

    for (const ot_port *port = ports; port->name != NULL; port++)
        if (ot__types_set(kernel->types, port->type, &set) &&
            (set & ~(UINT64_C(1) << OT_STRING) &
             (ot__types_set(op->types, port->type, &own) ? own : ~UINT64_C(0))) == 0)
            return false;
    return true;
}

// Every kernel that takes layouts has been offered some, if the operator's cases run kernels at
// all.
static void check_formed(const ot_op_def *op, const char *name, const ot_op_test *test)
{
    if (op->kernels == NULL || test->cases->name == NULL)
        return;
    for (const ot_kernel *k = op->kernels; k->name != NULL; k++)
        if ((k->layouts != NULL || (op->flags & OT_OP_ANY_LAYOUT) != 0) && !is_left_out(k) &&
            takes_numbers(op, k, op->inputs) && takes_numbers(op, k, op->outputs) &&
            !was_offered_layouts(k))
            fail("%s %d: no case tries kernel '%s' on another layout than row-major", name,
                 op->since, k->name);
}

// The library's kernels for bf16 want a processor that has it.
static bool is_beyond_processor(const ot_kernel *kernel)
{
    return (kernel->flags & OT_KERNEL_LIBRARY) != 0 && present_isa() < (int)OT__ISA_AVX512_BF16;
}

// Every kernel that takes bf16 or f16 as it is has run in that type, beside the references.
static void check_narrow_run(const ot_op_def *op, const char *name, const ot_op_test *test)
{
    static const ot_dtype types[] = {OT_BF16, OT_F16};

    if (op->kernels == NULL || test->cases->name == NULL)
        return;
    for (const ot_kernel *k = op->kernels; k->name != NULL; k++)
        for (int t = 0; t < 2; t++)
            if ((k->flags & OT_KERNEL_REFERENCE) == 0 && kernel_names(op, k, types[t]) &&
                !is_left_out(k) && !is_beyond_processor(k) && !was_run_narrow(k, types[t]))
                fail("%s %d: no case runs kernel '%s' in %s", name, op->since, k->name,
                     ot_dtype_name(types[t]));
}

// Every operator that trains in f32 trains in bf16 and f16.
static void check_narrow_shown(const ot_op_def *op, const char *name, const ot_op_test *test)
{
    if (((op->grad != NULL && op->kernels != NULL) || ot__op_is_composed(op)) &&
        test->cases->name != NULL && (op->flags & (OT_OP_REARRANGE | OT_OP_VIEW)) == 0 &&
        !was_shown_narrow(op))
        fail("%s %d: no case shows its gradient in bf16 and f16", name, op->since);
}

void check_table(ot_op_test *tests, bool is_plain_run, bool is_narrow_run)
{
    for (int i = 0; i < ot__op_count(); i++) {
        const ot_op_def *records = ot__op_records(i);
        char name[100], other[100];

        full_name(records, name, sizeof(name));
        if (ot__op_find(records->domain, records->name, INT64_MAX) == NULL)
            fail("%s is listed under another name or domain than its record's", name);
        for (int k = 0; k < i; k++)
            if (strcmp(full_name(ot__op_records(k), other, sizeof(other)), name) == 0)
                fail("%s stands twice in the table", name);
        if (ot__op_check_records(records) != OT_OK)
            fail("%s", ot_error_message());
        if (test_of(tests, name) == NULL)
            fail("%s has no cases in tests/ops", name);
        else
            for (const ot_op_def *op = records; op->name != NULL; op++) {
                if (is_plain_run)
                    check_formed(op, name, test_of(tests, name));
                if (is_narrow_run) {
                    check_narrow_run(op, name, test_of(tests, name));
                    check_narrow_shown(op, name, test_of(tests, name));
                }
            }
    }
}
