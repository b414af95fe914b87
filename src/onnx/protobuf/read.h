// SPDX-License-Identifier: Apache-2.0
// Shared by the files that turn protobuf messages into a model. All bytes have passed the guard.
#ifndef OT_ONNX_READ_H
#define OT_ONNX_READ_H

#include "onnx.pb-c.h"
#include "onnx/attr_kinds.h"
#include "onnx/limits.h"
#include "onnx/protobuf/wire.h"

typedef struct ot__reader {
    ot_model *model;
    ot__limits limits;
    bool in_function;    // attributes may refer to the function's
    bool in_initializer; // its elements stay where they are, aligned or not
    ot__external external;
    ProtobufCAllocator allocator;
    size_t n_unpacked; // bytes that protobuf-c holds
    bool out_of_memory;
} ot__reader;

// One message taken apart: `message` is what protobuf-c made of the kept fields.
typedef struct ot__unpacked {
    ot__reader *reader;
    ProtobufCMessage *message;
    ot__parts parts;
} ot__unpacked;

// read.c
ot_status ot__unpack(ot__reader *reader, const ProtobufCMessageDescriptor *type, ot__bytes bytes,
                     uint64_t kept, uint64_t apart, ot__unpacked *out);
void ot__unpacked_deinit(ot__unpacked *unpacked);
// The bytes of `from` as part of the model, unless `status` is an error, which is returned; `from`
// is freed. No bytes are {0}.
ot_status ot__keep_bytes(ot__reader *reader, ot_status status, ot__buf *from, ot__bytes *out);
// What protobuf-c did not know of a message that it took apart itself.
ot_status ot__read_unknown(ot__reader *reader, const ProtobufCMessage *message, ot__bytes *out);
const char *ot__read_text(ot__reader *reader,
                          const char *text); // a copy that lasts; "" for NULL; NULL: no memory
ot_status ot__reader_init(ot__reader *reader, const char *folder, ot__limits limits);
ot_status ot__reader_finish(ot__reader *reader, ot_status status, const char *where,
                            ot_model **out);
// A zero stands behind the bytes, so that they may be used as text too.
ot_status ot__read_string(ot__reader *reader, const void *bytes, size_t n_bytes, ot__string *out);
void ot__drop_initialized_inputs(ot_graph *graph);
ot_status ot__read_graph(ot__reader *reader, ot__bytes bytes, ot_graph *graph);
ot_status ot__read_value_info(ot__reader *reader, ot_graph *graph, ot__bytes bytes);
// A new input of that name.
ot_status ot__define_input(ot_graph *graph, const char *name, ot_value **out);

// read_node.c
ot_status ot__read_node(ot__reader *reader, ot_graph *graph, ot__bytes bytes);
ot_status ot__read_attr(ot__reader *reader, ot_graph *graph, ot__bytes bytes, ot_attr *attr);

// The value that a node of `graph` reads or makes under this name. What nobody has defined yet is
// left for ot__graph_verify to name; making what exists already is an error.
ot_status ot__find_node_input(ot_graph *graph, const char *name, ot_value **out);
ot_status ot__find_node_output(ot_graph *graph, const char *name, ot_value **out);
typedef ot_status (*ot__finding)(ot_graph *graph, const char *name, ot_value **out);
ot_status ot__check_node_outputs(const ot_node *node); // none is listed twice

// read_metadata.c
// The metadata_props in field `number` of a message. Entries that are no text are left out.
ot_status ot__read_metadata(ot__reader *reader, ot__bytes message, uint32_t number,
                            ot__metadata *out);
ot_status ot__add_metadata(ot__reader *reader, const ot__metadata *metadata, ot_value *value);

// read_function.c
ot_status ot__read_function(ot__reader *reader, ot__bytes bytes, ot__function **out);
ot_status ot__add_function_outputs(const ot__function *function); // to its body
// Of a domain that is in the list already, the version changes.
ot_status ot__add_opset(ot_model *model, ot__opset **list, int *n, int *capacity, ot__opset opset);
ot_status ot__read_opsets(ot__reader *reader, Onnx__OperatorSetIdProto *const *opsets, size_t n,
                          ot__opset **out, int *n_out);

// read_type.c
// Set the value's kind, type and shape from a TypeProto's bytes.
ot_status ot__read_type(ot__reader *reader, ot__bytes bytes, ot_value *value);
ot_status ot__read_dtype(int64_t number, ot_dtype *dtype);

// read_tensor.c
typedef struct ot__read_tensor {
    const char *name, *doc;
    ot_tensor *tensor;
    ot__bytes extra;
    ot__metadata metadata;
} ot__read_tensor;
// Entries of external_data: key, value, key, value, ...
ot_status ot__read_external(ot__reader *reader, const char *const *entries, size_t n_entries,
                            ot_dtype dtype, const ot_shape *shape, ot_tensor **out);
ot_status ot__read_raw(ot__reader *reader, ot_dtype dtype, const ot_shape *shape, ot__bytes raw,
                       ot_tensor **out);
ot_status ot__read_tensor_proto(ot__reader *reader, ot__bytes bytes, ot__read_tensor *out);
// The shape of n sizes, which lie anywhere; callers check that its elements can be counted.
ot_status ot__read_dims(const void *dims, size_t n, ot_shape *shape);
ot_status ot__add_initializer(ot__reader *reader, ot_graph *graph,
                              const ot__read_tensor *read); // read.c

// read_sparse.c: values at linear indices, or at one coordinate per axis, in a new dense constant.
ot_status ot__sparse_to_dense(ot_model *model, const ot_tensor *values, const ot_tensor *indices,
                              const ot_shape *shape, ot_tensor **out);
// A SparseTensorProto's bytes.
ot_status ot__read_sparse_tensor(ot__reader *reader, ot__bytes bytes, ot__read_tensor *out);

// read_elements.c: the typed fields of a TensorProto. Below 8 bits several elements share a stored
// number.
ot_status ot__stored_count(ot_dtype dtype, const ot_shape *shape, int64_t *count);
bool ot__is_float_storage(ot_dtype dtype); // stored numbers are floats; else strings or integers
typedef struct ot__element_sink {
    ot_tensor *tensor;
    size_t offset; // bytes written
    int64_t index; // numbers taken
} ot__element_sink;
ot_status ot__take_integer(ot__element_sink *to, uint64_t value);
ot_status ot__take_float(ot__element_sink *to, double value);
ot_status ot__take_string(ot__element_sink *to, ot__string string);
ot_status ot__check_element_count(ot_dtype dtype, const ot_shape *shape, ot__bytes message);
ot_status ot__read_elements(ot_tensor *tensor, ot__bytes message); // of the count checked before

#endif
