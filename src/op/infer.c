// SPDX-License-Identifier: Apache-2.0
// Shape inference of one node: the context its record's `infer` sees, and what becomes of its
// results.
#include "op/check.h"
#include "op/constant.h"

#include <string.h>

struct ot_infer {
    ot_node *node;
    ot_model *model;
    ot_status status; // the first error; its message is the thread's
    bool is_stated;   // what outputs have of a shape is a file's word for it
    bool is_wrong;    // that word, of some output
    uint64_t asked;   // inputs whose elements were asked for and are not known
    ot__op_types types;
};

static ot_value *input_of(const ot_infer *c, int i)
{
    return i >= 0 && i < c->node->n_inputs ? c->node->inputs[i] : NULL;
}

static ot_value *infer_output(const ot_infer *c, int i)
{
    return i >= 0 && i < c->node->n_outputs ? c->node->outputs[i] : NULL;
}

static void infer_fail_v(ot_infer *c, const char *format, va_list args)
{
    char label[160];

    if (c->status != OT_OK)
        return;
    c->status = ot__error_v(OT_ERR_INVALID, format, args);
    ot__error_prefix(c->status, "%s", ot__node_label(c->node, label, sizeof(label)));
}

void ot_infer_fail(ot_infer *c, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    infer_fail_v(c, format, args);
    va_end(args);
}

bool ot__refuse(ot_infer *c, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    infer_fail_v(c, format, args);
    va_end(args);
    return false;
}

bool ot__infer_made(ot_infer *c, bool made)
{
    if (c->status == OT_OK && !made)
        c->status = OT_ERR_NO_MEMORY;
    return made;
}

// ---- what the record asks ----

const ot_node *ot_infer_node(const ot_infer *c)
{
    return c->node;
}

int ot_infer_input_count(const ot_infer *c)
{
    return c->node->n_inputs;
}

int ot_infer_output_count(const ot_infer *c)
{
    return c->node->n_outputs;
}

bool ot_infer_has(const ot_infer *c, int input)
{
    return input_of(c, input) != NULL;
}

bool ot_infer_wants(const ot_infer *c, int output)
{
    return infer_output(c, output) != NULL;
}

ot_dtype ot_infer_dtype(const ot_infer *c, int input)
{
    const ot_value *x = input_of(c, input);

    return x == NULL ? OT_DTYPE_UNDEFINED : x->dtype;
}

const ot_shape *ot_infer_shape(const ot_infer *c, int input)
{
    static const ot_shape scalar = {0};
    const ot_value *x = input_of(c, input);

    return x == NULL || !x->has_shape ? &scalar : &x->shape;
}

// Whoever asks does not change what is inferred.
static void note_asked(const ot_infer *c, int input)
{
    if (input < 64)
        ((ot_infer *)c)->asked |= UINT64_C(1) << input;
}

const ot_tensor *ot_infer_constant(const ot_infer *c, int input)
{
    const ot_value *x = input_of(c, input);
    const ot_tensor *constant;

    if (x == NULL)
        return NULL;
    // But for memory that has run out.
    (void)ot__infer_made((ot_infer *)c, ot__op_known_constant(c->model, x, &constant) == OT_OK);
    if (constant == NULL)
        note_asked(c, input);
    return constant;
}

const int64_t *ot_infer_values(const ot_infer *c, int input, int *n)
{
    const ot_value *x = input_of(c, input);
    const int64_t *known;

    *n = 0;
    if (x == NULL)
        return NULL;
    known = ot_value_known(x, n);
    if (known == NULL || !ot__dims_are_numbers(known, *n))
        note_asked(c, input);
    return known;
}

const int64_t *ot_value_known(const ot_value *value, int *n)
{
    static const int64_t none[1] = {0};
    int64_t count;

    if (n == NULL)
        return NULL;
    *n = 0;
    if (value == NULL)
        return NULL;
    *n = value->n_known;
    if (value->n_known > 0)
        return value->known;
    if (value->has_shape && ot__shape_is_static(&value->shape) &&
        ot__shape_count(&value->shape, &count) && count == 0)
        return none; // known to be empty
    return NULL;
}

