// SPDX-License-Identifier: Apache-2.0
// Attributes in ONNX's textual syntax.
#include <string.h>

#include "onnx/text/print.h"

static const char *const kind_words[] = {
    "undefined",      "float",      "int",         "string",  "tensor", "graph",
    "floats",         "ints",       "strings",     "tensors", "graphs", "sparse_tensor",
    "sparse_tensors", "type_proto", "type_protos",
};

// The fields of a kind that is kept as bytes.
static void print_kept(ot__printer *printer, const ot_attr *attr)
{
    ot__walk walk = ot__walk_over(attr->bytes);
    bool is_list = attr->kind == OT_ATTR_TYPE_PROTOS;
    const char *separator = "";
    ot__field field;

    if (attr->kind == OT_ATTR_SPARSE_TENSOR || attr->kind == OT_ATTR_SPARSE_TENSORS) {
        if (printer->max_elements == 0 && printer->status == OT_OK)
            printer->status =
                ot__error(OT_ERR_UNSUPPORTED,
                          "attribute '%s': sparse tensors cannot be written as text", attr->name);
        ot__buf_text(printer->out, "...");
        return;
    }
    ot__buf_text(printer->out, is_list ? "[" : "");
    while (ot__wire_next(&walk, &field)) {
        ot__buf_text(printer->out, separator);
        ot__print_type(printer->out, (ot__bytes){field.data, field.size});
        separator = ", ";
    }
    ot__buf_text(printer->out, is_list ? "]" : "");
}

static void print_tensor(ot__printer *printer, const ot_tensor *tensor, const ot__tensor_note *note)
{
    ot__print_tensor(printer, tensor, note ? note->name : "", false);
}

static void print_item(ot__printer *printer, const ot_attr *attr, int i)
{
    switch (attr->kind) {
    case OT_ATTR_FLOATS:
        ot__buf_float(printer->out, (double)attr->floats[i], true);
        break;
    case OT_ATTR_INTS:
        ot__buf_printf(printer->out, "%" PRId64, attr->ints[i]);
        break;
    case OT_ATTR_STRINGS:
        ot__print_quoted(printer->out, attr->strings[i].data, attr->strings[i].size);
        break;
    case OT_ATTR_TENSORS:
        print_tensor(printer, attr->tensors[i], attr->notes ? &attr->notes[i] : NULL);
        break;
    default:
        ot__print_graph(printer, attr->graphs[i]);
        break;
    }
}

static void print_value(ot__printer *printer, const ot_attr *attr)
{
    switch (attr->kind) {
    case OT_ATTR_FLOAT:
        ot__buf_float(printer->out, (double)attr->f, true);
        break;
    case OT_ATTR_INT:
        ot__buf_printf(printer->out, "%" PRId64, attr->i);
        break;
    case OT_ATTR_STRING:
        ot__print_quoted(printer->out, attr->s.data, attr->s.size);
        break;
    case OT_ATTR_TENSOR:
        print_tensor(printer, attr->t, attr->notes);
        break;
    case OT_ATTR_GRAPH:
        ot__print_graph(printer, attr->g);
        break;
    case OT_ATTR_SPARSE_TENSOR:
    case OT_ATTR_SPARSE_TENSORS:
    case OT_ATTR_TYPE_PROTO:
    case OT_ATTR_TYPE_PROTOS:
        print_kept(printer, attr);
        break;
    default: {
        int shown = printer->max_elements > 0 ? OT_MIN(attr->n, printer->max_elements) : attr->n;

        ot__buf_text(printer->out, "[");
        for (int i = 0; i < shown; i++) {
            ot__buf_text(printer->out, i ? ", " : "");
            print_item(printer, attr, i);
        }
        ot__buf_text(printer->out, shown < attr->n ? ", ...]" : "]");
        break;
    }
    }
}

void ot__print_attr(ot__printer *printer, const ot_attr *attr)
{
    ot__print_id(printer->out, attr->name);
    if (attr->kind != OT_ATTR_UNDEFINED)
        ot__buf_printf(printer->out, ": %s", kind_words[attr->kind]);
    ot__buf_text(printer->out, " = ");
    if (attr->ref_name) {
        ot__buf_text(printer->out, "@");
        ot__print_id(printer->out, attr->ref_name);
        return;
    }
    printer->indent += 3;
    print_value(printer, attr);
    printer->indent -= 3;
}
