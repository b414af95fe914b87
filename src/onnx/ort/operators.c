// SPDX-License-Identifier: Apache-2.0
// What an .ort file says of the operators that its nodes call: the version of the definition, and
// which arguments have the types that kernels ask for by name (the KernelTypeStrResolver).
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/ort/ort.h"

static const ot__ort_operator operators[] = {
#define OT_ORT_OPERATOR(domain, name, versions, arguments) {domain, name, versions, arguments},
#include "onnx/ort/operators.def"
#undef OT_ORT_OPERATOR
};

// ---- looking up ----

// The greatest of "1,6,13" not above `opset`; 0 when there is none.
static int version_for(const char *versions, int64_t opset)
{
    int best = 0;

    for (const char *at = versions; at; at = strchr(at, ',')) {
        int version;

        at += *at == ',';
        version = atoi(at);
        if (version <= opset && version > best)
            best = version;
    }
    return best;
}

ot_status ot__ort_find_call(const ot_model *model, const ot_node *node, ot__ort_call *out)
{
    const int64_t opset = ot__model_opset(model, node->domain);

    *out = (ot__ort_call){0};
    for (size_t i = 0; i < OT_COUNT(operators); i++) {
        int since;

        if (strcmp(operators[i].name, node->op_type) != 0 ||
            strcmp(operators[i].domain, node->domain) != 0)
            continue;
        since = version_for(operators[i].versions, opset);
        if (since > out->since)
            *out = (ot__ort_call){&operators[i], since};
    }
    if (out->op)
        return OT_OK;
    return ot__error(
        OT_ERR_UNSUPPORTED, "%s: ONNX Runtime 1.19.2 has no kernel for %s%s%s (opset %" PRId64 ")",
        OT_LABEL(node), node->domain, node->domain[0] ? "." : "", node->op_type, opset);
}

// ---- taking "T=i0 i1 o0;Tind=i2" apart ----

enum { ARGUMENTS_MAX = 24, TYPES_MAX = 12 };

typedef struct argument {
    bool is_output;
    uint32_t index;
} argument;

typedef struct type_arguments {
    char name[40];
    int n;
    argument items[ARGUMENTS_MAX];
} type_arguments;

static const char *take_arguments(const char *at, type_arguments *out)
{
    size_t n_name = strcspn(at, "=");

    *out = (type_arguments){0};
    memcpy(out->name, at, OT_MIN(n_name, sizeof out->name - 1));
    at += n_name;
    while (*at && *at != ';') { // at '=' or ' '
        char *end;

        assert(out->n < ARGUMENTS_MAX);
        out->items[out->n].is_output = at[1] == 'o';
        out->items[out->n++].index = (uint32_t)strtoul(at + 2, &end, 10);
        at = end;
    }
    return *at ? at + 1 : at;
}

int ot__ort_formal_inputs(const ot__ort_operator *op)
{
    int n = 0;

    for (const char *at = op->arguments; *at;) {
        type_arguments type;

        at = take_arguments(at, &type);
        for (int i = 0; i < type.n; i++)
            if (!type.items[i].is_output)
                n = OT_MAX(n, (int)type.items[i].index + 1);
    }
    return n;
}

// ---- the resolver ----

static int compare_types(const void *a, const void *b)
{
    return strcmp(((const type_arguments *)a)->name, ((const type_arguments *)b)->name);
}

static size_t write_argument(ot__ort_writer *w, const void *context, size_t i)
{
    const argument *a = &((const type_arguments *)context)->items[i];
    ot__fb_field fields[2] = {
        {.n_bytes = a->is_output, .value = 1},
        {.n_bytes = a->index ? 4 : 0, .value = a->index},
    };

    return ot__fb_write_table(w->buf, fields, 2);
}

static size_t ort_operator_type(ot__ort_writer *w, const void *context, size_t i)
{
    const type_arguments *type = (const type_arguments *)context + i;
    ot__fb_field fields[2] = {{.text = type->name}, {.n_bytes = 4}};
    const size_t position = ot__fb_write_table(w->buf, fields, 2);

    ot__ort_put_list(w, &fields[1], type->n, write_argument, type);
    return position;
}

// "domain:name:version", by which the entries are sorted.
static void call_id(const ot__ort_call *call, char *text, size_t size)
{
    snprintf(text, size, "%s:%s:%d", call->op->domain, call->op->name, call->since);
}

static int compare_calls(const void *a, const void *b)
{
    char left[128], right[128];

    call_id(a, left, sizeof left);
    call_id(b, right, sizeof right);
    return strcmp(left, right);
}

static size_t write_call(ot__ort_writer *w, const void *context, size_t i)
{
    const ot__ort_call *call = (const ot__ort_call *)context + i;
    char id[128];
    ot__fb_field fields[2] = {{.text = id}, {.n_bytes = 4}};
    type_arguments types[TYPES_MAX];
    size_t position;
    int n = 0;

    call_id(call, id, sizeof id);
    position = ot__fb_write_table(w->buf, fields, 2);
    for (const char *at = call->op->arguments; *at; n++)
        at = take_arguments(at, &types[n]);
    qsort(types, (size_t)n, sizeof types[0], compare_types);
    ot__ort_put_list(w, &fields[1], n, ort_operator_type, types);
    return position;
}

size_t ot__ort_write_resolver(ot__ort_writer *w)
{
    ot__fb_field field = {.n_bytes = 4};
    const size_t position = ot__fb_write_table(w->buf, &field, 1);

    if (w->n_calls > 0)
        qsort(w->calls, (size_t)w->n_calls, sizeof *w->calls, compare_calls);
    ot__ort_put_list(w, &field, w->n_calls, write_call, w->calls);
    return position;
}
