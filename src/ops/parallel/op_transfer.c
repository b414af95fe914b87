// SPDX-License-Identifier: Apache-2.0
// Buckets of parameters that are cut over ranks, in training and eval graphs of sessions over
// several ranks (pass_transfer.c). GatherStart and GatherWait bring the values together in a buffer
// that lasts until their last reader; ScatterStart and ScatterWait sum gradients that were made in
// a buffer. Every node says when it is done, which the next one reads: they run in the order of the
// graph. Without other ranks a bucket is whole, and nothing but copies is left to do.
#include <string.h>

#include "op/op.h"

// A bucket: where each tensor begins in the buffer, in elements.
typedef struct transfer_bucket {
    int64_t number, n_elements;
    const int64_t *offsets;
    int n;
} transfer_bucket;

enum { AFTER_START, TENSORS_START };                   // inputs of GatherStart and ScatterStart
enum { BUFFER, AFTER_WAIT, LIKE_WAIT };                // inputs of GatherWait and ScatterWait
enum { BUFFER_OUT, DONE_START, DONE_WAIT = 0, PARTS }; // outputs

static transfer_bucket bucket_of_node(const ot_node *node)
{
    transfer_bucket b = {.number = ot_attr_int(node, "bucket"),
                         .n_elements = ot_attr_int(node, "elements")};

    b.offsets = ot_attr_ints(node, "offsets", &b.n);
    return b;
}

// ---- shapes ----

// The tensors are as many as the offsets, and lie in the buffer one after the other.
static bool check_offsets(ot_infer *c, const transfer_bucket *b, int first_input)
{
    int64_t end = 0;

    for (int k = 0; k < b->n; k++) {
        const ot_shape *shape = ot_infer_shape(c, first_input + k);
        int64_t count;

        if (b->offsets[k] < end || !ot__shape_count(shape, &count) || count > b->n_elements ||
            b->offsets[k] > b->n_elements - count)
            return ot__refuse(c,
                              "tensor %d of shape %s at element %" PRId64 " of a buffer of %" PRId64
                              ", where those before it end at %" PRId64,
                              k, OT_SHAPE_TEXT(shape), b->offsets[k], b->n_elements, end);
        end = b->offsets[k] + count;
    }
    return true;
}

static bool check_tensor_count(ot_infer *c, int found, int expected)
{
    return found == expected
               ? true
               : ot__refuse(c, "%d tensors, expected %d by its offsets", found, expected);
}

static void infer_start(ot_infer *c, int n_lists)
{
    const ot_node *node = ot_infer_node(c);
    const transfer_bucket b = bucket_of_node(node);
    const int n = node->n_inputs - TENSORS_START;

    if (!check_tensor_count(c, n, n_lists * b.n) || b.n == 0 ||
        !check_offsets(c, &b, TENSORS_START + (n_lists - 1) * b.n))
        return;
    ot_infer_set(c, BUFFER_OUT, ot_infer_dtype(c, TENSORS_START), &OT_SHAPE(b.n_elements));
    ot_infer_set(c, DONE_START, OT_BOOL, &OT_SHAPE(1));
}

static void gather_start_infer(ot_infer *c)
{
    infer_start(c, 1);
}

static void scatter_start_infer(ot_infer *c)
{
    infer_start(c, 2);
}

static void gather_wait_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const transfer_bucket b = bucket_of_node(node);

    if (!check_tensor_count(c, node->n_inputs - LIKE_WAIT, b.n) ||
        !check_tensor_count(c, node->n_outputs - PARTS, b.n) || !check_offsets(c, &b, LIKE_WAIT))
        return;
    ot_infer_set(c, DONE_WAIT, OT_BOOL, &OT_SHAPE(1));
    for (int k = 0; k < b.n; k++)
        ot_infer_set(c, PARTS + k, ot_infer_dtype(c, LIKE_WAIT + k),
                     ot_infer_shape(c, LIKE_WAIT + k));
}

static void scatter_wait_infer(ot_infer *c)
{
    for (int k = 0; k < ot_infer_node(c)->n_outputs; k++)
        ot_infer_set(c, k, OT_BOOL, &OT_SHAPE(1));
}

// ---- layouts: tensors lie in a buffer as parameters do ----

