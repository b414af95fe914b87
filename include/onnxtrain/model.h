// SPDX-License-Identifier: Apache-2.0
// ONNX models: load, inspect, save.
#ifndef ONNXTRAIN_MODEL_H
#define ONNXTRAIN_MODEL_H

#include "onnxtrain/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A model in memory: its graph, functions and metadata. Everything in it dies with it. */
typedef struct ot_model ot_model;

/** Limits on what a file may ask for; 0 means the default stated. */
typedef struct ot_model_options {
    size_t size;       ///< sizeof(ot_model_options), set by the initialiser
    int max_depth;     ///< nesting of messages and subgraphs (64)
    int64_t max_nodes; ///< nodes, values and attributes, each (4 million)
    size_t max_memory; ///< bytes that reading may allocate, external data not counted (64 times the
                       ///< file + 64 MiB within ot_set_memory_max(), and always 4 times + 64 MiB),
                       ///< and the most that is read of a pipe or device (2 GiB)
    size_t external_from; ///< saving: initializers of this many bytes or more go to
                          ///< `<path>.<id>.data`, where the id is made from them; SIZE_MAX: never;
                          ///< 0: those of 1 KiB or more, once the model exceeds 1.8 GiB
    const char
        *directory; ///< where ot_model_load_buffer() looks for external data; NULL: it is refused
} ot_model_options;
#define OT_MODEL_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(ot_model_options), 0, 0, 0, 0, NULL                                                 \
    }

/**
 * Read a model. Its file and those of its external data are mapped into memory: while the model is
 * in use, no process may write into them or shorten them. Replacing them by new files is safe.
 *
 * The file is ONNX protobuf, ONNX Runtime's .ort format (known by its identifier, whatever the
 * path), or ONNX's textual syntax when the path ends in ".onnxtxt" or the bytes are text.
 *
 * @param path    "-" is standard input; external data is looked for beside the file and may not
 * leave its directory
 * @param options NULL for defaults
 * @param out     the caller destroys it; NULL on failure
 * @return OT_ERR_FORMAT, naming file, node or tensor, for anything malformed; OT_ERR_IO;
 * OT_ERR_NO_MEMORY above a limit
 */
OT_API ot_status ot_model_load(const char *path, const ot_model_options *options, ot_model **out);

/** As ot_model_load() from memory, which is copied. External data is looked for in
 * `options->directory`. */
OT_API ot_status ot_model_load_buffer(const void *bytes, size_t n_bytes,
                                      const ot_model_options *options, ot_model **out);

/** Write protobuf, the textual syntax when the path ends in ".onnxtxt", or ONNX Runtime's own
 * format when it ends in ".ort". The old file, and its data file, stay until the new one is
 * complete; then data files of earlier saves to this path go.
 *
 * The .ort format needs the type of every value: those not known are inferred as by
 * ot_model_infer(), which leaves `model` as it is here. OT_ERR_UNSUPPORTED names what the format,
 * or ONNX Runtime 1.19.2, cannot express. */
OT_API ot_status ot_model_save(const ot_model *model, const char *path,
                               const ot_model_options *options);

/** The model as protobuf, all elements inside, in a new tensor u8 [n] that the caller destroys.
 * OT_ERR_INVALID above 2 GiB, which protobuf cannot hold. */
OT_API ot_status ot_model_to_bytes(const ot_model *model, ot_tensor **out);

/**
 * Bring the model into the form that training starts from: functions inlined, opsets below 13
 * raised, nodes sorted, and types and shapes of all values inferred.
 *
 * @return OT_ERR_UNSUPPORTED naming the operators that are not known; OT_ERR_INVALID naming a node
 * whose inputs do not fit. After an error the model may only be destroyed.
 */
OT_API ot_status ot_model_infer(ot_model *model);

/** The model in ONNX's textual syntax; large initializers shortened. The caller releases it with
 * ot_string_free(). */
OT_API ot_status ot_model_to_text(const ot_model *model, char **out);
OT_API void ot_string_free(char *text); ///< NULL is fine

/** NULL is fine. */
OT_API void ot_model_destroy(ot_model *model);

/** Inputs (initializers not counted) and outputs of the graph, in order. Names are owned by the
 * model; NULL out of range. */
OT_API int ot_model_input_count(const ot_model *model);
OT_API const char *ot_model_input_name(const ot_model *model, int index);
OT_API int ot_model_output_count(const ot_model *model);
OT_API const char *ot_model_output_name(const ot_model *model, int index);

/**
 * Type and shape of any value of the graph by name.
 *
 * @param dtype,shape filled in; dim sizes that are not numbers are -1; shape->ndim is -1 when not
 * even the rank is known
 * @return OT_ERR_NOT_FOUND when the graph has no such value
 */
OT_API ot_status ot_model_value_info(const ot_model *model, const char *name, ot_dtype *dtype,
                                     ot_shape *shape);

/** 1 when the value is a sequence of tensors, whose type ot_model_value_info() gives; 0 otherwise.
 */
OT_API int ot_model_value_is_sequence(const ot_model *model, const char *name);

/** Name of a symbolic dim ("N"); NULL for a number, a dim without name, and out of range.
 * Owned by the model. */
OT_API const char *ot_model_value_dim(const ot_model *model, const char *name, int axis);

/** Initializers of the graph, in order: what training may change. NULL out of range. */
OT_API int ot_model_initializer_count(const ot_model *model);
OT_API const char *ot_model_initializer_name(const ot_model *model, int index);
/** A copy of its elements, which the caller destroys. OT_ERR_NOT_FOUND; OT_ERR_UNSUPPORTED for
 * strings. */
OT_API ot_status ot_model_get_initializer(const ot_model *model, const char *name, ot_tensor **out);

/** Nodes of the main graph, in order, and the operator each calls ("Gemm", "com.microsoft.Gelu");
 * NULL out of range. */
OT_API int ot_model_node_count(const ot_model *model);
OT_API const char *ot_model_node_operator(const ot_model *model, int index);

/** The model's metadata: text by key. NULL when there is none; owned by the model. */
OT_API const char *ot_model_metadata(const ot_model *model, const char *key);
/** Keys of the metadata, in order; NULL out of range. */
OT_API int ot_model_metadata_count(const ot_model *model);
OT_API const char *ot_model_metadata_key(const ot_model *model, int index);
/** Set or replace; both strings are copied. */
OT_API ot_status ot_model_set_metadata(ot_model *model, const char *key, const char *value);

/** What a model file says about itself. */
typedef enum ot_model_field {
    OT_MODEL_PRODUCER_NAME,
    OT_MODEL_PRODUCER_VERSION,
    OT_MODEL_DOMAIN,
    OT_MODEL_DESCRIPTION,
    OT_MODEL_GRAPH_NAME,
    OT_MODEL_GRAPH_DESCRIPTION
} ot_model_field;

/** The text of a field, "" when absent; owned by the model. */
OT_API const char *ot_model_text(const ot_model *model, ot_model_field field);
OT_API int64_t ot_model_version(const ot_model *model); ///< of the model, as its maker counts

#ifdef __cplusplus
}
#endif
#endif
