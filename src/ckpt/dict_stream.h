// SPDX-License-Identifier: Apache-2.0
// A dict through a pipe, from a process whose bytes are not to be trusted. Private to `ckpt`.
#ifndef OT_CKPT_DICT_STREAM_H
#define OT_CKPT_DICT_STREAM_H

#include "ckpt/ckpt.h"

enum {
    OT_STREAM_DEPTH_MAX = 64,      // of dicts within dicts
    OT_STREAM_TEXT_MAX = 1 << 26,  // bytes of a name or a string
    OT_STREAM_VALUES_MAX = 1 << 20 // in all dicts together
};

typedef ot_status (*ot__stream_writer)(void *context, const void *bytes, size_t n_bytes);
// All n_bytes of them, or an error.
typedef ot_status (*ot__stream_reader)(void *context, void *bytes, size_t n_bytes);

// A dict, or what has become of it: `st` and the present message.
ot_status ot__dict_stream_write(const ot_dict *dict, ot_status st, ot__stream_writer write,
                                void *context);
// What was written: the status with its message, or OT_OK with the dict.
ot_status ot__dict_stream_read(ot__stream_reader read, void *context, ot_dict **out);

#endif