static void gather_wait_layouts(ot_prep *p)
{
    const transfer_bucket b = bucket_of_node(ot_prep_node(p));

    for (int k = 0; k < b.n; k++) {
        const ot_layout *layout = ot_prep_offered_in(p, LIKE_WAIT + k);

        ot_prep_want_in(p, LIKE_WAIT + k, layout);
        ot_prep_want_out(p, PARTS + k, layout);
    }
}

static void gather_start_layouts(ot_prep *p)
{
    const transfer_bucket b = bucket_of_node(ot_prep_node(p));

    for (int k = 0; k < b.n; k++)
        ot_prep_want_in(p, TENSORS_START + k, ot_prep_offered_in(p, TENSORS_START + k));
}

static void scatter_start_layouts(ot_prep *p)
{
    const transfer_bucket b = bucket_of_node(ot_prep_node(p));

    for (int k = 0; k < b.n; k++) {
        const ot_layout *layout = ot_prep_offered_in(p, TENSORS_START + k);

        ot_prep_want_in(p, TENSORS_START + k, layout);
        ot_prep_want_in(p, TENSORS_START + b.n + k, layout);
    }
}

// ---- running ----

static ot_status transfer_prepare(ot_prep *p)
{
    transfer_bucket *b;
    int64_t *offsets;
    const transfer_bucket of_node = bucket_of_node(ot_prep_node(p));

    b = ot_prep_state(p, sizeof *b + (size_t)of_node.n * sizeof *offsets);
    if (b == NULL)
        return p->status;
    *b = of_node;
    offsets = (int64_t *)(void *)(b + 1);
    if (b->n > 0)
        memcpy(offsets, of_node.offsets, (size_t)b->n * sizeof *offsets);
    b->offsets = offsets; // the node's are gone when it runs
    return OT_OK;
}

static ot_status transfer_bucket_now(const ot_run *r, ot_transfer what, void *buffer)
{
    const ot_exchange *exchange = r->step != NULL ? r->step->exchange : NULL;
    const transfer_bucket *b = r->state;

    return exchange != NULL && exchange->transfer != NULL
               ? exchange->transfer(exchange->context, what, b->number, buffer)
               : OT_OK;
}

static bool is_over_ranks_here(const ot_run *r)
{
    return r->step != NULL && r->step->exchange != NULL && r->step->exchange->transfer != NULL;
}

// Tensors to their places in the buffer, unless they were made there, and zeros between them.
static void fill_buffer(const ot_run *r, int first_input)
{
    const transfer_bucket *b = r->state;
    const size_t element = ot_dtype_size(r->out[BUFFER_OUT]->dtype);
    char *buffer = r->out[BUFFER_OUT]->data;
    int64_t end = 0;

    for (int k = 0; k < b->n; k++) {
        const ot_arg *x = r->in[first_input + k];
        char *place = buffer + (size_t)b->offsets[k] * element;

        memset(buffer + (size_t)end * element, 0, (size_t)(b->offsets[k] - end) * element);
        if (x->data != place && x->count > 0)
            memcpy(place, x->data, (size_t)x->count * element);
        end = b->offsets[k] + x->count;
    }
    memset(buffer + (size_t)end * element, 0, (size_t)(b->n_elements - end) * element);
}

static void set_done(const ot_run *r, int first_output)
{
    for (int k = first_output; k < r->n_out && r->out[k] != NULL && r->out[k]->dtype == OT_BOOL;
         k++)
        *(uint8_t *)r->out[k]->data = 1;
}

static ot_status gather_start_run(const ot_run *r)
{
    set_done(r, DONE_START);
    if (is_over_ranks_here(r)) // what is here of the parameters is the session's
        return transfer_bucket_now(r, OT_TRANSFER_GATHER_START, r->out[BUFFER_OUT]->data);
    fill_buffer(r, TENSORS_START);
    return OT_OK;
}

static ot_status gather_wait_run(const ot_run *r)
{
    const transfer_bucket *b = r->state;
    const size_t element = ot_dtype_size(r->in[BUFFER]->dtype);
    const char *buffer = r->in[BUFFER]->data;

    set_done(r, DONE_WAIT);
    OT_TRY(transfer_bucket_now(r, OT_TRANSFER_GATHER_WAIT, r->in[BUFFER]->data));
    for (int k = 0; k < b->n; k++) {
        const ot_arg *y = r->out[PARTS + k];
        const char *part = buffer + (size_t)b->offsets[k] * element;

        if (y != NULL && y->data != part && y->count > 0)
            memcpy(y->data, part, (size_t)y->count * element);
    }
    return OT_OK;
}

