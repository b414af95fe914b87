// SPDX-License-Identifier: Apache-2.0
// The stream: a status as u64; of a failure its message; of a dict its values, and a mark for its
// end. A value is a mark, a name and what the mark says; texts are a length as u64 and bytes.
// Numbers are those of this machine.
#include "ckpt/dict_stream.h"

#include <inttypes.h>
#include <string.h>

static const uint64_t end_mark = 0xe7d;

// ---- writing ----

typedef struct stream_out {
    ot__stream_writer write;
    void *context;
} stream_out;

static ot_status put_number(const stream_out *to, uint64_t number)
{
    return to->write(to->context, &number, sizeof number);
}

static ot_status put_text(const stream_out *to, const char *text)
{
    const size_t n = strlen(text);

    OT_TRY(put_number(to, n));
    return to->write(to->context, text, n);
}

static ot_status put_tensor(const stream_out *to, const ot_tensor *tensor)
{
    OT_TRY(put_number(to, (uint64_t)tensor->dtype));
    OT_TRY(put_number(to, (uint64_t)tensor->shape.ndim));
    for (int i = 0; i < tensor->shape.ndim; i++)
        OT_TRY(put_number(to, (uint64_t)tensor->shape.dim[i]));
    return tensor->n_bytes > 0 ? to->write(to->context, tensor->data, tensor->n_bytes) : OT_OK;
}

static ot_status put_dict(const stream_out *to, ot_dict *dict);

static ot_status put_value(const stream_out *to, ot_dict *dict, const char *name, ot_dict_kind kind)
{
    const ot_tensor *tensor;
    const int64_t *ints;
    const char *string;
    ot_dict *inner;
    int64_t integer;
    double real;
    int n;

    switch (kind) {
    case OT_DICT_BOOL:
        OT_TRY(ot_dict_get_bool(dict, name, &n));
        return put_number(to, n != 0);
    case OT_DICT_INT:
        OT_TRY(ot_dict_get_int(dict, name, &integer));
        return put_number(to, (uint64_t)integer);
    case OT_DICT_FLOAT:
        OT_TRY(ot_dict_get_float(dict, name, &real));
        return to->write(to->context, &real, sizeof real);
    case OT_DICT_STRING:
        OT_TRY(ot_dict_get_string(dict, name, &string));
        return put_text(to, string);
    case OT_DICT_INTS:
        OT_TRY(ot_dict_get_ints(dict, name, &ints, &n));
        OT_TRY(put_number(to, (uint64_t)n));
        return n > 0 ? to->write(to->context, ints, (size_t)n * sizeof *ints) : OT_OK;
    case OT_DICT_TENSOR:
        OT_TRY(ot_dict_get_tensor(dict, name, &tensor));
        return put_tensor(to, tensor);
    case OT_DICT_DICT:
        OT_TRY(ot_dict_get_dict(dict, name, &inner));
        return put_dict(to, inner);
    default: // HDF5 files have none
        return ot__error(OT_ERR_INTERNAL, "'%s' is of a kind that is not sent", name);
    }
}

static ot_status put_dict(const stream_out *to, ot_dict *dict)
{
    for (int i = 0; i < ot_dict_count(dict); i++) {
        const char *name = ot_dict_name(dict, i);
        ot_dict_kind kind;

        OT_TRY(ot_dict_kind_of(dict, name, &kind));
        OT_TRY(put_number(to, (uint64_t)kind));
        OT_TRY(put_text(to, name));
        OT_TRY(put_value(to, dict, name, kind));
    }
    return put_number(to, end_mark);
}

ot_status ot__dict_stream_write(const ot_dict *dict, ot_status st, ot__stream_writer write,
                                void *context)
{
    const stream_out to = {write, context};
    char *message = st != OT_OK ? ot__strdup(ot_error_message()) : NULL;
    ot_status result = put_number(&to, (uint64_t)st);

    if (st == OT_OK)
        OT_THEN(result, put_dict(&to, (ot_dict *)(uintptr_t)dict));
    else
        OT_THEN(result, put_text(&to, message != NULL ? message : "out of memory"));
    ot__free(message);
    return result;
}

// ---- reading ----

typedef struct stream_in {
    ot__stream_reader read;
    void *context;
    ot__buf text; // the one that was read last
    int n_values;
} stream_in;

enum { PIECE = 1 << 16 };

static ot_status refuse_stream(const char *what, uint64_t found)
{
    return ot__error(OT_ERR_FORMAT, "the process that read the file sent %s %" PRIu64, what, found);
}

static ot_status take_number(stream_in *from, uint64_t *out)
{
    return from->read(from->context, out, sizeof *out);
}

// Memory grows with what has come, not with what is said to come.
static ot_status take_text(stream_in *from)
{
    char piece[PIECE];
    uint64_t left;

    from->text.length = 0;
    OT_TRY(take_number(from, &left));
    if (left > OT_STREAM_TEXT_MAX)
        return refuse_stream("a text of length", left);
    ot__buf_text(&from->text, "");
    while (left > 0) {
        const size_t n = OT_MIN((size_t)left, sizeof piece);

        OT_TRY(from->read(from->context, piece, n));
        if (memchr(piece, '\0', n) != NULL)
            return refuse_stream("a text with a byte", 0);
        ot__buf_append(&from->text, piece, n);
        left -= n;
    }
    return ot__buf_status(&from->text);
}

