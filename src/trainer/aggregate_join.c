// SPDX-License-Identifier: Apache-2.0
// One tensor of the parts that several processes have of it.
#include <string.h>

#include "trainer/aggregate.h"

// What the files say of how a weight is divided.
typedef struct division {
    const char *path; // of the first file that says it; NULL: none does
    int64_t split;
    ot_shape whole, column; // of the weight, and of what each column has of it
    int axis;               // along which columns are joined
} division;

// ---- what is what, in messages ----

static char *shard_value_text(const ot__shard_value *value, char *text, size_t size)
{
    if (value->state != NULL)
        (void)snprintf(text, size, "%s of '%s'", value->state, value->name);
    else
        (void)snprintf(text, size, "weight '%s'", value->name);
    return text;
}
#define VALUE_TEXT(value) shard_value_text((value), (char[512]){""}, 512)

// ---- the division of a weight ----

// Whole numbers are a list, an array or one number, by who has written them.
static ot_status read_ints(const ot_dict *of, const char *weight, const char *key, ot_shape *out)
{
    const ot_tensor *tensor = NULL;
    const int64_t *values = NULL;
    ot_dict_kind kind;
    int64_t one;
    int n = 0;

    OT_TRY(ot_dict_kind_of(of, key, &kind));
    if (kind == OT_DICT_INT) {
        OT_TRY(ot_dict_get_int(of, key, &one));
        values = &one;
        n = 1;
    } else if (kind == OT_DICT_INTS) {
        OT_TRY(ot_dict_get_ints(of, key, &values, &n));
    } else {
        OT_TRY(ot_dict_get_tensor(of, key, &tensor));
        if (tensor->dtype == OT_I64 && tensor->shape.ndim == 1 &&
            tensor->shape.dim[0] <= OT_MAX_NDIM) {
            values = tensor->data;
            n = (int)tensor->shape.dim[0];
        }
    }
    if (values == NULL || n > OT_MAX_NDIM)
        return ot__error(OT_ERR_FORMAT,
                         "%s of '%s' in partition_info is not a list of at most %d whole numbers",
                         key, weight, (int)OT_MAX_NDIM);
    out->ndim = n;
    memcpy(out->dim, values, (size_t)n * sizeof *values);
    return OT_OK;
}

static ot_status read_split(const ot_dict *of, const char *weight, int64_t *out)
{
    ot_shape split;

    *out = OT_SPLIT_NONE;
    if (!ot__state_has(of, OT_KEY_ROW_PARTITION))
        return OT_OK;
    OT_TRY(read_ints(of, weight, OT_KEY_ROW_PARTITION, &split));
    if (split.ndim != 1 || split.dim[0] < OT_SPLIT_NONE || split.dim[0] > OT_SPLIT_ROWS)
        return ot__error(OT_ERR_FORMAT,
                         "%s of '%s' in partition_info is %s, expected [-1] (not split), [0] (by "
                         "columns) or [1] (by rows)",
                         OT_KEY_ROW_PARTITION, weight, OT_SHAPE_TEXT(&split));
    *out = split.dim[0];
    return OT_OK;
}

static ot_status add_division(const ot__shard *shard, const char *weight, division *out)
{
    const ot_dict *of = ot__state_dict(shard->partition, weight);
    ot_shape whole;
    int64_t split = OT_SPLIT_NONE, count;
    ot_status st;

    if (of == NULL)
        return OT_OK;
    st = read_ints(of, weight, OT_KEY_ORIGINAL_DIM, &whole);
    OT_THEN(st, read_split(of, weight, &split));
    OT_TRY(ot__error_prefix(st, "%s", shard->path));
    if (!ot__shape_count(&whole, &count))
        return ot__error(OT_ERR_FORMAT, "%s: original_dim of '%s' is %s", shard->path, weight,
                         OT_SHAPE_TEXT(&whole));
    if (out->path == NULL) {
        *out = (division){.path = shard->path, .split = split, .whole = whole, .column = whole};
        return OT_OK;
    }
    if (ot__shape_equal(&whole, &out->whole) && split == out->split)
        return OT_OK;
    return ot__error(OT_ERR_INVALID,
                     "%s: '%s' is a part of %s, split %d, but of %s, split %d, in %s", shard->path,
                     weight, OT_SHAPE_TEXT(&whole), (int)split, OT_SHAPE_TEXT(&out->whole),
                     (int)out->split, out->path);
}

