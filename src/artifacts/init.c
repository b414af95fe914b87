// SPDX-License-Identifier: Apache-2.0
// Initial values: a model written by hand has none.
#include <math.h>
#include <string.h>

#include "artifacts/artifacts.h"
#include "artifacts/parameters.h"

enum { CHUNK = 256 }; // elements drawn before they are converted

// ---- drawing ----

typedef struct distribution {
    bool is_normal;
    double a, b; // mean and standard deviation, or lower and upper bound
} distribution;

static ot_status draw_values(ot_tensor *tensor, distribution d, uint64_t seed, const char *name)
{
    const ot__rng_key key = ot__rng_key_make(seed, 0, 0, name);
    const int64_t count = ot_tensor_count(tensor);
    const size_t size = ot_dtype_size(tensor->dtype);
    double chunk[CHUNK];

    for (int64_t first = 0; first < count; first += CHUNK) {
        const int64_t n = OT_MIN(CHUNK, count - first);

        for (int64_t k = 0; k < n; k++) {
            const uint64_t index = (uint64_t)(first + k);

            chunk[k] = d.is_normal ? d.a + d.b * ot__rng_normal(key, index)
                                   : d.a + (d.b - d.a) * ot__rng_uniform(key, index);
        }
        if (!ot__convert((char *)tensor->data + (size_t)first * size, tensor->dtype, chunk, OT_F64,
                         n))
            return ot__error(OT_ERR_UNSUPPORTED, "'%s': no random values of element type %s", name,
                             ot_dtype_name(tensor->dtype));
    }
    return OT_OK;
}

ot_status ot__init_normal(ot_tensor *tensor, uint64_t seed, const char *name)
{
    return draw_values(tensor, (distribution){.is_normal = true, .b = 1.0}, seed, name);
}

// ---- patterns ----

typedef enum init_kind { INIT_KAIMING, INIT_XAVIER, INIT_ZEROS, INIT_ONES } init_kind;

static const struct init_row {
    const char *name;
    init_kind kind;
    bool is_normal;
} init_rows[] = {
    {"kaiming_uniform", INIT_KAIMING, false},
    {"kaiming_normal", INIT_KAIMING, true},
    {"xavier_uniform", INIT_XAVIER, false},
    {"xavier_normal", INIT_XAVIER, true},
    {"zeros", INIT_ZEROS, false},
    {"ones", INIT_ONES, false},
};

typedef struct initialising {
    ot_graph *graph;
    uint64_t seed;
    ot__numbers numbers;
    bool *holds_inputs_first; // per value
} initialising;

static void mark_inputs_first(initialising *in)
{
    for (int n = 0; n < in->graph->n_nodes; n++) {
        const ot_node *node = in->graph->nodes[n];

        if (node->n_inputs > 1 && node->inputs[1] && ot__holds_inputs_first(node))
            in->holds_inputs_first[ot__value_number(&in->numbers, node->inputs[1])] = true;
    }
}

// Variance as torch.nn.init has it: gain^2 / fan_in with the gain of ReLU, or 2 / (fan_in +
// fan_out).
static double variance_of(const initialising *in, const ot_value *value, init_kind kind)
{
    const ot_shape *shape = &value->constant->shape;
    const bool inputs_first =
        shape->ndim == 2 && in->holds_inputs_first[ot__value_number(&in->numbers, value)];
    double field = 1.0, fan_in, fan_out;

    for (int k = 2; k < shape->ndim; k++)
        field *= (double)shape->dim[k];
    fan_in = field * (double)shape->dim[inputs_first ? 0 : 1];
    fan_out = field * (double)shape->dim[inputs_first ? 1 : 0];
    return kind == INIT_KAIMING ? 2.0 / fan_in : 2.0 / (fan_in + fan_out);
}

static distribution distribution_of(const initialising *in, const ot_value *value,
                                    const struct init_row *row)
{
    const double constant = row->kind == INIT_ONES ? 1.0 : 0.0;
    double deviation;

    if (row->kind == INIT_ZEROS || row->kind == INIT_ONES)
        return (distribution){.a = constant, .b = constant};
    deviation = sqrt(variance_of(in, value, row->kind));
    if (row->is_normal)
        return (distribution){.is_normal = true, .a = 0.0, .b = deviation};
    return (distribution){.a = -sqrt(3.0) * deviation, .b = sqrt(3.0) * deviation};
}

