// SPDX-License-Identifier: Apache-2.0
// Reading the tensors of a case and giving them elements.
#include "harness_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_spaces(const char *at)
{
    return at + strspn(at, " ");
}

static bool parse_dims(const char **at, ot_shape *shape)
{
    const char *p = *at + 1; // after '['

    for (shape->ndim = 0; *(p = skip_spaces(p)) != ']';) {
        char *end;

        if (shape->ndim == OT_MAX_NDIM)
            return false;
        shape->dim[shape->ndim] = edge_extent(*p);
        if (shape->dim[shape->ndim] >= 0)
            end = (char *)p + 1;
        else
            shape->dim[shape->ndim] = strtoll(p, &end, 10);
        if (end == p)
            return false;
        shape->ndim++;
        p = skip_spaces(end);
        if (*p == ',')
            p++;
    }
    *at = p + 1;
    return true;
}

static bool parse_range(const char **at, spec *out)
{
    char *end;

    out->low = strtod(*at, &end);
    if (end == *at || strncmp(end - (end[-1] == '.'), "..", 2) != 0)
        return false;
    *at = end - (end[-1] == '.') + 2; // strtod takes the first dot of "0..2" with the 0
    out->high = strtod(*at, &end);
    if (end == *at)
        return false;
    *at = end;
    return true;
}

bool spec_parse(const char *text, spec *out)
{
    char name[16] = "";
    const char *at = text;
    size_t length;

    *out = (spec){0};
    if (text == NULL || *text == '\0')
        return true;
    length = strcspn(at, "[");
    if (length >= sizeof(name) || at[length] != '[')
        return false;
    memcpy(name, at, length);
    at += length;
    if (!ot__dtype_from_name(name, &out->dtype) || !parse_dims(&at, &out->shape))
        return false;
    out->is_present = true;
    out->low = ot__dtype_is_float(out->dtype) ? -2.0 : out->dtype == OT_BOOL ? 0.0 : -5.0;
    out->high = ot__dtype_is_float(out->dtype) ? 2.0 : out->dtype == OT_BOOL ? 1.0 : 5.0;
    at = skip_spaces(at);
    if (*at == '{') {
        out->values = at + 1;
        out->has_values = true;
        at = strchr(at, '}');
        if (at == NULL)
            return false;
        at++;
    } else if (ot__starts_with(at, "in ")) {
        at = skip_spaces(at + 3);
        if (!parse_range(&at, out))
            return false;
    }
    at = skip_spaces(at);
    out->is_const = strcmp(at, "const") == 0;
    return out->is_const || *at == '\0';
}

static void put(ot_tensor *tensor, int64_t k, double value)
{
    static const ot__cast_rule as_usual = {0};
    const int64_t whole = (int64_t)value;
    const ot__elements from = ot__dtype_is_int(tensor->dtype) ? (ot__elements){&whole, OT_I64, 0}
                                                              : (ot__elements){&value, OT_F64, 0};

    ot__convert_range(tensor->data, tensor->dtype, k, from, 1, &as_usual);
}

bool spec_values(const spec *s, ot_tensor *tensor)
{
    const int64_t count = ot_tensor_count(tensor);
    const char *at = s->values;

    for (int64_t k = 0; k < count; k++) {
        char *end;

        at = at + strspn(at, " ,\n");
        if (tensor->dtype == OT_I64) { // exact
            ((int64_t *)tensor->data)[k] = strtoll(at, &end, 10);
        } else if (tensor->dtype == OT_U64) {
            ((uint64_t *)tensor->data)[k] = strtoull(at, &end, 10);
        } else {
            put(tensor, k, strtod(at, &end));
        }
        if (end == at)
            return false;
        at = end;
    }
    return *(at + strspn(at, " ,\n")) == '}';
}

// ---- random elements ----

static uint64_t hash(const char *text)
{
    uint64_t h = 1469598103934665603U;

    for (; text != NULL && *text != '\0'; text++)
        h = (h ^ (uint8_t)*text) * 1099511628211U;
    return h;
}

static bool is_random_float(const spec *s)
{
    return s->is_present && !s->has_values && ot__dtype_is_float(s->dtype);
}