static ot_status read_division(const ot__shards *all, const char *weight, division *out)
{
    *out = (division){.split = OT_SPLIT_NONE};
    for (int r = 0; r < all->n; r++)
        OT_TRY(add_division(&all->of_rank[r], weight, out));
    if (all->n_columns == 1)
        out->split = OT_SPLIT_NONE;
    if (out->split == OT_SPLIT_NONE)
        return OT_OK;
    out->axis = out->split == OT_SPLIT_COLUMNS ? OT_MAX(out->whole.ndim - 1, 0) : 0;
    if (out->whole.ndim == 0 || out->whole.dim[out->axis] % all->n_columns != 0)
        return ot__error(OT_ERR_INVALID, "%s: '%s' of shape %s cannot be split %d ways by %s",
                         out->path, weight, OT_SHAPE_TEXT(&out->whole), all->n_columns,
                         out->split == OT_SPLIT_COLUMNS ? "columns" : "rows");
    out->column.dim[out->axis] /= all->n_columns;
    return OT_OK;
}

// ---- what one process has ----

static bool is_average(const ot__shard_value *value)
{
    return value->state != NULL && strcmp(value->state, OT_KEY_AVERAGES) == 0;
}

ot_status ot__shards_find(const ot__shard *shard, const ot__shard_value *value,
                          const ot_tensor **out)
{
    const ot_dict *in = shard->weights;
    const char *name = value->name;

    *out = NULL;
    if (is_average(value)) {
        in = shard->averages;
    } else if (value->state != NULL) {
        in = ot__state_dict(shard->optimizer, value->name);
        name = value->state;
    }
    if (!ot__state_has(in, name))
        return OT_OK;
    OT_TRY(ot__error_prefix(ot_dict_get_tensor(in, name, out), "%s", shard->path));
    if (ot_dtype_size((*out)->dtype) == 0)
        return ot__error(OT_ERR_UNSUPPORTED, "%s: %s is of type %s", shard->path, VALUE_TEXT(value),
                         ot_dtype_name((*out)->dtype));
    return OT_OK;
}

// What is cut as its weight is in mixed precision.
static bool is_moment(const ot__shard_value *value)
{
    for (int k = 0; k < OT_SLOT_MOMENTS; k++)
        if (value->state != NULL && strcmp(value->state, ot__moment_keys[k]) == 0)
            return true;
    return is_average(value);
}

// Whether this process has a piece, without axes, of what its column has.
static bool is_cut(const ot__shards *all, const ot__shard *shard, const ot__shard_value *value)
{
    return all->is_zero && ot__state_has(shard->partition, value->name) &&
           (value->state == NULL ? all->is_mixed : is_moment(value));
}

// ---- comparing copies ----

static ot_status check_copy(const ot__shard_value *value, const ot_tensor *first,
                            const char *first_path, const ot_tensor *other, const char *path)
{
    if (first->dtype != other->dtype || !ot__shape_equal(&first->shape, &other->shape))
        return ot__error(OT_ERR_INVALID, "%s: %s is %s%s, but %s%s in %s", path, VALUE_TEXT(value),
                         ot_dtype_name(other->dtype), OT_SHAPE_TEXT(&other->shape),
                         ot_dtype_name(first->dtype), OT_SHAPE_TEXT(&first->shape), first_path);
    for (size_t i = 0, size = ot_dtype_size(first->dtype); i < first->n_bytes; i += size)
        if (memcmp((const char *)first->data + i, (const char *)other->data + i, size) != 0)
            return ot__error(OT_ERR_INVALID,
                             "%s: %s differs from that in %s: element %zu is %.9g, expected %.9g",
                             path, VALUE_TEXT(value), first_path, i / size,
                             ot__tensor_get_f64(other, (int64_t)(i / size)),
                             ot__tensor_get_f64(first, (int64_t)(i / size)));
    return OT_OK;
}

// ---- the column of one value ----