static ot_status take_shape(stream_in *from, ot_shape *shape)
{
    uint64_t number;

    OT_TRY(take_number(from, &number));
    if (number > OT_MAX_NDIM)
        return refuse_stream("a tensor whose number of axes is", number);
    shape->ndim = (int)number;
    for (int i = 0; i < shape->ndim; i++) {
        OT_TRY(take_number(from, &number));
        if (number > INT64_MAX)
            return refuse_stream("an axis of size", number);
        shape->dim[i] = (int64_t)number;
    }
    return OT_OK;
}

static ot_status take_sent_tensor(stream_in *from, ot_dict *to, const char *name)
{
    ot_shape shape = {0};
    ot_tensor *tensor;
    uint64_t dtype;
    ot_status st;

    OT_TRY(take_number(from, &dtype));
    if (dtype > OT_BF16 || ot_dtype_size((ot_dtype)dtype) == 0)
        return refuse_stream("elements of type", dtype);
    OT_TRY(take_shape(from, &shape));
    OT_TRY(ot_tensor_create((ot_dtype)dtype, &shape, &tensor));
    st = tensor->n_bytes > 0 ? from->read(from->context, tensor->data, tensor->n_bytes) : OT_OK;
    OT_THEN(st, ot_dict_take_tensor(to, name, tensor));
    if (st != OT_OK)
        ot_tensor_destroy(tensor);
    return st;
}

static ot_status take_sent_ints(stream_in *from, ot_dict *to, const char *name)
{
    int64_t *ints;
    uint64_t n;
    ot_status st;

    OT_TRY(take_number(from, &n));
    if (n > OT_STREAM_TEXT_MAX / sizeof *ints)
        return refuse_stream("a list of length", n);
    ints = ot__alloc_zero((size_t)n + 1, sizeof *ints);
    OT_TRY(ot__made(ints != NULL));
    st = from->read(from->context, ints, (size_t)n * sizeof *ints);
    OT_THEN(st, ot_dict_set_ints(to, name, ints, (int)n));
    ot__free(ints);
    return st;
}

static ot_status take_sent_string(stream_in *from, ot_dict *to, const char *name)
{
    OT_TRY(take_text(from));
    return ot_dict_set_string(to, name, from->text.data);
}

static ot_status take_dict(stream_in *from, ot_dict *to, int depth);

static ot_status take_value(stream_in *from, ot_dict *to, const char *name, uint64_t kind,
                            int depth)
{
    uint64_t number = 0;
    ot_dict *inner;
    double real;

    switch (kind) {
    case OT_DICT_BOOL:
    case OT_DICT_INT:
        OT_TRY(take_number(from, &number));
        return kind == OT_DICT_INT ? ot_dict_set_int(to, name, (int64_t)number)
                                   : ot_dict_set_bool(to, name, number != 0);
    case OT_DICT_FLOAT:
        OT_TRY(from->read(from->context, &real, sizeof real));
        return ot_dict_set_float(to, name, real);
    case OT_DICT_STRING:
        return take_sent_string(from, to, name);
    case OT_DICT_INTS:
        return take_sent_ints(from, to, name);
    case OT_DICT_TENSOR:
        return take_sent_tensor(from, to, name);
    case OT_DICT_DICT:
        if (depth >= OT_STREAM_DEPTH_MAX)
            return refuse_stream("dicts whose depth is above", OT_STREAM_DEPTH_MAX);
        OT_TRY(ot_dict_set_dict(to, name, &inner));
        return take_dict(from, inner, depth + 1);
    default:
        return refuse_stream("a value of kind", kind);
    }
}

static ot_status take_dict(stream_in *from, ot_dict *to, int depth)
{
    for (;;) {
        uint64_t mark;
        char *name;
        ot_status st;

        OT_TRY(take_number(from, &mark));
        if (mark == end_mark)
            return OT_OK;
        if (++from->n_values > OT_STREAM_VALUES_MAX)
            return refuse_stream("values more than", OT_STREAM_VALUES_MAX);
        OT_TRY(take_text(from));
        name = ot__strdup(from->text.data);
        st = ot__made(name != NULL);
        OT_THEN(st, take_value(from, to, name, mark, depth));
        ot__free(name);
        OT_TRY(st);
    }
}

// A failure that was sent; its text is made printable on the way.
static ot_status take_failure(stream_in *from, uint64_t status)
{
    if (status >= OT_N_STATUSES)
        return refuse_stream("a status", status);
    OT_TRY(take_text(from));
    return ot__error((ot_status)status, "%s", from->text.data);
}

ot_status ot__dict_stream_read(ot__stream_reader read, void *context, ot_dict **out)
{
    stream_in from = {.read = read, .context = context};
    ot_dict *dict = NULL;
    uint64_t status = OT_ERR_INTERNAL;
    ot_status st = take_number(&from, &status);

    if (st == OT_OK && status != OT_OK)
        st = take_failure(&from, status);
    OT_THEN(st, ot_dict_create(&dict));
    OT_THEN(st, take_dict(&from, dict, 0));
    ot__buf_deinit(&from.text);
    return OT_HAND_OUT(st, out, dict, ot_dict_destroy);
}
