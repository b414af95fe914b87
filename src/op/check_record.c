// SPDX-License-Identifier: Apache-2.0
// Is a record complete: what everything else relies on, of the operators here (tests/ops) and of
// those that a library brings (ops/library.c).
#include <stdlib.h>
#include <string.h>

#include "op/op.h"

enum {
    MOST_ENTRIES = 256, // of a list, before which its end must come
    ALL_PORT_FLAGS = 2 * OT_PORT_TYPE_ONLY - 1,
    ALL_OP_FLAGS = 2 * OT_OP_TENSORWISE - 1,
    ALL_KERNEL_FLAGS = 2 * OT_KERNEL_MIXED - 1,
    ALL_ATTR_FLAGS = 2 * OT_ATTR_HAS_DEFAULT - 1,
};

// OT_ERR_INVALID "example.Thing, opset 1: ...".
OT_COLD static ot_status wrong(const ot_op_def *op, const char *format, ...) OT_PRINTF(2, 3);
static ot_status wrong(const ot_op_def *op, const char *format, ...)
{
    const bool is_plain = op->domain == NULL || op->domain[0] == '\0';
    va_list args;

    va_start(args, format);
    (void)ot__error_v(OT_ERR_INVALID, format, args);
    va_end(args);
    return ot__error_prefix(OT_ERR_INVALID, "%s%s%s, opset %d", is_plain ? "" : op->domain,
                            is_plain ? "" : ".", op->name, op->since);
}

// ---- types ----

static bool is_type_word(const char *word, size_t length)
{
    char name[16];
    ot_dtype dtype;

    if (length >= sizeof name)
        return false;
    memcpy(name, word, length);
    name[length] = '\0';
    return strcmp(name, "any") == 0 || ot__dtype_from_name(name, &dtype);
}

// "T: f32 f64; I: i32 i64"; NULL is fine.
static bool is_types_text(const char *text)
{
    while (text != NULL && *(text += strspn(text, " ;")) != '\0') {
        const size_t length = strcspn(text, ": ;");

        if (length == 0 || text[length] != ':')
            return false;
        text += length + 1;
        for (text += strspn(text, " "); *text != '\0' && *text != ';'; text += strspn(text, " ")) {
            const size_t word = strcspn(text, " ;");

            if (!is_type_word(text, word))
                return false;
            text += word;
        }
    }
    return true;
}

// ---- ports and attributes ----

static ot_status check_port(const ot_op_def *op, const ot_port *port, const char *what, int index)
{
    if (port->name[0] == '\0')
        return wrong(op, "%s %d has an empty name", what, index);
    if (port->type == NULL || ot__op_type_set(op, port->type) == 0)
        return wrong(op, "%s %d (%s) has type '%s', which is neither a variable of '%s' nor a type",
                     what, index, port->name, port->type == NULL ? "" : port->type,
                     op->types == NULL ? "" : op->types);
    if ((port->flags & ~(unsigned)ALL_PORT_FLAGS) != 0)
        return wrong(op, "%s %d (%s) has unknown flags 0x%x", what, index, port->name,
                     port->flags & ~(unsigned)ALL_PORT_FLAGS);
    if ((port->flags & OT_PORT_VARIADIC) != 0 && port[1].name != NULL)
        return wrong(op, "%s %d (%s) is variadic, but not the last", what, index, port->name);
    return OT_OK;
}

static ot_status check_record_ports(const ot_op_def *op, const ot_port *ports, const char *what)
{
    for (int i = 0; ports != NULL && ports[i].name != NULL; i++) {
        if (i == MOST_ENTRIES)
            return wrong(op, "the list of %ss has no end {0}", what);
        OT_TRY(check_port(op, &ports[i], what, i));
        for (int k = 0; k < i; k++)
            if (strcmp(ports[k].name, ports[i].name) == 0)
                return wrong(op, "%ss %d and %d are both called %s", what, k, i, ports[i].name);
    }
    return OT_OK;
}

static ot_status check_attr(const ot_op_def *op, const ot_attr_spec *spec)
{
    if (spec->kind < OT_ATTR_FLOAT || spec->kind > OT_ATTR_TYPE_PROTOS)
        return wrong(op, "attribute '%s' has unknown kind %d", spec->name, spec->kind);
    if ((spec->flags & ~(unsigned)ALL_ATTR_FLAGS) != 0)
        return wrong(op, "attribute '%s' has unknown flags 0x%x", spec->name,
                     spec->flags & ~(unsigned)ALL_ATTR_FLAGS);
    if ((spec->flags & OT_ATTR_HAS_DEFAULT) != 0 && spec->kind == OT_ATTRIBUTE_STRING &&
        spec->s == NULL)
        return wrong(op, "attribute '%s' has the default NULL", spec->name);
    return OT_OK;
}

static ot_status check_attrs(const ot_op_def *op)
{
    for (int i = 0; op->attrs != NULL && op->attrs[i].name != NULL; i++) {
        if (i == MOST_ENTRIES)
            return wrong(op, "the list of attributes has no end {0}");
        OT_TRY(check_attr(op, &op->attrs[i]));
        for (int k = 0; k < i; k++)
            if (strcmp(op->attrs[k].name, op->attrs[i].name) == 0)
                return wrong(op, "attribute '%s' stands twice", op->attrs[i].name);
    }
    return OT_OK;
}

// ---- kernels ----