typedef struct column {
    const ot__shards *all;
    const ot__shard_value *value;
    const ot_shape *shape; // of the column; NULL: that of the files
    int number;
    const ot_tensor **parts; // by replica; NULL where a process has none
    int n_cut, first;        // pieces among them; the first one there is, -1: there is none
} column;

static const ot__shard *shard_of(const column *c, int replica)
{
    return &c->all->of_rank[c->number + replica * c->all->n_columns];
}

static ot_status find_parts(column *c)
{
    c->first = -1;
    for (int r = 0; r < c->all->n_replicas; r++) {
        OT_TRY(ot__shards_find(shard_of(c, r), c->value, &c->parts[r]));
        if (c->parts[r] == NULL)
            continue;
        if (c->first < 0)
            c->first = r;
        if (is_cut(c->all, shard_of(c, r), c->value))
            c->n_cut++;
        else if (c->n_cut > 0)
            return ot__error(OT_ERR_INVALID, "%s: %s is whole, but a part in %s",
                             shard_of(c, r)->path, VALUE_TEXT(c->value),
                             shard_of(c, c->first)->path);
        if (c->n_cut > 0 && !is_cut(c->all, shard_of(c, c->first), c->value))
            return ot__error(OT_ERR_INVALID, "%s: %s is a part, but whole in %s",
                             shard_of(c, r)->path, VALUE_TEXT(c->value),
                             shard_of(c, c->first)->path);
    }
    return OT_OK;
}

// With ZeRO a process has the state of what it updates alone, and in mixed precision the weights,
// too.
static bool may_lack(const column *c)
{
    return c->all->is_zero && (c->value->state != NULL || c->all->is_mixed);
}

static ot_status check_copies(const column *c)
{
    const ot_tensor *first = c->parts[c->first];
    const char *path = shard_of(c, c->first)->path;

    if (c->shape != NULL && !ot__shape_equal(&first->shape, c->shape))
        return ot__error(OT_ERR_INVALID, "%s: %s is %s, expected %s by original_dim", path,
                         VALUE_TEXT(c->value), OT_SHAPE_TEXT(&first->shape),
                         OT_SHAPE_TEXT(c->shape));
    for (int r = 0; r < c->all->n_replicas; r++) {
        if (c->parts[r] != NULL)
            OT_TRY(check_copy(c->value, first, path, c->parts[r], shard_of(c, r)->path));
        else if (!may_lack(c))
            return ot__error(OT_ERR_INVALID, "%s: has no %s, which %s has", shard_of(c, r)->path,
                             VALUE_TEXT(c->value), path);
    }
    return OT_OK;
}

// Pieces lie one after the other, without a rank between them that has none.
static ot_status check_pieces(const column *c)
{
    const char *path = shard_of(c, c->first)->path;
    int64_t expected, n = 0;

    (void)ot__shape_count(c->shape, &expected); // it has been counted
    for (int r = c->first; r < c->first + c->n_cut; r++) {
        if (c->parts[r] == NULL)
            return ot__error(OT_ERR_INVALID, "%s: has no part of %s between those of other ranks",
                             shard_of(c, r)->path, VALUE_TEXT(c->value));
        if (c->parts[r]->dtype != c->parts[c->first]->dtype)
            return ot__error(OT_ERR_INVALID, "%s: %s is %s, but %s in %s", shard_of(c, r)->path,
                             VALUE_TEXT(c->value), ot_dtype_name(c->parts[r]->dtype),
                             ot_dtype_name(c->parts[c->first]->dtype), path);
        n += ot_tensor_count(c->parts[r]);
    }
    if (n == expected)
        return OT_OK;
    return ot__error(OT_ERR_INVALID,
                     "%s and the files after it: the parts of %s have %" PRId64
                     " elements, expected %" PRId64 " by original_dim %s",
                     path, VALUE_TEXT(c->value), n, expected, OT_SHAPE_TEXT(c->shape));
}

static ot_status join_pieces(const column *c, ot_tensor **out)
{
    char *to;

    OT_TRY(check_pieces(c));
    OT_TRY(ot_tensor_create(c->parts[c->first]->dtype, c->shape, out));
    to = (*out)->data;
    for (int r = c->first; r < c->first + c->n_cut; r++) {
        if (c->parts[r]->n_bytes > 0)
            memcpy(to, c->parts[r]->data, c->parts[r]->n_bytes);
        to += c->parts[r]->n_bytes;
    }
    return OT_OK;
}

