// SPDX-License-Identifier: Apache-2.0
// Shared by the files that read and write ONNX Runtime's own model format, .ort: FlatBuffers with
// the identifier ORTM. Slots of each table are listed in docs/file-formats.md and proto/ort.fbs.
#ifndef OT_ONNX_ORT_H
#define OT_ONNX_ORT_H

#include "onnx/protobuf/read.h"
#include "onnx/protobuf/write.h"

#define OT_ORT_IDENTIFIER "ORTM"
enum {
    OT_ORT_VERSION_OLDEST = 1,
    OT_ORT_VERSION = 6, // written, and the newest that is read
    OT_ORT_OPSET_MAX = 21,
};

// Slots of the tables.
enum { ORT_SESSION_VERSION, ORT_SESSION_MODEL, ORT_SESSION_STATE, ORT_SESSION_RESOLVER };
enum {
    ORT_MODEL_IR_VERSION,
    ORT_MODEL_OPSETS,
    ORT_MODEL_PRODUCER_NAME,
    ORT_MODEL_PRODUCER_VERSION,
    ORT_MODEL_DOMAIN,
    ORT_MODEL_VERSION,
    ORT_MODEL_DOC,
    ORT_MODEL_GRAPH,
    ORT_MODEL_GRAPH_DOC,
    ORT_MODEL_METADATA,
    ORT_MODEL_SLOTS,
};
enum {
    ORT_GRAPH_INITIALIZERS,
    ORT_GRAPH_VALUES,
    ORT_GRAPH_NODES,
    ORT_GRAPH_MAX_NODE_INDEX,
    ORT_GRAPH_EDGES,
    ORT_GRAPH_INPUTS,
    ORT_GRAPH_OUTPUTS,
    ORT_GRAPH_SPARSE_INITIALIZERS,
    ORT_GRAPH_SLOTS,
};
enum {
    ORT_NODE_NAME,
    ORT_NODE_DOC,
    ORT_NODE_DOMAIN,
    ORT_NODE_SINCE_VERSION,
    ORT_NODE_INDEX,
    ORT_NODE_OP_TYPE,
    ORT_NODE_TYPE,
    ORT_NODE_PROVIDER,
    ORT_NODE_INPUTS,
    ORT_NODE_OUTPUTS,
    ORT_NODE_ATTRIBUTES,
    ORT_NODE_INPUT_COUNTS,
    ORT_NODE_IMPLICIT_INPUTS,
    ORT_NODE_SLOTS,
};
enum {
    ORT_ATTR_NAME,
    ORT_ATTR_DOC,
    ORT_ATTR_TYPE,
    ORT_ATTR_F,
    ORT_ATTR_I,
    ORT_ATTR_S,
    ORT_ATTR_T,
    ORT_ATTR_G,
    ORT_ATTR_FLOATS,
    ORT_ATTR_INTS,
    ORT_ATTR_STRINGS,
    ORT_ATTR_TENSORS,
    ORT_ATTR_SLOTS,
};
enum {
    ORT_TENSOR_NAME,
    ORT_TENSOR_DOC,
    ORT_TENSOR_DIMS,
    ORT_TENSOR_TYPE,
    ORT_TENSOR_RAW,
    ORT_TENSOR_STRINGS,
    ORT_TENSOR_SLOTS,
};
enum { ORT_SPARSE_VALUES, ORT_SPARSE_INDICES, ORT_SPARSE_DIMS };
enum { ORT_VALUE_NAME, ORT_VALUE_DOC, ORT_VALUE_TYPE, ORT_VALUE_SLOTS };
enum { ORT_TYPE_DENOTATION, ORT_TYPE_TAG, ORT_TYPE_TABLE, ORT_TYPE_SLOTS };
enum { ORT_TAG_NONE, ORT_TAG_TENSOR, ORT_TAG_SEQUENCE, ORT_TAG_MAP };
enum { ORT_DIM_UNKNOWN, ORT_DIM_NUMBER, ORT_DIM_SYMBOL };

// ---- reading ----

typedef struct ot__ort_reader {
    ot__reader reader; // of the model, with its limits
    ot__fb fb;
    int64_t n_nodes, n_values, n_attrs;
} ot__ort_reader;

// read.c
ot_status ot__ort_check_depth(ot__ort_reader *r, int depth);
ot_status ot__ort_read_graph(ot__ort_reader *r, const ot__fb_table *table, ot_graph *graph,
                             int depth);
// A text that lasts; "" when absent.
ot_status ot__ort_read_text(ot__ort_reader *r, const ot__fb_table *table, int slot,
                            const char **out);

// read_node.c
ot_status ot__ort_read_node(ot__ort_reader *r, const ot__fb_table *table, ot_graph *graph,
                            int depth);

int ot__ort_slot_of(ot_attr_kind kind); // of the value; -1: the format has none

// read_value.c
ot_status ot__ort_read_type(ot__ort_reader *r, const ot__fb_table *value_info, ot_value *value,
                            int depth);
ot_status ot__ort_read_tensor(ot__ort_reader *r, const ot__fb_table *table, ot__read_tensor *out);
ot_status ot__ort_read_sparse(ot__ort_reader *r, const ot__fb_table *table, ot__read_tensor *out);

// ---- writing ----

typedef struct ot__ort_operator {
    const char *domain, *name;
    const char *versions;  // "1,6,13": of the definitions this row is about
    const char *arguments; // "T=i0 i1 o0;Tind=i2"
} ot__ort_operator;

typedef struct ot__ort_call { // an operator that the model calls
    const ot__ort_operator *op;
    int since;
} ot__ort_call;

typedef struct ot__ort_writer {
    ot_model *model; // a copy that the writer may change
    ot__buf *buf;
    ot_status status;    // sticky: after a failure nothing is written
    ot__ort_call *calls; // each once
    int n_calls, calls_capacity;
} ot__ort_writer;

// prepare.c: functions put in, types inferred where they are not known, Constant nodes made
// initializers, nodes in order.
ot_status ot__ort_prepare(ot_model *model);

// write.c: a list of offsets to what `element` writes, which returns its position.
typedef size_t (*ot__ort_element)(ot__ort_writer *w, const void *context, size_t i);
size_t ot__ort_write_list(ot__ort_writer *w, size_t n, ot__ort_element element,
                          const void *context);
// The same, to which `field` leads.
void ot__ort_put_list(ot__ort_writer *w, const ot__fb_field *field, int n, ot__ort_element element,
                      const void *context);

// write_graph.c
size_t ot__ort_write_graph(ot__ort_writer *w, ot_graph *graph);

// write_value.c
size_t ot__ort_write_attr(ot__ort_writer *w, const void *attrs, size_t i); // an ot__ort_element
size_t ot__ort_write_tensor(ot__ort_writer *w, const ot_tensor *tensor, const char *name,
                            const char *doc);
size_t ot__ort_write_value(ot__ort_writer *w, const ot_value *value); // NULL: the omitted one

// operators.c
// The row of the operator that a node calls, at the opset that the model imports.
ot_status ot__ort_find_call(const ot_model *model, const ot_node *node, ot__ort_call *out);
int ot__ort_formal_inputs(const ot__ort_operator *op);
size_t ot__ort_write_resolver(ot__ort_writer *w); // the KernelTypeStrResolver of all calls

#endif
