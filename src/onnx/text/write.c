// SPDX-License-Identifier: Apache-2.0
// A model in ONNX's textual syntax, laid out as onnx.printer does.
#include <string.h>

#include "onnx/text/print.h"

// ---- names ----

void ot__print_quoted(ot__buf *out, const void *bytes, size_t n_bytes)
{
    const char *text = bytes;

    ot__buf_text(out, "\"");
    for (size_t i = 0; i < n_bytes; i++) {
        if (text[i] == '\\' || text[i] == '"')
            ot__buf_text(out, "\\");
        ot__buf_append(out, &text[i], 1);
    }
    ot__buf_text(out, "\"");
}

static bool is_text_word(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!ot__is_letter(text[i]) && text[i] != '_' && (i == 0 || !ot__is_digit(text[i])))
            return false;
    }
    return n > 0;
}

void ot__print_name(ot__buf *out, const void *bytes, size_t n_bytes)
{
    if (is_text_word(bytes, n_bytes))
        ot__buf_append(out, bytes, n_bytes);
    else
        ot__print_quoted(out, bytes, n_bytes);
}

void ot__print_id(ot__buf *out, const char *name)
{
    ot__print_name(out, name, strlen(name));
}

// A name where a type may stand as well: one that is the name of a type needs quotes.
static void print_value_name(ot__printer *printer, const char *name)
{
    if (ot__is_type_word((ot__bytes){(const uint8_t *)name, strlen(name)}))
        ot__print_quoted(printer->out, name, strlen(name));
    else
        ot__print_id(printer->out, name);
}

// ---- values ----

// The type, by way of protobuf's form.
static void print_value_type(ot__printer *printer, const ot_value *value)
{
    ot_value type = *value;
    ot__buf proto = {0};
    ot__wire wire = ot__wire_to(&proto);

    if (type.kind == OT_VALUE_TENSOR) // what else a file says of it has no textual form
        type.type_bytes = (ot__bytes){0};
    ot__write_type(&wire, &(ot__typed_value){printer->model, &type});
    ot__print_type(printer->out, (ot__bytes){(const uint8_t *)proto.data, proto.length});
    ot__buf_text(printer->out, " ");
    printer->out->failed = printer->out->failed || proto.failed;
    ot__buf_deinit(&proto);
}

static void print_text_value(ot__printer *printer, const ot_value *value)
{
    if (value->kind != OT_VALUE_UNTYPED &&
        (value->kind != OT_VALUE_TENSOR || value->dtype != OT_DTYPE_UNDEFINED))
        print_value_type(printer, value);
    print_value_name(printer, value->name);
}

static void print_values(ot__printer *printer, ot_value *const *values, int n)
{
    ot__buf_text(printer->out, "(");
    for (int i = 0; i < n; i++) {
        ot__buf_text(printer->out, i ? ", " : "");
        print_text_value(printer, values[i]);
    }
    ot__buf_text(printer->out, ")");
}

static void print_ends(ot__printer *printer, ot_value *const *values, int n)
{
    for (int i = 0; i < n; i++) {
        ot__buf_text(printer->out, i ? ", " : "");
        if (values[i])
            ot__print_id(printer->out, values[i]->name);
        else
            ot__buf_text(printer->out, "\"\"");
    }
}

// ---- nodes ----

// Domains have points between identifiers; what is no identifier is quoted.
static void print_operator(ot__printer *printer, const ot_node *node)
{
    for (const char *at = node->domain; *at;) {
        size_t n = strcspn(at, ".");

        ot__print_name(printer->out, at, n);
        ot__buf_text(printer->out, ".");
        at += n + (at[n] == '.');
    }
    ot__print_id(printer->out, node->op_type);
    if (*node->overload) {
        ot__buf_text(printer->out, ":");
        ot__print_id(printer->out, node->overload);
    }
}

static void print_attrs(ot__printer *printer, const ot_node *node)
{
    if (node->n_attrs == 0)
        return;
    ot__buf_text(printer->out, " <");
    for (int i = 0; i < node->n_attrs; i++) {
        ot__buf_text(printer->out, i ? ", " : "");
        ot__print_attr(printer, node->attrs[i]);
    }
    ot__buf_text(printer->out, ">");
}

static void print_node(ot__printer *printer, const ot_node *node)
{
    const bool has_subgraph = ot__next_subgraph(&(ot__subgraphs){.node = node});

    ot__buf_printf(printer->out, "%*s", printer->indent, "");
    if (*node->name) {
        ot__buf_text(printer->out, "[");
        ot__print_id(printer->out, node->name);
        ot__buf_text(printer->out, "] ");
    }
    print_ends(printer, node->outputs, node->n_outputs);
    ot__buf_text(printer->out, " = ");
    print_operator(printer, node);
    if (!has_subgraph)
        print_attrs(printer, node);
    ot__buf_text(printer->out, " (");
    print_ends(printer, node->inputs, node->n_inputs);
    ot__buf_text(printer->out, ")");
    if (has_subgraph)
        print_attrs(printer, node);
    ot__buf_text(printer->out, "\n");
}

static void print_nodes(ot__printer *printer, const ot_graph *graph)
{
    ot__buf_text(printer->out, "{\n");
    for (int i = 0; i < graph->n_nodes; i++)
        print_node(printer, graph->nodes[i]);
    ot__buf_printf(printer->out, "%*s}", printer->indent - 3, "");
}

// ---- graphs ----