static ot_status check_kernel(const ot_op_def *op, const ot_kernel *k, bool after_reference)
{
    const bool is_reference = (k->flags & OT_KERNEL_REFERENCE) != 0;

    if (k->run == NULL)
        return wrong(op, "kernel '%s' has no run", k->name);
    if (!is_types_text(k->types))
        return wrong(op, "kernel '%s': types '%s' are not as in 'T: f32 f64; I: i64'", k->name,
                     k->types);
    if ((k->flags & ~(unsigned)ALL_KERNEL_FLAGS) != 0)
        return wrong(op, "kernel '%s' has unknown flags 0x%x", k->name,
                     k->flags & ~(unsigned)ALL_KERNEL_FLAGS);
    if (is_reference != (strcmp(k->name, "ref") == 0))
        return wrong(op, "kernel '%s': reference kernels, and no others, are called ref", k->name);
    if (is_reference && k->can_run != NULL)
        return wrong(op, "the reference kernel has can_run: it must take everything");
    if (!is_reference && after_reference)
        return wrong(op, "kernel '%s' stands behind the reference kernels, which come last",
                     k->name);
    return OT_OK;
}

// The set, and what is converted to a type of it (edges.c).
static uint64_t with_converted(uint64_t set)
{
    for (int t = 1; t < 64; t++)
        if ((set >> ot__edges_type((ot_dtype)t) & 1) != 0)
            set |= UINT64_C(1) << t;
    return set;
}

// Every element type of every variable is taken by a reference kernel, some by conversion.
static ot_status check_types_taken(const ot_op_def *op, const ot_port *port)
{
    uint64_t taken = 0, set;
    char text[160];

    for (const ot_kernel *k = op->kernels; k->name != NULL; k++)
        if ((k->flags & OT_KERNEL_REFERENCE) != 0)
            taken |= ot__types_set(k->types, port->type, &set) ? set : UINT64_MAX;
    taken = ot__op_type_set(op, port->type) & ~with_converted(taken);
    if (taken != 0)
        return wrong(op, "no reference kernel takes %s at %s",
                     ot__types_text(taken, text, sizeof text), port->name);
    return OT_OK;
}

static ot_status check_kernels(const ot_op_def *op)
{
    bool has_reference = false;

    for (int i = 0; op->kernels != NULL && op->kernels[i].name != NULL; i++) {
        if (i == MOST_ENTRIES)
            return wrong(op, "the list of kernels has no end {0}");
        OT_TRY(check_kernel(op, &op->kernels[i], has_reference));
        has_reference = has_reference || (op->kernels[i].flags & OT_KERNEL_REFERENCE) != 0;
    }
    if (!has_reference)
        return wrong(op, "there is no reference kernel ('ref', OT_KERNEL_REFERENCE)");
    for (const ot_port *port = op->inputs; port != NULL && port->name != NULL; port++)
        OT_TRY(check_types_taken(op, port));
    return OT_OK;
}

// ---- the record ----

static ot_status check_record_gradient(const ot_op_def *op)
{
    const bool is_no_grad = (op->flags & OT_OP_NO_GRAD) != 0;

    if (ot__op_is_composed(op))
        return op->grad == NULL && !is_no_grad
                   ? OT_OK
                   : wrong(op, "it is composed of other operators, whose gradients it has: no grad "
                               "and no OT_OP_NO_GRAD");
    if ((op->grad == NULL) != is_no_grad)
        return wrong(op,
                     is_no_grad ? "both grad and OT_OP_NO_GRAD" : "neither grad nor OT_OP_NO_GRAD");
    return OT_OK;
}

static ot_status check_one(const ot_op_def *op)
{
    if (op->since < 1)
        return wrong(op, "opsets count from 1");
    if (!is_types_text(op->types))
        return wrong(op, "types '%s' are not as in 'T: f32 f64; I: i64'", op->types);
    if ((op->flags & ~(unsigned)ALL_OP_FLAGS) != 0)
        return wrong(op, "unknown flags 0x%x", op->flags & ~(unsigned)ALL_OP_FLAGS);
    if (op->outputs == NULL)
        return wrong(op, "outputs is NULL");
    OT_TRY(check_record_ports(op, op->inputs, "input"));
    OT_TRY(check_record_ports(op, op->outputs, "output"));
    OT_TRY(check_attrs(op));
    if (op->upgrade != NULL)
        return op->since < OT_OP_BASE_OPSET
                   ? OT_OK
                   : wrong(op, "only records below opset %d are raised", OT_OP_BASE_OPSET);
    if (op->infer == NULL)
        return wrong(op, "infer is NULL");
    OT_TRY(check_record_gradient(op));
    return ot__op_is_composed(op) ? OT_OK : check_kernels(op);
}

static bool is_same_name(const char *a, const char *b)
{
    return strcmp(a == NULL ? "" : a, b == NULL ? "" : b) == 0;
}

ot_status ot__op_check_records(const ot_op_def *records)
{
    if (records->name == NULL || records->name[0] == '\0')
        return ot__error(OT_ERR_INVALID, "an operator has no name");
    for (int i = 0; records[i].name != NULL; i++) {
        const ot_op_def *op = &records[i];

        if (i == MOST_ENTRIES)
            return wrong(records, "the list of records has no end {0}");
        if (!is_same_name(op->name, records->name) || !is_same_name(op->domain, records->domain))
            return wrong(op, "stands among the records of %s", records->name);
        if (i > 0 && op->since <= op[-1].since)
            return wrong(op, "stands behind opset %d: records stand in the order of their opsets",
                         op[-1].since);
        OT_TRY(check_one(op));
    }
    return OT_OK;
}
