// SPDX-License-Identifier: Apache-2.0
// Interface of `onnx`: ONNX bytes and ONNX's textual syntax to and from a model; external data;
// limits on untrusted bytes.
#ifndef OT_ONNX_ONNX_H
#define OT_ONNX_ONNX_H

#include "graph/graph.h"

// guard.c: walk the wire format before anything parses it. `where` names the source in messages.
ot_status ot__onnx_guard(const void *bytes, size_t n_bytes, const ot_model_options *options,
                         const char *where);

// read.c: bytes -> model. `folder` NULL: external data is refused. Bytes must stay alive as long as
// the model: tensors may point into them (the caller gives the map to the model).
ot_status ot__onnx_read(const void *bytes, size_t n_bytes, const ot_model_options *options,
                        const char *where, const char *folder, ot_model **out);
// write.c: deterministic: the same model gives the same bytes
ot_status ot__onnx_write(const ot_model *model, ot__buf *out);

// ort_read.c, ort_write.c: ONNX Runtime's own format. The bytes must stay alive as for
// ot__onnx_read. Types that are not known are inferred for writing.
bool ot__is_ort(const void *bytes, size_t n_bytes);
ot_status ot__ort_read(const void *bytes, size_t n_bytes, const ot_model_options *options,
                       const char *where, ot_model **out);
ot_status ot__ort_write(const ot_model *model, ot__buf *out);

// text/read.c, text/write.c: as onnx.parser and onnx.printer
ot_status ot__text_read(const char *text, size_t length, const ot_model_options *options,
                        const char *where, ot_model **out);
// As above; `folder` is where external data is looked for.
ot_status ot__text_read_from(const char *folder, const char *text, size_t length,
                             const ot_model_options *options, const char *where, ot_model **out);
typedef struct ot__text_options {
    int max_elements; // constants with more are shortened; 0: all are written, so that the text
                      // reads back the same
} ot__text_options;
ot_status ot__text_write(const ot_model *model, const ot__text_options *options, ot__buf *out);

// external_open.c: the regular file at a relative path below `folder`; links are followed within
// the folder only. OT_ERR_FORMAT when the path leaves it.
ot_status ot__external_open(ot__file_map *map, const char *folder, const char *path);

// external.c: elements stored beside the model; refuses paths that leave `folder`, ranges past the
// end and files whose checksum is another. Callers put the tensor's name before the message.
typedef struct ot__stored {
    const char *location;
    const char *checksum;   // NULL: not stated
    int64_t offset, length; // length -1: not stated
} ot__stored;
typedef struct ot__stored_range {
    const uint8_t *first;
    size_t n_bytes;
    const char *location;
    int64_t offset;
} ot__stored_range;
// What has been read for one model.
typedef struct ot__external {
    ot__arena *arena;
    ot__stored_range *ranges;
    struct {
        const ot__file_map *map;
        char text[OT_SHA1_LENGTH + 1];
    } * sums;
    int n_ranges, ranges_capacity, n_sums, sums_capacity;
} ot__external;
ot_status ot__external_read(ot_model *model, ot__external *all, const ot__stored *stored,
                            size_t expected, const void **data);
// When all is read: OT_ERR_FORMAT where ranges overlap without being one.
ot_status ot__external_finish(ot__external *all);

#endif
