// SPDX-License-Identifier: Apache-2.0
// Exporters fold the transposition of a weight: one that is also read as it was, as that of a tied
// embedding, then is two tensors. The copy becomes the parameter behind a Transpose again.
#include <stdlib.h>
#include <string.h>

#include "passes/sharing.h"

#define FOLDED_FROM "pkg.onnxscript.optimizer.folded_from"

typedef struct matrix {
    ot_value *value;
    const ot_tensor *tensor; // its elements, as they were
    uint64_t hash;
    bool is_read; // by an operator, as it is
} matrix;

static bool is_matrix(const ot_value *value)
{
    return ot__is_parameter(value) && value->constant->shape.ndim == 2 &&
           ot_dtype_size(value->constant->dtype) > 0;
}

// Is `a` the transpose of `b`, bit for bit?
static bool is_transpose(const ot_tensor *a, const ot_tensor *b)
{
    const size_t size = ot_dtype_size(a->dtype);
    const int64_t rows = a->shape.dim[0], columns = a->shape.dim[1];
    const char *from = a->data, *to = b->data;

    if (a->dtype != b->dtype || b->shape.dim[0] != columns || b->shape.dim[1] != rows)
        return false;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            if (memcmp(from + (size_t)(r * columns + c) * size, to + (size_t)(c * rows + r) * size,
                       size) != 0)
                return false;
    return true;
}

// ---- which parameter it was ----

static int join_by_elements(const void *left, const void *right)
{
    const matrix *a = left, *b = right;

    if (a->tensor->n_bytes != b->tensor->n_bytes)
        return a->tensor->n_bytes < b->tensor->n_bytes ? -1 : 1;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return strcmp(a->value->name, b->value->name);
}

// What the exporter says: NULL when it says nothing, or names something else than one parameter.
static ot_status find_named(const ot__separation *s, const char *names, ot_value **out)
{
    int n;
    const char *const *list = ot__metadata_list(s->graph->model->arena, names, &n);

    *out = NULL;
    OT_TRY(ot__made(list));
    if (n == 1)
        *out = ot__graph_find(s->graph, list[0]);
    return OT_OK;
}

static bool is_table(const ot__separation *s, const ot_value *value)
{
    const char *leaf;

    for (int u = ot__uses_first(&s->uses, value); u < ot__uses_end(&s->uses, value); u++)
        if (ot__sharing_role(s, &s->uses.use[u], &leaf) == OT_PORT_ROLE_TABLE)
            return true;
    return false;
}

static bool same_elements(const matrix *a, const matrix *b)
{
    return a->hash == b->hash && a->tensor->n_bytes == b->tensor->n_bytes;
}

// In files that do not say it: the parameter that has the same elements; rather one that is a
// table.
static ot_value *find_equal(const ot__separation *s, const matrix *sorted, int n, int i)
{
    const int max_distance = 64; // a file may have any number of equal matrices
    ot_value *found = NULL;
    int first = i;

    while (first > 0 && i - first < max_distance && same_elements(&sorted[first - 1], &sorted[i]))
        first--;
    for (int k = first; k < n && k - i < max_distance && same_elements(&sorted[k], &sorted[i]);
         k++) {
        ot_value *value = sorted[k].value;

        if (k == i || !sorted[k].is_read || !ot__is_parameter_name(s->graph, value->name) ||
            !is_transpose(sorted[i].tensor, sorted[k].tensor))
            continue;
        if (!found || (!is_table(s, found) && is_table(s, value)))
            found = value;
    }
    return found;
}

// ---- joining ----

// The Transpose has the place of the node that reads it.
static ot_status add_transpose(ot__separation *s, ot_value *parameter, ot_value *y,
                               const ot__use *use)
{
    static const int64_t perm[] = {1, 0};
    const char *slash = strrchr(use->node->name, '/');
    const size_t length = slash ? (size_t)(slash - use->node->name) + 1 : 0;
    ot__builder b = {.graph = s->graph};
    const char *name = ot__build_name(
        &b, "%.*sTranspose_%s", (int)OT_MIN(length, (size_t)INT32_MAX), use->node->name, y->name);
    ot_node *node = ot__build_node(&b, "", "Transpose", name, &parameter, 1, &y, 1);

    ot__build_ints(&b, node, "perm", perm, 2);
    OT_TRY(b.status);
    node->metadata = use->node->metadata;
    use->node->inputs[use->i_input] = y;
    return OT_OK;
}

