// SPDX-License-Identifier: Apache-2.0
// Nodes and attributes of .ort files.
#include <string.h>

#include "onnx/ort/ort.h"

// ---- attributes ----

static ot_status ort_read_numbers(ot__ort_reader *r, const ot__fb_table *table, int slot,
                                  ot_attr *attr)
{
    ot__fb_vector list = ot__fb_subvector(&r->fb, table, slot, ot__attr_rows[attr->kind].size);

    OT_TRY(r->fb.status);
    return ot__made(
        ot__attr_set_list(r->reader.model->arena, attr, r->fb.bytes + list.position, list.count));
}

static ot_status copy_string(ot__ort_reader *r, ot__fb_vector bytes, ot__string *out)
{
    OT_TRY(r->fb.status);
    return ot__read_string(&r->reader, r->fb.bytes + bytes.position, bytes.count, out);
}

static ot_status ort_read_attr_strings(ot__ort_reader *r, const ot__fb_table *table, ot_attr *attr)
{
    ot__fb_vector list = ot__fb_subvector(&r->fb, table, ORT_ATTR_STRINGS, 4);
    ot__string *strings;

    OT_TRY(r->fb.status);
    strings = ot__attr_room(r->reader.model->arena, attr, list.count);
    OT_TRY(ot__made(strings));
    for (size_t i = 0; i < list.count; i++)
        OT_TRY(copy_string(r, ot__fb_bytes_element(&r->fb, list, i), &strings[i]));
    return OT_OK;
}

static ot_status ort_read_tensors(ot__ort_reader *r, const ot__fb_table *table, ot_attr *attr)
{
    ot__arena *arena = r->reader.model->arena;
    const bool is_one = attr->kind == OT_ATTR_TENSOR;
    ot__fb_vector list = {.count = 1};
    ot_tensor **tensors;
    ot__tensor_note *notes;

    if (!is_one)
        list = ot__fb_subvector(&r->fb, table, ORT_ATTR_TENSORS, 4);
    OT_TRY(r->fb.status);
    tensors = ot__attr_room(arena, attr, list.count);
    notes = ot__arena_alloc(arena, list.count * sizeof *notes);
    OT_TRY(ot__made(tensors && notes));
    for (size_t i = 0; i < list.count; i++) {
        ot__fb_table tensor =
            is_one ? ot__fb_subtable(&r->fb, table, ORT_ATTR_T) : ot__fb_element(&r->fb, list, i);
        ot__read_tensor read;

        OT_TRY(r->fb.status);
        OT_TRY(ot__count_one(&r->reader.limits, &r->n_values, "values"));
        OT_TRY(ot__ort_read_tensor(r, &tensor, &read));
        notes[i] = (ot__tensor_note){.name = read.name, .doc = read.doc};
        tensors[i] = read.tensor;
    }
    attr->notes = notes;
    return OT_OK;
}

static ot_status read_subgraph(ot__ort_reader *r, const ot__fb_table *table, ot_graph *parent,
                               ot_attr *attr, int depth)
{
    ot__fb_table graph = ot__fb_subtable(&r->fb, table, ORT_ATTR_G);

    OT_TRY(r->fb.status);
    attr->g = ot__graph_create(r->reader.model, parent, attr->name);
    return attr->g ? ot__ort_read_graph(r, &graph, attr->g, depth + 1) : OT_ERR_NO_MEMORY;
}

int ot__ort_slot_of(ot_attr_kind kind)
{
    static const int slots[] = {
        [OT_ATTR_FLOAT] = ORT_ATTR_F,         [OT_ATTR_INT] = ORT_ATTR_I,
        [OT_ATTR_STRING] = ORT_ATTR_S,        [OT_ATTR_TENSOR] = ORT_ATTR_T,
        [OT_ATTR_GRAPH] = ORT_ATTR_G,         [OT_ATTR_FLOATS] = ORT_ATTR_FLOATS,
        [OT_ATTR_INTS] = ORT_ATTR_INTS,       [OT_ATTR_STRINGS] = ORT_ATTR_STRINGS,
        [OT_ATTR_TENSORS] = ORT_ATTR_TENSORS,
    };

    return kind >= OT_ATTR_FLOAT && kind <= OT_ATTR_TENSORS ? slots[kind] : -1;
}

static ot_status ort_read_attr_value(ot__ort_reader *r, const ot__fb_table *table, ot_graph *graph,
                                     ot_attr *attr, int depth)
{
    const int slot = ot__ort_slot_of(attr->kind);
    const bool may_be_absent = attr->kind == OT_ATTR_FLOAT || attr->kind == OT_ATTR_INT; // 0

    if (slot < 0)
        return ot__error(OT_ERR_FORMAT, "has kind %d, which the format has no value for",
                         (int)attr->kind);
    if (!may_be_absent && !ot__fb_has(&r->fb, table, slot) && r->fb.status == OT_OK)
        return ot__error(OT_ERR_FORMAT, "has no value of its kind %s",
                         ot__attr_kind_name(attr->kind));
    switch (attr->kind) {
    case OT_ATTR_FLOAT:
        attr->f = ot__fb_float(&r->fb, table, ORT_ATTR_F);
        return r->fb.status;
    case OT_ATTR_INT:
        attr->i = ot__fb_int(&r->fb, table, ORT_ATTR_I, 8, 0);
        return r->fb.status;
    case OT_ATTR_STRING:
        return copy_string(r, ot__fb_subvector(&r->fb, table, ORT_ATTR_S, 1), &attr->s);
    case OT_ATTR_FLOATS:
    case OT_ATTR_INTS:
        return ort_read_numbers(r, table, slot, attr);
    case OT_ATTR_STRINGS:
        return ort_read_attr_strings(r, table, attr);
    case OT_ATTR_GRAPH:
        return read_subgraph(r, table, graph, attr, depth);
    default:
        return ort_read_tensors(r, table, attr);
    }
}