static ot_status scatter_start_run(const ot_run *r)
{
    const transfer_bucket *b = r->state;

    set_done(r, DONE_START);
    fill_buffer(r, TENSORS_START + b->n);
    return transfer_bucket_now(r, OT_TRANSFER_SCATTER_START, r->out[BUFFER_OUT]->data);
}

static ot_status scatter_wait_run(const ot_run *r)
{
    set_done(r, DONE_WAIT);
    return transfer_bucket_now(r, OT_TRANSFER_SCATTER_WAIT, r->in[BUFFER]->data);
}

// ---- records ----

#define TRANSFER_KERNEL(layouts_, run_)                                                            \
    {                                                                                              \
        {.name = "ref",                                                                            \
         .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,                                    \
         .layouts = layouts_,                                                                      \
         .prepare = transfer_prepare,                                                              \
         .run = run_},                                                                             \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
static const ot_attr_spec transfer_attrs[] = {
    {.name = "bucket", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED},
    {.name = "elements", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED},
    {.name = "offsets", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},
    {0},
};
#define TRANSFER_RECORD(name_, in_, out_, infer_, kernels_, flags_)                                \
    {                                                                                              \
        {.domain = "ai.onnxtrain",                                                                 \
         .name = name_,                                                                            \
         .since = 1,                                                                               \
         .inputs = in_,                                                                            \
         .outputs = out_,                                                                          \
         .attrs = transfer_attrs,                                                                  \
         .types = "T: f32 f64",                                                                    \
         .infer = infer_,                                                                          \
         .kernels = kernels_,                                                                      \
         .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL | OT_OP_ORDERED | (flags_)},                      \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

static const ot_port gather_start_in[] = {
    {"after", "bool", OT_PORT_OPTIONAL}, {"parameters", "T", OT_PORT_VARIADIC | OT_PORT_F32}, {0}};
static const ot_port transfer_start_out[] = {
    {"buffer", "T", OT_PORT_F32}, {"done", "bool", 0}, {0}};
static const ot_kernel gather_start_kernels[] =
    TRANSFER_KERNEL(gather_start_layouts, gather_start_run);
const ot_op_def ot__op_gather_start[] =
    TRANSFER_RECORD("GatherStart", gather_start_in, transfer_start_out, gather_start_infer,
                    gather_start_kernels, OT_OP_LATE);

static const ot_port gather_wait_in[] = {{"buffer", "T", OT_PORT_F32},
                                         {"after", "bool", 0},
                                         {"parameters", "T", OT_PORT_VARIADIC | OT_PORT_F32},
                                         {0}};
static const ot_port gather_wait_out[] = {
    {"done", "bool", 0}, {"values", "T", OT_PORT_VARIADIC | OT_PORT_F32}, {0}};
static const ot_kernel gather_wait_kernels[] =
    TRANSFER_KERNEL(gather_wait_layouts, gather_wait_run);
const ot_op_def ot__op_gather_wait[] =
    TRANSFER_RECORD("GatherWait", gather_wait_in, gather_wait_out, gather_wait_infer,
                    gather_wait_kernels, OT_OP_LATE | OT_OP_PARTS);

static const ot_port scatter_start_in[] = {
    {"after", "bool", OT_PORT_OPTIONAL},
    {"accumulators_then_gradients", "T", OT_PORT_VARIADIC | OT_PORT_F32},
    {0}};
static const ot_kernel scatter_start_kernels[] =
    TRANSFER_KERNEL(scatter_start_layouts, scatter_start_run);
const ot_op_def ot__op_scatter_start[] =
    TRANSFER_RECORD("ScatterStart", scatter_start_in, transfer_start_out, scatter_start_infer,
                    scatter_start_kernels, OT_OP_START | OT_OP_JOIN);

static const ot_port scatter_wait_in[] = {{"buffer", "T", OT_PORT_F32}, {"after", "bool", 0}, {0}};
static const ot_port scatter_wait_out[] = {{"done", "bool", OT_PORT_VARIADIC}, {0}};
static const ot_kernel scatter_wait_kernels[] = TRANSFER_KERNEL(NULL, scatter_wait_run);
const ot_op_def ot__op_scatter_wait[] =
    TRANSFER_RECORD("ScatterWait", scatter_wait_in, scatter_wait_out, scatter_wait_infer,
                    scatter_wait_kernels, OT_OP_START);
