// SPDX-License-Identifier: Apache-2.0
// Traces of what an exporter did to a framework's parameters before the file was written.
#include <string.h>

#include "artifacts/forward.h"

static bool is_lower_or_line(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_';
}

// "val_12", "slice_1": what PyTorch's exporter calls values, not parameters of modules.
static bool is_value_name(const char *name)
{
    const char *digits = name + strlen(name);

    while (digits > name && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    if (*digits == '\0' || digits - name < 2 || digits[-1] != '_')
        return false;
    for (const char *p = name; p < digits; p++)
        if (!is_lower_or_line(*p))
            return false;
    return true;
}

bool ot__candidate_is_folded(const ot__candidate *item, const ot_model *model)
{
    const char *name = item->value->name;

    if (!ot__dtype_is_float(item->value->dtype) || item->value->shape.ndim == 0)
        return false;
    // "onnx::MatMul_37" is the classic exporter's; "0.weight_bias" is left of a BatchNormalization.
    if (strncmp(name, "onnx::", 6) == 0 || ot__ends_with(name, ".weight_bias"))
        return true;
    return strcmp(model->producer_name, "pytorch") == 0 && is_value_name(name);
}

bool ot__tensor_is_uniform(const ot_tensor *t)
{
    const int64_t n = t ? ot_tensor_count(t) : 0;
    const size_t n_bytes = n > 0 ? ot_tensor_bytes(t) : 0;
    const size_t element = n > 0 ? n_bytes / (size_t)n : 0;
    const char *data = t ? t->data : NULL;

    return n == 0 || memcmp(data, data + element, n_bytes - element) == 0;
}

const ot_value *ot__candidate_twin(const ot__candidates *c, int i)
{
    const ot_tensor *a = c->items[i].value->constant;
    size_t n_bytes;

    if (!a || a->shape.ndim < 2 || !ot__dtype_is_float(a->dtype) || ot_tensor_count(a) < 2)
        return NULL;
    n_bytes = ot_tensor_bytes(a);
    if (ot__tensor_is_uniform(a)) // an initial value, not a weight that was shared
        return NULL;
    for (int k = 0; k < i; k++) {
        const ot_tensor *b = c->items[k].value->constant;

        // The very same tensor: separated on purpose.
        if (b && b != a && b->dtype == a->dtype && ot_tensor_count(b) == ot_tensor_count(a) &&
            memcmp(a->data, b->data, n_bytes) == 0)
            return c->items[k].value;
    }
    return NULL;
}

// ---- the note ----

static const ot_value *first_folded(const ot__forward *forward, int *n)
{
    const ot__candidates *c = &forward->candidates;
    const ot_value *first = NULL;

    *n = 0;
    for (int i = 0; i < c->n; i++)
        if (c->items[i].role == OT_ROLE_TRAINABLE && !c->items[i].is_blocked &&
            ot__candidate_is_folded(&c->items[i], forward->model) && (*n)++ == 0)
            first = c->items[i].value;
    return first;
}

ot_status ot__forward_note_folded(ot__forward *forward)
{
    int n;
    const ot_value *first = first_folded(forward, &n);

    if (!first || forward->has_lost)
        return OT_OK;
    return ot__forward_note(
        forward, OT_LOG_INFO,
        ot__arena_printf(
            forward->model->arena,
            "'%s'%s by name what an exporter computed from parameters that are gone, and trains in "
            "their place; to train those, export with torch.onnx.export(model.train(), ..., "
            "optimize=False), or with dynamo=False, training=TrainingMode.TRAINING and "
            "do_constant_folding=False",
            first->name, n > 1 ? " and others are" : " is"));
}