static ot_status make_column(column *c, ot_tensor **out)
{
    OT_TRY(find_parts(c));
    if (c->first < 0)
        return OT_OK;
    if (c->n_cut > 0)
        return join_pieces(c, out);
    OT_TRY(check_copies(c));
    return ot_tensor_clone(c->parts[c->first], out);
}

// ---- all columns ----

// Those of a tensor that is not split are copies.
static ot_status one_of_columns(const ot__shards *all, const ot__shard_value *value,
                                ot_tensor **columns, ot_tensor **out)
{
    for (int k = 1; k < all->n_columns; k++)
        OT_TRY(
            check_copy(value, columns[0], all->of_rank[0].path, columns[k], all->of_rank[k].path));
    *out = columns[0];
    columns[0] = NULL;
    return OT_OK;
}

static ot_status join_columns(const ot__shards *all, const ot__shard_value *value,
                              const division *how, ot_tensor *const *columns, ot_tensor **out)
{
    const ot_dtype dtype = columns[0]->dtype;
    size_t row = ot_dtype_size(dtype);
    int64_t n_rows = 1;

    for (int k = 1; k < all->n_columns; k++)
        if (columns[k]->dtype != dtype)
            return ot__error(OT_ERR_INVALID, "%s: %s is %s, but %s in %s", all->of_rank[k].path,
                             VALUE_TEXT(value), ot_dtype_name(columns[k]->dtype),
                             ot_dtype_name(dtype), all->of_rank[0].path);
    OT_TRY(ot_tensor_create(dtype, &how->whole, out));
    for (int axis = 0; axis < how->whole.ndim; axis++)
        if (axis < how->axis)
            n_rows *= how->whole.dim[axis];
        else
            row *= (size_t)how->column.dim[axis];
    for (int64_t i = 0; row > 0 && i < n_rows; i++)
        for (int k = 0; k < all->n_columns; k++)
            memcpy((char *)(*out)->data + ((size_t)i * (size_t)all->n_columns + (size_t)k) * row,
                   (const char *)columns[k]->data + (size_t)i * row, row);
    return OT_OK;
}

// Whether a value has the axes of its weight, and is divided with it.
static bool is_divided(const ot__shard_value *value)
{
    return value->state == NULL || is_moment(value);
}

static ot_status make_columns(const ot__shards *all, const ot__shard_value *value,
                              const division *how, const ot_tensor **parts, ot_tensor **columns)
{
    int n_found = 0, found = 0;

    for (int k = 0; k < all->n_columns; k++) {
        column c = {.all = all, .value = value, .number = k, .parts = parts};

        if (how->path != NULL && is_divided(value))
            c.shape = &how->column;
        OT_TRY(make_column(&c, &columns[k]));
        if (columns[k] != NULL) {
            n_found++;
            found = k;
        }
    }
    for (int k = 0; n_found > 0 && k < all->n_columns; k++)
        if (columns[k] == NULL)
            return ot__error(OT_ERR_INVALID, "%s: has no %s, which %s has", all->of_rank[k].path,
                             VALUE_TEXT(value), all->of_rank[found].path);
    return OT_OK;
}

ot_status ot__shards_join(const ot__shards *all, const ot__shard_value *value, ot_tensor **out)
{
    const ot_tensor **parts = ot__alloc_zero((size_t)all->n_replicas, sizeof(const ot_tensor *));
    ot_tensor **columns = ot__alloc_zero((size_t)all->n_columns, sizeof(ot_tensor *));
    division how;
    ot_status st = ot__made(parts != NULL && columns != NULL);

    *out = NULL;
    OT_THEN(st, read_division(all, value->name, &how));
    OT_THEN(st, make_columns(all, value, &how, parts, columns));
    if (st == OT_OK && columns[0] != NULL)
        st = how.split != OT_SPLIT_NONE && is_divided(value)
                 ? join_columns(all, value, &how, columns, out)
                 : one_of_columns(all, value, columns, out);
    for (int k = 0; columns != NULL && k < all->n_columns; k++)
        ot_tensor_destroy(columns[k]);
    ot__free(columns);
    ot__free(parts);
    return st;
}