// All inputs drawn from the same range share one grid, so that no two elements come near each
// other.
static void fill_floats(inputs *in, int first, ot__rng_key key)
{
    const double low = in->spec[first].low, high = in->spec[first].high;
    int64_t total = 0, *order, at = 0;

    for (int i = first; i < in->n; i++)
        if (is_random_float(&in->spec[i]) && in->spec[i].low == low && in->spec[i].high == high)
            total += ot_tensor_count(in->tensor[i]);
    order = calloc((size_t)total + 1, sizeof(*order));
    for (int64_t k = 0; k < total; k++)
        order[k] = k;
    for (int64_t k = total - 1; k > 0; k--) {
        const int64_t other = (int64_t)(ot__rng_uniform(key, (uint64_t)k) * (double)(k + 1));
        const int64_t kept = order[k];

        order[k] = order[other];
        order[other] = kept;
    }
    for (int i = first; i < in->n; i++) {
        if (!is_random_float(&in->spec[i]) || in->spec[i].low != low || in->spec[i].high != high)
            continue;
        // 0.37: no point of the grid is near the middle of the range, where kinks like to be.
        for (int64_t k = 0, n = ot_tensor_count(in->tensor[i]); k < n; k++)
            put(in->tensor[i], k,
                low + ((double)order[at++] + 0.37) * (high - low) / (double)total);
        in->spec[i].has_values = true;
    }
    free(order);
}

static void fill_others(inputs *in, int i, ot__rng_key key)
{
    const spec *s = &in->spec[i];

    for (int64_t k = 0, n = ot_tensor_count(in->tensor[i]); k < n; k++)
        put(in->tensor[i], k,
            floor(s->low + ot__rng_uniform(key, (uint64_t)k + ((uint64_t)i << 32)) *
                               (s->high - s->low + 1.0)));
}

static int count_strings(const char *const *strings)
{
    int n = 0;

    for (int i = 0; i < OT_CASE_MAX_PORTS; i++)
        if (strings[i] != NULL)
            n = i + 1;
    return n;
}

ot_status inputs_make(const ot_op_case *c, inputs *out)
{
    const ot__rng_key key = {hash(c->name), hash(c->in[0])};

    memset(out, 0, sizeof(*out));
    out->n = count_strings(c->in);
    for (int i = 0; i < out->n; i++) {
        spec *s = &out->spec[i];

        if (!spec_parse(c->in[i], s))
            return ot__error(OT_ERR_FORMAT, "the case's input '%s' cannot be read", c->in[i]);
        if (!s->is_present)
            continue;
        OT_TRY(ot_tensor_create(s->dtype, &s->shape, &out->tensor[i]));
        if (s->has_values && !spec_values(s, out->tensor[i]))
            return ot__error(OT_ERR_FORMAT, "the elements of '%s' do not fit its shape", c->in[i]);
    }
    for (int i = 0; i < out->n; i++) {
        if (is_random_float(&out->spec[i]))
            fill_floats(out, i, key);
        else if (out->spec[i].is_present && !out->spec[i].has_values)
            fill_others(out, i, key);
    }
    return OT_OK;
}

ot_status inputs_to_f64(const inputs *from, const ot_op_def *op, inputs *out)
{
    memset(out, 0, sizeof(*out));
    out->n = from->n;
    for (int i = 0; i < from->n; i++) {
        const ot_tensor *x = from->tensor[i];
        const ot_port *port = ot__op_input_port(op, i);
        const bool becomes = x != NULL && port != NULL && ot__dtype_is_float(x->dtype) &&
                             (ot__op_type_set(op, port->type) >> OT_F64 & 1) != 0;

        out->spec[i] = from->spec[i];
        if (x == NULL)
            continue;
        if (!becomes) {
            OT_TRY(ot_tensor_clone(x, &out->tensor[i]));
            continue;
        }
        out->spec[i].dtype = OT_F64;
        OT_TRY(ot_tensor_create(OT_F64, &x->shape, &out->tensor[i]));
        ot__convert(out->tensor[i]->data, OT_F64, x->data, x->dtype, ot_tensor_count(x));
    }
    return OT_OK;
}

void inputs_deinit(inputs *in)
{
    for (int i = 0; i < in->n; i++)
        ot_tensor_destroy(in->tensor[i]);
    in->n = 0;
}
