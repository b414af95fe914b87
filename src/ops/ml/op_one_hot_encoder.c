// SPDX-License-Identifier: Apache-2.0
// OneHotEncoder of ai.onnx.ml: each number or text becomes a row that is 1 at its category and 0
// elsewhere. Floats are cut to integers; of equal categories the last one counts.
#include <string.h>

#include "ops/ml/ml.h"

typedef struct categories {
    const int64_t *numbers;
    const ot__string *texts; // or these
    int n;
    bool zeros; // what is of no category is 0 everywhere; else it is an error
} categories;

static categories categories_of(const ot_node *node)
{
    const ot_attr *texts = ot__node_attr(node, "cats_strings");
    categories k = {.zeros = ot_attr_int(node, "zeros") != 0};

    k.numbers = ot_attr_ints(node, "cats_int64s", &k.n);
    if (k.n == 0 && texts != NULL && texts->n > 0) {
        k.texts = texts->strings;
        k.n = texts->n;
    }
    return k;
}

static void one_hot_encoder_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const categories k = categories_of(node);
    const ot_attr *texts = ot__node_attr(node, "cats_strings");
    ot_shape y = *ot_infer_shape(c, 0);

    if (k.n == 0 || (k.texts == NULL && texts != NULL && texts->n > 0))
        ot_infer_fail(c, "expected one of cats_int64s and cats_strings");
    else if ((ot_infer_dtype(c, 0) == OT_STRING) != (k.texts != NULL))
        ot_infer_fail(c, "X is %s, but its categories are not",
                      ot_dtype_name(ot_infer_dtype(c, 0)));
    else if (y.ndim == OT_MAX_NDIM)
        ot_infer_fail(c, "X has %d axes, Y would have one more", y.ndim);
    if (y.ndim < OT_MAX_NDIM)
        y.dim[y.ndim++] = k.n;
    ot_infer_set(c, 0, OT_F32, &y);
}

static ot_status one_hot_encoder_prepare(ot_prep *p)
{
    categories *k = ot_prep_state(p, sizeof *k);

    OT_TRY(ot__made(k));
    *k = categories_of(ot_prep_node(p));
    return OT_OK;
}

// -1: of none.
static int category_of(const categories *k, const ot_arg *x, int64_t i)
{
    int64_t number = 0;
    int at = k->n - 1;

    if (k->texts != NULL) {
        const ot__string *text = (const ot__string *)x->data + i;

        while (at >= 0 &&
               (k->texts[at].size != text->size ||
                (text->size > 0 && memcmp(k->texts[at].data, text->data, text->size) != 0)))
            at--;
        return at;
    }
    (void)ot__convert(&number, OT_I64, (const char *)x->data + (size_t)i * ot_dtype_size(x->dtype),
                      x->dtype, 1);
    while (at >= 0 && k->numbers[at] != number)
        at--;
    return at;
}

static ot_status one_hot_encoder_run(const ot_run *r)
{
    const categories *k = r->state;
    float *y = r->out[0]->data;

    memset(y, 0, (size_t)r->out[0]->count * sizeof *y);
    for (int64_t i = 0; i < r->in[0]->count; i++) {
        const int at = category_of(k, r->in[0], i);

        if (at < 0 && !k->zeros)
            return ot__error(OT_ERR_INVALID,
                             "element %" PRId64 " of X is of none of the %d categories", i, k->n);
        if (at >= 0)
            y[i * k->n + at] = 1;
    }
    return OT_OK;
}

static const ot_port one_hot_encoder_out[] = {{"Y", "f32", 0}, {0}};
static const ot_attr_spec one_hot_encoder_attrs[] = {
    {.name = "cats_int64s", .kind = OT_ATTRIBUTE_INTS},
    {.name = "cats_strings", .kind = OT_ATTRIBUTE_STRINGS},
    OT__FLAG_ATTR("zeros", 1),
    {0},
};
static const ot_kernel one_hot_encoder_kernels[] = {
    OT__REF_KERNEL(NULL, one_hot_encoder_prepare, one_hot_encoder_run),
    {0},
};
const ot_op_def ot__op_one_hot_encoder[] = {
    {.domain = OT__ML,
     .name = "OneHotEncoder",
     .since = 1,
     .inputs = ot__ml_in,
     .outputs = one_hot_encoder_out,
     .attrs = one_hot_encoder_attrs,
     .types = "T: " OT__ML_NUMBERS " string",
     .infer = one_hot_encoder_infer,
     .kernels = one_hot_encoder_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