int64_t ot_infer_add(ot_infer *c, int64_t a, int64_t b)
{
    return ot__dim_add(c->model, a, b);
}

int64_t ot_infer_sub(ot_infer *c, int64_t a, int64_t b)
{
    return ot__dim_sub(c->model, a, b);
}

int64_t ot_infer_mul(ot_infer *c, int64_t a, int64_t b)
{
    return ot__dim_mul(c->model, a, b);
}

int64_t ot_infer_div(ot_infer *c, int64_t a, int64_t b)
{
    return ot__dim_div(c->model, a, b);
}

int64_t ot_infer_mod(ot_infer *c, int64_t a, int64_t b)
{
    return ot__dim_mod(c->model, a, b);
}

bool ot__infer_extent(ot_infer *c, int axis, int64_t a, int64_t b, int64_t extent)
{
    if (ot__dim_is_number(a) && ot__dim_is_number(b) && !ot__dim_is_number(extent))
        ot_infer_fail(c, "the size of axis %d, made of %" PRId64 " and %" PRId64 ", is too large",
                      axis, a, b);
    return c->status == OT_OK;
}

bool ot__infer_list_fits(ot_infer *c, int input, int n, const int64_t *known)
{
    const ot_tensor *list = ot_infer_constant(c, input);

    for (int i = 0; list != NULL && i < n; i++)
        if (!ot__dim_is_number(known[i]))
            ot_infer_fail(c, "%s is %" PRId64 " at %d, which is too large",
                          ot__op_input_port(c->node->op, input)->name, ot__tensor_get_i64(list, i),
                          i);
    return c->status == OT_OK;
}

bool ot_dim_is_number(int64_t dim)
{
    return ot__dim_is_number(dim);
}

int64_t ot_dim_unknown(void)
{
    return OT_DIM_UNKNOWN;
}

bool ot_infer_broadcast(ot_infer *c, const ot_shape *a, const ot_shape *b, ot_shape *y)
{
    char a_text[120], b_text[120];

    memset(y, 0, sizeof(*y));
    if (c->status != OT_OK)
        return false;
    if (ot__dims_broadcast(a, b, y) == OT_OK)
        return true;
    return ot__refuse(c, "shapes %s and %s do not broadcast",
                      ot__dims_text(c->model, a, a_text, sizeof(a_text)),
                      ot__dims_text(c->model, b, b_text, sizeof(b_text)));
}

bool ot_infer_axis(ot_infer *c, int64_t axis, int ndim, int *out)
{
    *out = 0;
    if (c->status == OT_OK && ot__axis_normalize(axis, ndim, out))
        return true;
    return ot__refuse(c, "axis %" PRId64 " is outside %d axes", axis, ndim);
}

// ---- what the record sets ----

// The better known of a declared and an inferred extent; false when they contradict.
static bool merge_dim(int64_t declared, int64_t inferred, int64_t *out)
{
    const bool both = ot__dim_is_number(declared) && ot__dim_is_number(inferred);

    // Of two symbols the inferred one wins: it is made of the inputs' symbols, so it proves more.
    *out = ot__dim_is_number(declared) || inferred == OT_DIM_UNKNOWN ? declared : inferred;
    return !both || declared == inferred;
}

static bool merge_shape(ot_value *y, const ot_shape *shape)
{
    ot_shape merged = *shape;

    if (y->has_shape) {
        if (y->shape.ndim != shape->ndim)
            return false;
        for (int k = 0; k < shape->ndim; k++)
            if (!merge_dim(y->shape.dim[k], shape->dim[k], &merged.dim[k]))
                return false;
    }
    y->shape = merged;
    y->has_shape = true;
    return true;
}

static bool is_input_symbol(const ot_infer *c, int64_t dim)
{
    const ot_graph *graph = c->node->graph;

    if (!ot__dim_is_symbol(dim))
        return false;
    for (int i = 0; i < graph->n_inputs; i++)
        for (int k = 0; graph->inputs[i]->has_shape && k < graph->inputs[i]->shape.ndim; k++)
            if (ot__dim_same(graph->inputs[i]->shape.dim[k], dim))
                return true;
    return false;
}