static ot_status init_value(const initialising *in, ot_value *value, const struct init_row *row,
                            const char *pattern)
{
    const bool has_fans = value->constant->shape.ndim >= 2;
    ot_tensor *tensor;

    if (!has_fans && (row->kind == INIT_KAIMING || row->kind == INIT_XAVIER)) {
        if (!ot__pattern_is_name(pattern))
            return OT_OK;
        return ot__error(OT_ERR_INVALID,
                         "init '%s=%s': shape %s has no fan-in, which takes two axes or more",
                         pattern, row->name, OT_SHAPE_TEXT(&value->constant->shape));
    }
    tensor =
        ot__model_tensor_new(in->graph->model, value->constant->dtype, &value->constant->shape);
    OT_TRY(ot__made(tensor));
    value->constant = tensor;
    return draw_values(tensor, distribution_of(in, value, row), in->seed, value->name);
}

const char *ot_init_kind_name(int index)
{
    return index >= 0 && index < (int)OT_COUNT(init_rows) ? init_rows[index].name : NULL;
}

static ot_status parse_init(const char *text, const struct init_row **row, size_t *length)
{
    const char *equals = strrchr(text, '=');
    ot__names kinds = {.wanted = equals ? equals + 1 : text};

    *row = NULL;
    *length = equals ? (size_t)(equals - text) : 0;
    for (size_t i = 0; i < OT_COUNT(init_rows); i++) {
        if (equals && strcmp(equals + 1, init_rows[i].name) == 0)
            *row = &init_rows[i];
        ot__names_add(&kinds, init_rows[i].name);
    }
    if (*row)
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "init '%s': expected <pattern>=<kind> with kind %s%s", text,
                     ot__names_list(&kinds, "kinds"), equals ? ot__names_hint(&kinds) : "");
}

static ot_status init_unmatched(const ot_graph *graph, const char *text, const char *pattern)
{
    ot__names names = {.wanted = pattern};

    for (int i = 0; i < graph->n_initializers; i++)
        if (ot__dtype_is_float(graph->initializers[i]->constant->dtype))
            ot__names_add(&names, graph->initializers[i]->name);
    return ot__error(OT_ERR_NOT_FOUND, "init '%s' matches no initializer of a float type%s", text,
                     ot__names_hint(&names));
}

static ot_status apply_init(const initialising *in, const char *text)
{
    ot_graph *graph = in->graph;
    const struct init_row *row;
    size_t length;
    char *pattern;
    bool is_used = false;

    OT_TRY(parse_init(text, &row, &length));
    pattern = ot__arena_strndup(graph->model->arena, text, length);
    OT_TRY(ot__made(pattern));
    for (int i = 0; i < graph->n_initializers; i++) {
        ot_value *value = graph->initializers[i];

        if (!ot__pattern_has(pattern, value) || !ot__dtype_is_float(value->constant->dtype))
            continue;
        is_used = true;
        OT_TRY(init_value(in, value, row, pattern));
    }
    return is_used ? OT_OK : init_unmatched(graph, text, pattern);
}

ot_status ot__init_parameters(ot_model *model, const ot_artifacts_options *options)
{
    initialising in = {.graph = model->graph, .seed = options->seed};
    ot_status st;

    OT_TRY(ot__model_inline_functions(model));
    OT_TRY(ot__pass_draw(model, options->seed));
    if (options->n_init == 0)
        return OT_OK;
    OT_TRY(ot__numbers_build(model->graph, &in.numbers));
    in.holds_inputs_first = ot__alloc_zero((size_t)in.numbers.n_values, sizeof(bool));
    st = ot__made(in.holds_inputs_first);
    if (st == OT_OK)
        mark_inputs_first(&in);
    for (int i = 0; i < options->n_init && st == OT_OK; i++)
        st = apply_init(&in, options->init[i]);
    ot__free(in.holds_inputs_first);
    ot__numbers_deinit(&in.numbers);
    return st;
}
