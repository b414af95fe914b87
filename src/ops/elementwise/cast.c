// SPDX-License-Identifier: Apache-2.0
// Cast and CastLike: converting element types.
#include "ops/elementwise/cast.h"

#include <string.h>

#include "kernels/kernels.h"

static bool read_round_mode(const ot_node *node, ot__rounding *to)
{
    static const struct {
        const char *name;
        ot__rounding rounding;
    } modes[] = {{"up", OT__ROUND_UP}, {"down", OT__ROUND_DOWN}, {"nearest", OT__ROUND_NEAREST}};
    const char *name = ot_attr_string(node, "round_mode");

    for (size_t i = 0; i < OT_COUNT(modes); i++)
        if (strcmp(name, modes[i].name) == 0) {
            *to = modes[i].rounding;
            return true;
        }
    return false;
}

static void infer_cast_to(ot_infer *c, ot_dtype to)
{
    const bool keeps_extents = to == OT_I64 || to == OT_I32;
    ot__rounding rounding;
    const int64_t *known;
    int n;

    if (!read_round_mode(ot_infer_node(c), &rounding))
        ot_infer_fail(c, "round_mode is '%s', expected up, down or nearest",
                      ot_attr_string(ot_infer_node(c), "round_mode"));
    if (ot__dtype_bits(to) == 0 && to != OT_STRING)
        ot_infer_fail(c, "cannot convert to element type %d (%s)", (int)to, ot_dtype_name(to));
    ot_infer_set(c, 0, to, ot_infer_shape(c, 0));
    known = ot_infer_values(c, 0, &n);
    if (known != NULL && n > 0 && keeps_extents)
        ot_infer_set_values(c, 0, known, n);
}

static void cast_infer(ot_infer *c)
{
    infer_cast_to(c, (ot_dtype)ot_attr_int(ot_infer_node(c), "to"));
}

static void cast_like_infer(ot_infer *c)
{
    infer_cast_to(c, ot_infer_dtype(c, 1));
}

ot_status ot__cast_check(ot_prep *p, ot_dtype to, ot_dtype from)
{
    uint8_t nothing[16] = {0};

    return ot__convert(nothing, to, nothing, from, 0)
               ? OT_OK
               : ot_prep_fail(p, OT_ERR_UNSUPPORTED, "cannot convert %s to %s",
                              ot_dtype_name(ot_prep_in(p, 0)->dtype),
                              ot_dtype_name(ot_prep_out(p, 0)->dtype));
}

typedef struct convert_job {
    void *to;
    ot_dtype to_dtype;
    ot__elements from;
    int64_t count;
    const ot__cast_rule *rule;
} convert_job;

// Elements that fill whole bytes of every type, in parts of so many.
static void convert_part(void *context, int64_t first, int64_t last)
{
    const convert_job *j = context;
    ot__elements from = j->from;

    first *= OT__WHOLE_BYTES;
    from.first = first;
    (void)ot__convert_range(j->to, j->to_dtype, first, from,
                            OT_MIN(last * OT__WHOLE_BYTES, j->count) - first, j->rule);
}

static void convert_job_run(convert_job job)
{
    const int64_t parts = job.count / OT__WHOLE_BYTES + (job.count % OT__WHOLE_BYTES != 0);

    ot__parallel_for(parts, OT_PAR_MIN / OT__WHOLE_BYTES, convert_part, &job);
}

static ot_status cast_prepare(ot_prep *p)
{
    ot__cast_rule *rule = ot_prep_state(p, sizeof *rule);

    OT_TRY(p->status);
    rule->unsaturated = ot_attr_int(p->node, "saturate") == 0;
    (void)read_round_mode(p->node, &rule->rounding); // infer has checked it
    return ot__cast_check(p, ot_prep_out(p, 0)->dtype, ot_prep_in(p, 0)->dtype);
}

static ot_status cast_run(const ot_run *r)
{
    const ot_arg *x = r->in[0], *y = r->out[0];

    convert_job_run((convert_job){y->data, y->dtype, {x->data, x->dtype, 0}, y->count, r->state});
    return OT_OK;
}

// ---- between f32 and f16 or bf16 ----

typedef struct floats_job {
    void *to;
    const void *from;
    ot_dtype narrow;
    bool widens;
} floats_job;

static void floats_part(void *context, int64_t first, int64_t last)
{
    const floats_job *j = context;
    const ot__floats *f = ot__floats_best();

    if (j->widens)
        f->widen[j->narrow]((float *)j->to + first, (const uint16_t *)j->from + first,
                            last - first);
    else
        f->narrow[j->narrow]((uint16_t *)j->to + first, (const float *)j->from + first,
                             last - first);
}