// What is inferred holds; what is stated fills in where nothing is known. That two axes have one
// name says nothing, since whoever wrote it may not have known.
static void correct_shape(ot_infer *c, ot_value *y, const ot_shape *shape)
{
    const ot_shape stated = y->shape;
    const bool has_axes = y->has_shape && stated.ndim == shape->ndim;

    c->is_wrong = c->is_wrong || (y->has_shape && !has_axes);
    y->shape = *shape;
    y->has_shape = true;
    for (int k = 0; has_axes && k < shape->ndim; k++) {
        if (shape->dim[k] != OT_DIM_UNKNOWN)
            c->is_wrong =
                c->is_wrong || (ot__dim_is_number(stated.dim[k]) && stated.dim[k] != shape->dim[k]);
        else if (!is_input_symbol(c, stated.dim[k]))
            y->shape.dim[k] = stated.dim[k];
    }
}

// Whether the bytes fit in 63 bits with every symbol at 1, so that rules may multiply extents.
static bool check_value_size(ot_infer *c, const char *what, int i, ot_dtype dtype,
                             const ot_shape *shape)
{
    int64_t product = OT_MAX((int64_t)ot_dtype_size(dtype), 1);
    char text[120];

    for (int k = 0; k < shape->ndim; k++) {
        const int64_t least = ot__dim_least(c->model, shape->dim[k]);

        if (!ot__mul_overflows(product, OT_MAX(least, 1), &product))
            continue;
        ot_infer_fail(c, "%s %d has too many elements: %s", what, i,
                      ot__dims_text(c->model, shape, text, sizeof(text)));
        return false;
    }
    return true;
}

static bool output_type_fits(ot_infer *c, ot_value *y, int output, ot_dtype dtype)
{
    const ot_port *port = ot__op_output_port(c->node->op, output);

    if (y->kind == OT_VALUE_UNTYPED || y->dtype == OT_DTYPE_UNDEFINED || y->dtype == dtype ||
        (port != NULL && ot__op_types_meet(c->model, port, y->dtype, dtype)))
        return true;
    return ot__refuse(c, "output %d '%s' is declared %s, inferred %s", output, y->name,
                      ot_dtype_name(y->dtype), ot_dtype_name(dtype));
}

void ot_infer_set(ot_infer *c, int output, ot_dtype dtype, const ot_shape *shape)
{
    ot_value *y = infer_output(c, output);
    char declared[120], inferred[120];

    ot_infer_set_unknown(c, output, dtype);
    if (y == NULL || c->status != OT_OK || y->kind != OT_VALUE_TENSOR ||
        !check_value_size(c, "output", output, dtype, shape))
        return;
    if (c->is_stated)
        correct_shape(c, y, shape);
    else if (!merge_shape(y, shape))
        ot_infer_fail(c, "output %d '%s' is declared %s, inferred %s", output, y->name,
                      ot__dims_text(c->model, &y->shape, declared, sizeof(declared)),
                      ot__dims_text(c->model, shape, inferred, sizeof(inferred)));
}

void ot_infer_set_unknown(ot_infer *c, int output, ot_dtype dtype)
{
    ot_value *y = infer_output(c, output);
    const ot_port *port = ot__op_output_port(c->node->op, output);

    if (y == NULL || c->status != OT_OK || !output_type_fits(c, y, output, dtype))
        return;
    if (y->kind == OT_VALUE_UNTYPED)
        y->kind = port != NULL && (port->flags & OT_PORT_SEQUENCE) != 0 ? OT_VALUE_SEQUENCE
                                                                        : OT_VALUE_TENSOR;
    if (y->dtype == OT_DTYPE_UNDEFINED) // else it is the same, or one of two that may meet
        y->dtype = dtype;
}

static void keep_known(ot_infer *c, ot_value *value, const int64_t *values, int n)
{
    if (value->n_known == n && memcmp(value->known, values, (size_t)n * sizeof(*values)) == 0)
        return;
    value->known = ot__arena_memdup(c->model->arena, values, (size_t)n * sizeof(*values));
    value->n_known = ot__infer_made(c, value->known != NULL) ? n : 0;
}