// The next entry of the list between < and >.
static void begin_entry(ot__printer *printer, bool *is_first)
{
    ot__buf_printf(printer->out, *is_first ? "\n%*s<" : ",\n%*s ", printer->indent, "");
    *is_first = false;
}

// Initializers, then the types of inner values.
static void print_inner_values(ot__printer *printer, const ot_graph *graph)
{
    bool is_first = true;

    for (int i = 0; i < graph->n_initializers; i++) {
        begin_entry(printer, &is_first);
        ot__print_tensor(printer, graph->initializers[i]->constant, graph->initializers[i]->name,
                         true);
    }
    for (int n = 0; n < graph->n_nodes; n++) {
        for (int i = 0; i < graph->nodes[n]->n_outputs; i++) {
            const ot_value *value = graph->nodes[n]->outputs[i];

            if (!value || value->kind == OT_VALUE_UNTYPED || value->is_output)
                continue;
            begin_entry(printer, &is_first);
            print_text_value(printer, value);
        }
    }
    ot__buf_text(printer->out, is_first ? " " : ">\n");
    if (!is_first)
        ot__buf_printf(printer->out, "%*s", printer->indent - 3, "");
}

// What would be missing from a text that is to be read back.
void ot__print_graph(ot__printer *printer, const ot_graph *graph)
{
    ot__print_id(printer->out, graph->name);
    ot__buf_text(printer->out, " ");
    print_values(printer, graph->inputs, graph->n_inputs);
    ot__buf_text(printer->out, " => ");
    print_values(printer, graph->outputs, graph->n_outputs);
    print_inner_values(printer, graph);
    print_nodes(printer, graph);
}

// ---- functions and models ----

static void print_opsets(ot__buf *out, const ot__opset *opsets, int n)
{
    ot__buf_text(out, "[");
    for (int i = 0; i < n; i++) {
        ot__buf_text(out, i ? ", " : "");
        ot__print_quoted(out, opsets[i].domain, strlen(opsets[i].domain));
        ot__buf_printf(out, " : %" PRId64, opsets[i].version);
    }
    ot__buf_text(out, "]");
}

static void print_names(ot__buf *out, const char *const *names, int n)
{
    ot__buf_text(out, "(");
    for (int i = 0; i < n; i++) {
        ot__buf_text(out, i ? ", " : "");
        ot__print_id(out, names[i]);
    }
    ot__buf_text(out, ")");
}

static void print_text_entry(ot__buf *out, const char *key, const char *text)
{
    if (!*text)
        return;
    ot__buf_printf(out, ",\n   %s: ", key);
    ot__print_quoted(out, text, strlen(text));
}

static void print_function(ot__printer *printer, const ot__function *function)
{
    ot__buf *out = printer->out;

    ot__buf_text(out, "\n<\n   domain: ");
    ot__print_quoted(out, function->domain, strlen(function->domain));
    print_text_entry(out, "overload", function->overload);
    print_text_entry(out, "doc_string", function->doc);
    ot__buf_text(out, ",\n   opset_import: ");
    print_opsets(out, function->opsets, function->n_opsets);
    ot__buf_text(out, "\n>\n");
    ot__print_id(out, function->name);
    ot__buf_text(out, " ");
    for (int i = 0; i < function->n_attrs; i++) {
        ot__buf_text(out, i ? ", " : "<");
        ot__print_id(out, function->attrs[i]);
    }
    for (int i = 0; i < function->n_attr_defaults; i++) {
        ot__buf_text(out, i || function->n_attrs ? ", " : "<");
        ot__print_attr(printer, function->attr_defaults[i]);
    }
    if (function->n_attrs || function->n_attr_defaults)
        ot__buf_text(out, "> ");
    print_names(out, function->inputs, function->n_inputs);
    ot__buf_text(out, " => ");
    print_names(out, function->outputs, function->n_outputs);
    ot__buf_text(out, "\n");
    print_nodes(printer, function->body);
    ot__buf_text(out, "\n");
}

static void print_header(ot__buf *out, const ot_model *model)
{
    ot__buf_printf(out, "<\n   ir_version: %" PRId64 ",\n   opset_import: ", model->ir_version);
    print_opsets(out, model->opsets, model->n_opsets);
    print_text_entry(out, "producer_name", model->producer_name);
    print_text_entry(out, "producer_version", model->producer_version);
    print_text_entry(out, "domain", model->domain);
    if (model->model_version != 0)
        ot__buf_printf(out, ",\n   model_version: %" PRId64, model->model_version);
    print_text_entry(out, "doc_string", model->doc);
    for (int i = 0; i < model->n_metadata; i++) {
        ot__buf_text(out, i ? ", " : ",\n   metadata_props: [");
        ot__print_quoted(out, model->metadata[2 * i], strlen(model->metadata[2 * i]));
        ot__buf_text(out, ": ");
        ot__print_quoted(out, model->metadata[2 * i + 1], strlen(model->metadata[2 * i + 1]));
    }
    ot__buf_text(out, model->n_metadata ? "]\n>\n" : "\n>\n");
}

ot_status ot__text_write(const ot_model *model, const ot__text_options *options, ot__buf *out)
{
    ot__printer printer = {.out = out,
                           .model = model,
                           .max_elements = options ? options->max_elements : 0,
                           .indent = 3};

    print_header(out, model);
    ot__print_graph(&printer, model->graph);
    ot__buf_text(out, "\n");
    for (int i = 0; i < model->n_functions; i++)
        print_function(&printer, model->functions[i]);
    return printer.status != OT_OK ? printer.status : ot__buf_status(out);
}