static ot_status ort_read_attr(ot__ort_reader *r, const ot__fb_table *table, ot_node *node,
                               int depth)
{
    const char *name, *doc;
    ot_attr *attr;
    int64_t kind = ot__fb_int(&r->fb, table, ORT_ATTR_TYPE, 4, 0);

    OT_TRY(ot__ort_check_depth(r, depth));
    OT_TRY(ot__count_one(&r->reader.limits, &r->n_attrs, "attributes"));
    OT_TRY(ot__ort_read_text(r, table, ORT_ATTR_NAME, &name));
    OT_TRY(ot__ort_read_text(r, table, ORT_ATTR_DOC, &doc));
    if (!name[0])
        return ot__error(OT_ERR_FORMAT, "an attribute has no name");
    if (ot__node_attr(node, name))
        return ot__error(OT_ERR_FORMAT, "attribute '%s' is given twice", name);
    attr = ot__node_add_attr(node, name, (ot_attr_kind)kind);
    OT_TRY(ot__made(attr));
    attr->doc = doc[0] ? doc : NULL;
    return ot__error_prefix(ort_read_attr_value(r, table, node->graph, attr, depth),
                            "attribute '%s'", name);
}

static ot_status ort_read_attrs(ot__ort_reader *r, const ot__fb_table *table, ot_node *node,
                                int depth)
{
    ot__fb_vector attrs = ot__fb_subvector(&r->fb, table, ORT_NODE_ATTRIBUTES, 4);
    ot__fb_table attr;

    if (attrs.count > OT_MAX_ATTRS)
        return ot__error(OT_ERR_NO_MEMORY, "more than %d attributes", OT_MAX_ATTRS);
    while (ot__fb_next(&r->fb, &attrs, &attr))
        OT_TRY(ort_read_attr(r, &attr, node, depth + 1));
    return r->fb.status;
}

// ---- nodes ----

// *out is freed by the caller; "" is an omitted end.
static ot_status ort_read_node_ends(ot__ort_reader *r, ot__fb_vector names, ot_graph *graph,
                                    ot__finding find, ot_value ***out)
{
    *out = ot__alloc_zero(names.count + 1, sizeof **out);
    OT_TRY(ot__made(*out));
    for (size_t i = 0; i < names.count; i++) {
        const char *name = ot__fb_string_element(&r->fb, names, i);

        OT_TRY(r->fb.status);
        OT_TRY(ot__count_one(&r->reader.limits, &r->n_values, "values"));
        if (*name)
            OT_TRY(find(graph, name, &(*out)[i]));
    }
    return OT_OK;
}

static ot_status ort_add_node(ot__ort_reader *r, const ot__fb_table *table, ot_graph *graph,
                              const char *op_type, const char *name, ot_node **out)
{
    const char *domain = ot__fb_string(&r->fb, table, ORT_NODE_DOMAIN);
    ot__fb_vector inputs = ot__fb_subvector(&r->fb, table, ORT_NODE_INPUTS, 4);
    ot__fb_vector outputs = ot__fb_subvector(&r->fb, table, ORT_NODE_OUTPUTS, 4);
    ot_value **in = NULL, **made = NULL;
    ot_status st = r->fb.status;

    *out = NULL;
    OT_THEN(st, ort_read_node_ends(r, inputs, graph, ot__find_node_input, &in));
    OT_THEN(st, ort_read_node_ends(r, outputs, graph, ot__find_node_output, &made));
    if (st == OT_OK) {
        *out = ot__graph_add_node(graph, domain ? domain : "", op_type, name, in, (int)inputs.count,
                                  made, (int)outputs.count);
        st = ot__made(*out);
    }
    ot__free(in);
    ot__free(made);
    return st;
}

static ot_status ort_read_node(ot__ort_reader *r, const ot__fb_table *table, ot_graph *graph,
                               const char *op_type, const char *name, int depth)
{
    ot_node *node;

    OT_TRY(ort_add_node(r, table, graph, op_type, name, &node));
    OT_TRY(ot__ort_read_text(r, table, ORT_NODE_DOC, &node->doc));
    OT_TRY(ot__check_node_outputs(node));
    return ort_read_attrs(r, table, node, depth);
}

ot_status ot__ort_read_node(ot__ort_reader *r, const ot__fb_table *table, ot_graph *graph,
                            int depth)
{
    const char *op_type = ot__fb_string(&r->fb, table, ORT_NODE_OP_TYPE);
    const char *name = ot__fb_string(&r->fb, table, ORT_NODE_NAME);
    const int i_node = graph->n_nodes;
    ot_status st = r->fb.status;

    OT_TRY(st);
    OT_TRY(ot__ort_check_depth(r, depth));
    OT_TRY(ot__count_one(&r->reader.limits, &r->n_nodes, "nodes"));
    if (!op_type || !*op_type)
        st = ot__error(OT_ERR_FORMAT, "no op_type");
    else
        st = ort_read_node(r, table, graph, op_type, name, depth);
    if (name && *name)
        return ot__error_prefix(st, "node '%s'", name);
    return ot__error_prefix(st, "%s node %d", op_type ? op_type : "", i_node);
}