void ot_infer_set_values(ot_infer *c, int output, const int64_t *values, int n)
{
    ot_value *y = infer_output(c, output);
    bool any = false;

    if (y == NULL || c->status != OT_OK || n <= 0 || n > OT_MAX_KNOWN)
        return;
    for (int k = 0; k < n; k++)
        any = any || values[k] != OT_DIM_UNKNOWN;
    if (any)
        keep_known(c, y, values, n);
}

// ---- running a record's rule ----

// Constants of few elements count as known from here on.
static void note_constants(ot_infer *c)
{
    for (int i = 0; i < c->node->n_inputs; i++) {
        ot_value *x = c->node->inputs[i];
        int64_t known[OT_MAX_KNOWN], count;

        if (x == NULL || x->constant == NULL || x->n_known > 0 ||
            (!ot__dtype_is_int(x->constant->dtype) && x->constant->dtype != OT_BOOL) ||
            ot_dtype_size(x->constant->dtype) == 0)
            continue;
        count = ot_tensor_count(x->constant);
        if (count <= 0 || count > OT_MAX_KNOWN)
            continue;
        for (int64_t k = 0; k < count; k++) {
            const int64_t number = ot__tensor_get_i64(x->constant, k);

            // The lowest numbers stand for symbols, so of them nothing is known.
            known[k] = ot__dim_is_number(number) ? number : OT_DIM_UNKNOWN;
        }
        keep_known(c, x, known, (int)count);
    }
}

static bool inputs_are_known(const ot_node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const ot_value *x = node->inputs[i];

        if (x != NULL && (x->kind == OT_VALUE_UNTYPED || x->dtype == OT_DTYPE_UNDEFINED ||
                          (x->kind == OT_VALUE_TENSOR && !x->has_shape)))
            return false;
    }
    return true;
}

static void check_input_sizes(ot_infer *c)
{
    for (int i = 0; i < c->node->n_inputs && c->status == OT_OK; i++) {
        const ot_value *x = c->node->inputs[i];

        if (x != NULL && x->has_shape)
            (void)check_value_size(c, "input", i, x->dtype, &x->shape);
    }
}

// Without the rank of every input only the types can follow.
static void set_types_only(ot_infer *c)
{
    for (int i = 0; i < c->node->n_outputs; i++) {
        const ot_port *port = ot__op_output_port(c->node->op, i);
        const ot_dtype dtype =
            port == NULL ? OT_DTYPE_UNDEFINED : ot__op_bound_type(c->node->op, &c->types, port);

        if (dtype != OT_DTYPE_UNDEFINED)
            ot_infer_set_unknown(c, i, dtype);
    }
}

static ot_status infer_node(ot_infer *context)
{
    ot_node *node = context->node;
    char label[160];

    if (node->op == NULL || node->op->infer == NULL)
        return ot__error(OT_ERR_INTERNAL, "%s: no record to infer by",
                         ot__node_label(node, label, sizeof(label)));
    OT_TRY(ot__op_check_types(node, &context->types));
    if (!ot__op_is_foreign(node))
        OT_TRY(ot__op_settle_foreign(node, &context->types));
    note_constants(context);
    check_input_sizes(context);
    if (!inputs_are_known(node))
        set_types_only(context);
    else if (context->status == OT_OK)
        node->op->infer(context);
    return context->status;
}

ot_status ot__op_infer(ot_node *node)
{
    ot_infer c = {.node = node, .model = node->graph->model};

    return infer_node(&c);
}

ot_status ot__op_infer_stated(ot_node *node, bool *was_wrong)
{
    ot_infer c = {.node = node, .model = node->graph->model, .is_stated = true};
    const ot_status st = infer_node(&c);

    *was_wrong = c.is_wrong;
    return st;
}

ot_status ot__op_infer_asked(ot_node *node, uint64_t *asked)
{
    ot_infer c = {.node = node, .model = node->graph->model, .is_stated = true};
    const ot_status st = infer_node(&c);

    *asked = c.asked;
    return st;
}