void ot__convert_floats(void *to, ot_dtype to_dtype, const void *from, ot_dtype from_dtype,
                        int64_t count)
{
    const bool widens = to_dtype == OT_F32;
    floats_job job = {to, from, widens ? from_dtype : to_dtype, widens};

    ot__parallel_for(count, OT_PAR_MIN, floats_part, &job);
}

static bool are_floats(ot_dtype a, ot_dtype b)
{
    return (a == OT_F32 && ot__dtype_is_narrow(b)) || (b == OT_F32 && ot__dtype_is_narrow(a));
}

void ot__convert_elements(void *to, ot_dtype to_dtype, const void *from, ot_dtype from_dtype,
                          int64_t count)
{
    static const ot__cast_rule as_usual = {0};

    if (are_floats(to_dtype, from_dtype))
        ot__convert_floats(to, to_dtype, from, from_dtype, count);
    else
        convert_job_run((convert_job){to, to_dtype, {from, from_dtype, 0}, count, &as_usual});
}

static bool cast_has_vector_code(const ot_prep *p)
{
    return (ot_prep_in(p, 0)->dtype == OT_F32) != (ot_prep_out(p, 0)->dtype == OT_F32) ||
           ot_prep_declines(p, "not between f32 and a narrower type");
}

static ot_status cast_run_floats(const ot_run *r)
{
    ot__convert_floats(r->out[0]->data, r->out[0]->dtype, r->in[0]->data, r->in[0]->dtype,
                       r->out[0]->count);
    return OT_OK;
}

// Y = cast(X):  dX = cast(dY) to the type of X
static void cast_grad(ot_grad *g)
{
    ot_grad_set_dx(g, 0, ot_emit_cast(g, ot_grad_dy(g, 0), ot_value_dtype(ot_grad_x(g, 0))));
}

// Between types that need no attribute.
static ot_value *cast_recompute(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0);
    const ot_dtype to = ot_value_dtype(ot_grad_y(g, 0));
    const bool is_float = to == OT_F32 || ot__dtype_is_narrow(to);

    return is_float && ot_value_dtype(x) != to ? ot_emit_cast(g, x, to) : NULL;
}

static const ot_port cast_in[] = {{"input", "T1", 0}, {0}};
static const ot_port cast_like_in[] = {
    {"input", "T1", 0}, {"target_type", "T2", OT_PORT_NO_GRAD | OT_PORT_TYPE_ONLY}, {0}};
static const ot_port cast_out[] = {{"output", "T2", 0}, {0}};
static const ot_attr_spec cast_attrs[] = {
    {.name = "to", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED}, // not of CastLike
    OT__STRING_ATTR("round_mode", "up"),
    OT__INT_ATTR("saturate", 1),
    {0},
};
static const ot_kernel cast_kernels[] = {
    OT__SIMD_KERNEL("T1: f32 f16 bf16; T2: f32 f16 bf16", cast_has_vector_code, NULL,
                    cast_run_floats),
    OT__REF_KERNEL("T1: string; T2: string", NULL, ot__cast_run_strings),
    OT__REF_KERNEL("T1: string", ot__cast_prepare_to_numbers, ot__cast_run_to_numbers),
    OT__REF_KERNEL("T2: string", ot__cast_prepare_to_strings, ot__cast_run_to_strings),
    OT__REF_KERNEL("T1: any " OT__PACKED_TYPES "; T2: any " OT__PACKED_TYPES, cast_prepare,
                   cast_run),
    {0},
};
#define CAST                                                                                       \
    .outputs = cast_out, .types = "T1: any string; T2: any string", .kernels = cast_kernels,       \
    .grad = cast_grad, .identity_when = ot__identity_of_type
const ot_op_def ot__op_cast[] = {
    {.name = "Cast",
     .since = 6,
     .inputs = cast_in,
     .attrs = cast_attrs,
     .infer = cast_infer,
     .recompute = cast_recompute,
     .flags = OT_OP_ANY_LAYOUT | OT_OP_REARRANGE | OT_OP_FREE_AGAIN,
     CAST},
    {0},
};
const ot_op_def ot__op_cast_like[] = {
    {.name = "CastLike",
     .since = 15,
     .inputs = cast_like_in,
     .attrs = cast_attrs + 1,
     .infer = cast_like_infer,
     .flags = OT_OP_REARRANGE,
     CAST},
    {0},
};
