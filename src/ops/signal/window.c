// SPDX-License-Identifier: Apache-2.0
// HannWindow, HammingWindow and BlackmanWindow: a sum of cosines of a given size, which goes
// through one period (periodic) or ends where it began.
#include "ops/signal/signal.h"

bool ot__infer_size(ot_infer *c, int i, const char *name, int64_t least, int64_t most,
                    int64_t *size)
{
    const ot_tensor *constant = ot_infer_constant(c, i);
    int n;
    const int64_t *known = ot_infer_values(c, i, &n);

    *size = ot_dim_unknown();
    if (!ot__infer_one_element(c, i))
        return false;
    if (constant != NULL && ot_tensor_count(constant) == 1)
        *size = ot__tensor_get_i64(constant, 0);
    else if (known != NULL && n == 1)
        *size = known[0];
    else
        return true;
    if (constant == NULL && !ot_dim_is_number(*size))
        return true;
    return (*size >= least && *size <= most) ||
           ot__refuse(c, "%s is %" PRId64 ", expected %" PRId64 " to %" PRId64, name, *size, least,
                      most);
}

static void window_infer(ot_infer *c)
{
    ot_dtype dtype;
    int64_t size;

    if (ot__infer_size(c, 0, "size", 0, INT64_MAX, &size) &&
        ot__infer_dtype_attr(c, "output_datatype", "T2", OT_F32, &dtype))
        ot_infer_set(c, 0, dtype, &OT_SHAPE(size));
}

// ---- kernels ----

typedef struct window_state {
    bool is_periodic;
} window_state;

static ot_status window_prep(ot_prep *p)
{
    window_state *s = ot_prep_state(p, sizeof(*s));

    OT_TRY(ot__made(s));
    s->is_periodic = ot_attr_int(ot_prep_node(p), "periodic") != 0;
    return OT_OK;
}

// One element that ends where it begins is the middle of the window.
static ot_status run_window(const ot_run *r, const ot__window_terms *terms)
{
    const window_state *s = r->state;
    const ot_arg *y = r->out[0];

    OT_TRY(ot__check_planned(ot__arg_int(r->in[0], 0), "elements", y->count));
    ot__ref_window(y->data, y->dtype, terms, y->count - !s->is_periodic, y->count);
    return OT_OK;
}

// ---- records ----

static const ot_port window_in[] = {{"size", "T1", OT_PORT_NO_GRAD}, {0}};
static const ot_port window_out[] = {{"output", "T2", 0}, {0}};
static const ot_attr_spec window_attrs[] = {
    OT__INT_ATTR("output_datatype", OT_F32),
    OT__FLAG_ATTR("periodic", 1),
    {0},
};
#define WINDOW(name_, symbol, ...)                                                                 \
    static ot_status symbol##_run(const ot_run *r)                                                 \
    {                                                                                              \
        static const ot__window_terms terms = {__VA_ARGS__};                                       \
                                                                                                   \
        return run_window(r, &terms);                                                              \
    }                                                                                              \
    static const ot_kernel symbol##_kernels[] = {OT__REF_KERNEL(NULL, window_prep, symbol##_run),  \
                                                 {0}};                                             \
    const ot_op_def ot__op_##symbol[] = {{.name = name_,                                           \
                                          .since = 17,                                             \
                                          .inputs = window_in,                                     \
                                          .outputs = window_out,                                   \
                                          .attrs = window_attrs,                                   \
                                          .types = "T1: i32 i64; T2: " OT__NUMBERS,                \
                                          .infer = window_infer,                                   \
                                          .kernels = symbol##_kernels,                             \
                                          .flags = OT_OP_NO_GRAD},                                 \
                                         {0}}
WINDOW("HannWindow", hann_window, 0.5, 0.5, 0);
WINDOW("HammingWindow", hamming_window, 25.0 / 46, 21.0 / 46, 0);
WINDOW("BlackmanWindow", blackman_window, 0.42, 0.5, 0.08);