static ot_status join_shared(ot__separation *s, ot_value *copy, ot_value *parameter)
{
    const int first = ot__uses_first(&s->uses, copy), end = ot__uses_end(&s->uses, copy);
    const ot_shape shape = copy->constant->shape;

    copy->is_initializer = false;
    copy->constant = NULL;
    for (int u = first; u < end; u++) {
        ot_value *y = u == first ? copy : ot__graph_new_value(s->graph, copy->name);

        OT_TRY(ot__made(y));
        ot__value_set(y, parameter->constant->dtype, &shape);
        OT_TRY(add_transpose(s, parameter, y, &s->uses.use[u]));
    }
    return ot__sharing_say(s, OT_SHARING_JOINED, parameter->name, &copy->name, 1);
}

static bool may_join(const ot__separation *s, const ot_value *copy)
{
    if (copy->is_output || copy->is_input || ot__uses_count(&s->uses, copy) == 0)
        return false;
    for (int u = ot__uses_first(&s->uses, copy); u < ot__uses_end(&s->uses, copy); u++)
        if (s->uses.use[u].i_input < 0)
            return false;
    return !ot__sharing_stays(s, copy->name);
}

static ot_status join_one(ot__separation *s, const matrix *sorted, int n, int i, bool *changed)
{
    ot_value *copy = sorted[i].value, *parameter = NULL;
    const char *folded = ot__metadata_get(&copy->metadata, FOLDED_FROM);

    // Once joined it is none any more.
    if (!is_matrix(copy) || (!folded && ot__is_parameter_name(s->graph, copy->name)))
        return OT_OK;
    if (folded) {
        OT_TRY(find_named(s, folded, &parameter));
        if (parameter &&
            (!is_matrix(parameter) || !is_transpose(copy->constant, parameter->constant)))
            parameter = NULL;
    } else if (!ot__tensor_is_uniform(copy->constant)) {
        parameter = find_equal(s, sorted, n, i);
    }
    if (!parameter || parameter == copy || !may_join(s, copy))
        return OT_OK;
    *changed = true;
    return join_shared(s, copy, parameter);
}

// Is there a matrix whose parameter only its elements could tell?
static bool needs_elements(const ot_graph *graph)
{
    for (int i = 0; i < graph->n_initializers; i++) {
        const ot_value *value = graph->initializers[i];

        if (is_matrix(value) && !ot__is_parameter_name(graph, value->name) &&
            !ot__metadata_get(&value->metadata, FOLDED_FROM))
            return true;
    }
    return false;
}

static ot_status join_all(ot__separation *s, matrix *matrices)
{
    const bool by_hash = needs_elements(s->graph); // else large files need not be read for it
    bool changed = false;
    int n = 0;

    for (int i = 0; i < s->graph->n_initializers; i++) {
        ot_value *value = s->graph->initializers[i];

        if (is_matrix(value))
            matrices[n++] =
                (matrix){value, value->constant, by_hash ? ot__elements_hash(value->constant) : 0,
                         ot__uses_count(&s->uses, value) > 0};
    }
    qsort(matrices, (size_t)n, sizeof *matrices, join_by_elements);
    for (int i = 0; i < n; i++)
        OT_TRY(join_one(s, matrices, n, i, &changed));
    if (!changed)
        return OT_OK;
    ot__graph_relist(s->graph);
    return ot__graph_sort(s->graph);
}

ot_status ot__sharing_join(ot__separation *s)
{
    matrix *matrices = ot__alloc_zero((size_t)s->graph->n_initializers + 1, sizeof *matrices);
    ot_status st = matrices ? join_all(s, matrices) : OT_ERR_NO_MEMORY;

    ot__free(matrices);
    return st;
}
