// SPDX-License-Identifier: Apache-2.0
// RotaryEmbedding: pairs of elements of each head, as far as `rotary_embedding_dim` (0: all), are
// rotated by an angle of their position, whose cosine and sine are inputs. A pair is two elements
// side by side (interleaved), or one of each half. ONNX Runtime's has its inputs in another order
// and takes one position, that of the first element of each sequence, for all.
#include "ops/attention/heads.h"

enum { X, COS, SIN, POSITIONS };
enum { MS_POSITIONS = 1, MS_COS, MS_SIN };

// ---- inference ----

// Whether `found`, axis `axis` of input i, may be `expected` or is stretched to it.
static bool fits_rotary(ot_infer *c, int i, int axis, int64_t expected)
{
    const int64_t found = ot_infer_shape(c, i)->dim[axis];

    if (found == 1 || !ot__dim_differs(found, expected))
        return true;
    return ot__refuse(c, "input %d has size %" PRId64 " along axis %d, expected %" PRId64, i, found,
                      axis, expected);
}

static bool check_rotary_caches(ot_infer *c, int64_t batch, int64_t length, int64_t pairs)
{
    const bool by_position = ot_infer_has(c, POSITIONS);
    const int ndim = by_position ? 2 : 3;

    for (int i = COS; i <= SIN; i++) {
        const ot_shape *cache = ot_infer_shape(c, i);

        if (cache->ndim != ndim)
            return ot__refuse(c, "input %d has %d axes, expected %d %s position_ids", i,
                              cache->ndim, ndim, by_position ? "with" : "without");
        if (ot__dim_differs(cache->dim[ndim - 1], pairs))
            return ot__refuse(c,
                              "input %d has size %" PRId64 " along axis %d, expected %" PRId64
                              ", half of what is rotated of a head",
                              i, cache->dim[ndim - 1], ndim - 1, pairs);
        if (!by_position && (!fits_rotary(c, i, 0, batch) || !fits_rotary(c, i, 1, length)))
            return false;
    }
    if (!ot__infer_matches(c, COS, SIN))
        return false;
    if (!by_position)
        return true;
    if (ot_infer_shape(c, POSITIONS)->ndim != 2)
        return ot__refuse(c, "position_ids has %d axes, expected 2",
                          ot_infer_shape(c, POSITIONS)->ndim);
    return fits_rotary(c, POSITIONS, 0, batch) && fits_rotary(c, POSITIONS, 1, length);
}

// The elements of a head of X, as far as known; false with the failure.
static bool read_head_size(ot_infer *c, int64_t *size)
{
    const ot_shape *x = ot_infer_shape(c, X);
    const int64_t heads = ot_attr_int(ot_infer_node(c), "num_heads");

    *size = ot_dim_unknown();
    if (x->ndim != 3 && x->ndim != 4)
        return ot__refuse(c, "X has %d axes, expected 3 or 4", x->ndim);
    *size = x->dim[x->ndim - 1];
    if (x->ndim == 4)
        return true;
    if (heads < 1)
        return ot__refuse(c, "num_heads is %" PRId64 ", expected at least 1 for X of 3 axes",
                          heads);
    if (ot_dim_is_number(*size) && *size % heads != 0)
        return ot__refuse(
            c, "X has size %" PRId64 " along axis 2, which %" PRId64 " heads do not divide", *size,
            heads);
    *size = ot_dim_is_number(*size) ? *size / heads : ot_dim_unknown();
    return true;
}

// What is rotated of a head of `size`, as far as known; false with the failure.
static bool read_rotated(ot_infer *c, int64_t size, int64_t *rotated)
{
    const int64_t given = ot_attr_int(ot_infer_node(c), "rotary_embedding_dim");

    *rotated = given == 0 ? size : given;
    if (given < 0 || (ot_dim_is_number(size) && given > size))
        return ot__refuse(c, "rotary_embedding_dim is %" PRId64 ", a head has size %" PRId64, given,
                          size);
    if (ot_dim_is_number(*rotated) && *rotated % 2 != 0)
        return ot__refuse(
            c, "%" PRId64 " elements of a head are to be rotated, expected an even number",
            *rotated);
    return true;
}

static int64_t half(int64_t size)
{
    return ot_dim_is_number(size) ? size / 2 : ot_dim_unknown();
}

static void rotary_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, X);
    int64_t size, rotated;

    if (!read_head_size(c, &size) || !read_rotated(c, size, &rotated))
        return;
    if (check_rotary_caches(c, x->dim[0], x->dim[x->ndim == 4 ? 2 : 1], half(rotated)))
        ot_infer_set(c, 0, ot_infer_dtype(c, X), x);
}

// The heads of 3 axes: by num_heads, or as large as the caches say.
static int64_t ms_head_size(const ot_node *node, const ot_shape *x, const ot_shape *cosines)
{
    const int64_t heads = ot_attr_int(node, "num_heads"), last = x->dim[x->ndim - 1];

    if (x->ndim == 4)
        return last;
    if (heads > 0)
        return ot_dim_is_number(last) ? last / heads : ot_dim_unknown();
    return ot_dim_is_number(cosines->dim[1]) && cosines->dim[1] <= INT64_MAX / 2
               ? 2 * cosines->dim[1]
               : ot_dim_unknown();
}

static bool check_ms_attrs(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);

    if (ot_attr_int(node, "is_packed_batching") != 0)
        return ot__refuse(c, "is_packed_batching is not supported");
    if (ot_attr_float(node, "scale") != 1.0F)
        return ot__refuse(c, "scale is %g, only 1 is supported",
                          (double)ot_attr_float(node, "scale"));
    if (ot_attr_int(node, "num_heads") < 0)
        return ot__refuse(c, "num_heads is %" PRId64 ", expected 0 or more",
                          ot_attr_int(node, "num_heads"));
    if (ot_attr_int(node, "rotary_embedding_dim") > 0 && ot_attr_int(node, "num_heads") == 0 &&
        ot_infer_shape(c, X)->ndim == 3)
        return ot__refuse(c, "rotary_embedding_dim is given without num_heads");
    return true;
}

static bool check_ms_positions(ot_infer *c, int64_t batch, int64_t length)
{
    const ot_shape *positions = ot_infer_shape(c, MS_POSITIONS);

    if (positions->ndim == 1)
        return ot__infer_one_element(c, MS_POSITIONS);
    if (positions->ndim != 2)
        return ot__refuse(c, "position_ids has %d axes, expected 1 or 2", positions->ndim);
    return fits_rotary(c, MS_POSITIONS, 0, batch) && fits_rotary(c, MS_POSITIONS, 1, length);
}

static void ms_rotary_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, X), *cosines = ot_infer_shape(c, MS_COS);
    int64_t size, rotated;

    if (!check_ms_attrs(c))
        return;
    if ((x->ndim != 3 && x->ndim != 4) || cosines->ndim != 2) {
        ot_infer_fail(c, "input has %d axes and cos_cache %d, expected 3 or 4 and 2", x->ndim,
                      cosines->ndim);
        return;
    }
    size = ms_head_size(ot_infer_node(c), x, cosines);
    if (ot_dim_is_number(size) && x->ndim == 3 && ot_dim_is_number(x->dim[2]) &&
        (size < 1 || x->dim[2] % size != 0 ||
         (ot_attr_int(ot_infer_node(c), "num_heads") > 0 &&
          x->dim[2] % ot_attr_int(ot_infer_node(c), "num_heads") != 0))) {
        ot_infer_fail(c, "input has size %" PRId64 " along axis 2, which its heads do not divide",
                      x->dim[2]);
        return;
    }
    if (!read_rotated(c, size, &rotated) || !ot__infer_matches(c, MS_COS, MS_SIN) ||
        !check_ms_positions(c, x->dim[0], x->dim[x->ndim == 4 ? 2 : 1]))
        return;
    if (ot__dim_differs(cosines->dim[1], half(rotated)))
        ot_infer_fail(c,
                      "cos_cache has size %" PRId64 " along axis 1, expected %" PRId64
                      ", half of what is rotated of a head",
                      cosines->dim[1], half(rotated));
    ot_infer_set(c, 0, ot_infer_dtype(c, X), x);
}

// ---- what it is composed of ----

typedef struct rotary {
    ot_value *cosines, *sines;  // (batch, positions, pairs), either of which may be 1
    int64_t head_size, rotated; // below 0: not known
    bool is_partial, is_interleaved;
} rotary;

static ot_value *emit_unsqueezed(ot_grad *g, ot_value *v, int64_t axis)
{
    return ot_emit2(g, "Unsqueeze", v, ot_emit_constant_i64(g, &axis, 1));
}

// Parts along the last axis of x, of these sizes.
static void emit_parts(ot_grad *g, ot_value *x, ot_value *sizes, int n, ot_value **parts)
{
    ot_value *const in[] = {x, sizes};
    ot_node *node = x == NULL || sizes == NULL ? NULL : ot_emit(g, "Split", "axis = -1", in, 2, n);

    for (int i = 0; i < n; i++)
        parts[i] = ot_emit_output(g, node, i);
}

// Sizes of so many equal parts, and of what is left of the head.
static ot_value *emit_part_sizes(ot_grad *g, ot_value *x, const rotary *r, int n)
{
    const int64_t sizes[] = {r->rotated / n, n == 1 ? r->head_size - r->rotated : r->rotated / n,
                             r->head_size - r->rotated};
    const int ndim = ot_value_shape(x)->ndim;
    ot_value *parts[2], *size;

    if (r->rotated < 0) { // all of a head
        parts[0] = parts[1] = ot__emit_extents(g, r->cosines, 2, 3);
        return ot__emit_concat(g, parts, 2, 0);
    }
    if (r->head_size >= 0 || !r->is_partial)
        return ot_emit_constant_i64(g, sizes, n + r->is_partial);
    parts[0] = ot_emit_constant_i64(g, sizes, n);
    size = ot__emit_extents(g, x, ndim - 1, ndim);
    parts[1] = ot_emit2(g, "Sub", size, ot_emit_constant_i64(g, &r->rotated, 1));
    return ot__emit_concat(g, parts, 2, 0);
}

// Cosines or sines with an axis for the heads.
static ot_value *emit_angles(ot_grad *g, ot_value *angles, int64_t heads_axis, bool is_interleaved)
{
    angles = emit_unsqueezed(g, angles, heads_axis);
    return is_interleaved ? emit_unsqueezed(g, angles, -1) : angles;
}

// (a, b) becomes (cos a - sin b, sin a + cos b), side by side along the last axis.
static ot_value *emit_rotated(ot_grad *g, ot_value *const *pair, ot_value *cosines, ot_value *sines)
{
    ot_value *to[2], *product;

    product = ot_emit2(g, "Mul", sines, pair[1]);
    to[0] = ot_emit2(g, "Sub", ot_emit2(g, "Mul", cosines, pair[0]), product);
    product = ot_emit2(g, "Mul", cosines, pair[1]);
    to[1] = ot_emit2(g, "Add", ot_emit2(g, "Mul", sines, pair[0]), product);
    return ot__emit_concat(g, to, 2, -1);
}

// x with pairs as the last axis.
static ot_value *emit_rotary_pairs(ot_grad *g, ot_value *x, const rotary *r)
{
    const int64_t dims[] = {0, 0, 0, r->rotated < 0 ? -1 : r->rotated / 2, 2};

    return ot__emit_reshape(g, x, dims, 5);
}

static ot_value *emit_rotary(ot_grad *g, ot_value *x, int64_t heads_axis, const rotary *r)
{
    static const int64_t ones[] = {1, 1};
    ot_value *cosines = emit_angles(g, r->cosines, heads_axis, r->is_interleaved);
    ot_value *sines = emit_angles(g, r->sines, heads_axis, r->is_interleaved);
    ot_value *parts[3] = {x}, *pair[2], *y, *ends[2];
    const int n = r->is_interleaved ? 1 : 2; // parts that are rotated

    if (r->is_partial || n > 1)
        emit_parts(g, x, emit_part_sizes(g, x, r, n), n + r->is_partial, parts);
    if (r->is_interleaved) {
        y = emit_rotary_pairs(g, parts[0], r);
        emit_parts(g, y, ot_emit_constant_i64(g, ones, 2), 2, pair);
        y = ot_emit_reshape_like(g, emit_rotated(g, pair, cosines, sines), parts[0]);
    } else {
        y = emit_rotated(g, parts, cosines, sines);
    }
    if (!r->is_partial)
        return y;
    ends[0] = y;
    ends[1] = parts[n];
    return ot__emit_concat(g, ends, 2, -1);
}

ot_value *ot__emit_rotated_heads(ot_grad *g, ot_value *x, ot_value *cosines, ot_value *sines,
                                 bool is_interleaved)
{
    rotary r = {cosines, sines, -1, -1, false, is_interleaved};
    int64_t head, pairs;

    if (x == NULL || cosines == NULL)
        return NULL;
    head = ot_value_shape(x)->dim[3];
    pairs = ot_value_shape(cosines)->dim[2];
    r.head_size = ot_dim_is_number(head) ? head : -1;
    r.rotated = ot_dim_is_number(pairs) && pairs <= INT64_MAX / 2 ? 2 * pairs : -1;
    r.is_partial = r.rotated >= 0 && r.head_size != r.rotated;
    return emit_rotary(g, x, 1, &r);
}

// Where a Reshape gets 4 axes from.
static ot_value *emit_head_dims(ot_grad *g, int64_t heads, const rotary *r)
{
    const int64_t dims[] = {0, 0, heads > 0 ? heads : -1, r->head_size};
    ot_value *parts[2];

    if (heads > 0 || r->head_size >= 0)
        return ot_emit_constant_i64(g, dims, 4);
    parts[0] = ot_emit_constant_i64(g, dims, 3);
    parts[1] = ot__emit_extents(g, r->cosines, 2, 3);
    parts[1] = ot__emit_times(g, parts[1], 2);
    return ot__emit_concat(g, parts, 2, 0);
}

// x of 3 axes has `heads` heads; 0: as many as their size says.
static void write_rotary(ot_grad *g, int64_t heads, rotary *r)
{
    const int64_t given = ot_attr_int(ot_grad_node(g), "rotary_embedding_dim");
    ot_value *x = ot_grad_x(g, X), *y;

    r->rotated = given == 0 ? r->head_size : given;
    r->is_partial = r->rotated != r->head_size;
    r->is_interleaved = ot_attr_int(ot_grad_node(g), "interleaved") != 0;
    if (ot_value_shape(x)->ndim == 4) {
        y = emit_rotary(g, x, 1, r);
    } else {
        y = emit_rotary(g, ot_emit2(g, "Reshape", x, emit_head_dims(g, heads, r)), 2, r);
        y = ot_emit_reshape_like(g, y, x);
    }
    ot_expand_set(g, 0, y);
}

static ot_value *emit_rows_of(ot_grad *g, ot_value *cache, ot_value *positions)
{
    return positions == NULL ? cache : ot_emit2(g, "Gather", cache, positions);
}

static void rotary_compose(ot_grad *g)
{
    const int64_t heads = ot_attr_int(ot_grad_node(g), "num_heads");
    const ot_shape *shape = ot_value_shape(ot_grad_x(g, X));
    const int64_t last = shape->dim[shape->ndim - 1];
    rotary r = {.head_size = ot_dim_is_number(last) ? last / (shape->ndim == 4 ? 1 : heads) : -1};

    if (!ot_value_has_shape(ot_grad_x(g, X)))
        return;
    r.cosines = emit_rows_of(g, ot_grad_x(g, COS), ot_grad_x(g, POSITIONS));
    r.sines = emit_rows_of(g, ot_grad_x(g, SIN), ot_grad_x(g, POSITIONS));
    write_rotary(g, heads, &r);
}

// Positions (batch, length), or (1, length) of those that count up from one.
static ot_value *emit_ms_positions(ot_grad *g)
{
    ot_value *positions = ot_grad_x(g, MS_POSITIONS), *length;
    const ot_shape *x = ot_value_shape(ot_grad_x(g, X));
    const int axis = x->ndim == 4 ? 2 : 1;

    if (ot_value_shape(positions)->ndim == 2)
        return positions;
    length = ot__emit_at(g, ot_emit_shape(g, ot_grad_x(g, X)), axis);
    positions = ot_emit2(g, "Add", positions, ot__emit_count_up(g, length));
    return emit_unsqueezed(g, positions, 0);
}

static void ms_rotary_compose(ot_grad *g)
{
    const ot_node *node = ot_grad_node(g);
    ot_value *x = ot_grad_x(g, X), *cosines = ot_grad_x(g, MS_COS), *positions;
    rotary r = {0};

    if (!ot_value_has_shape(x) || !ot_value_has_shape(cosines) ||
        !ot_value_has_shape(ot_grad_x(g, MS_POSITIONS)))
        return;
    r.head_size = OT_MAX(ms_head_size(node, ot_value_shape(x), ot_value_shape(cosines)), -1);
    positions = emit_ms_positions(g);
    r.cosines = ot_emit2(g, "Gather", cosines, positions);
    r.sines = ot_emit2(g, "Gather", ot_grad_x(g, MS_SIN), positions);
    write_rotary(g, ot_attr_int(node, "num_heads"), &r);
}

static const ot_port rotary_in[] = {
    {"X", "T", 0},
    {"cos_cache", "T", 0},
    {"sin_cache", "T", 0},
    {"position_ids", "M", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0},
};
static const ot_attr_spec rotary_attrs[] = {
    OT__FLAG_ATTR("interleaved", 0),
    OT__INT_ATTR("num_heads", 0),
    OT__INT_ATTR("rotary_embedding_dim", 0),
    {0},
};
const ot_op_def ot__op_rotary_embedding[] = {
    {.name = "RotaryEmbedding",
     .since = 23,
     .inputs = rotary_in,
     .outputs = ot__unary_out,
     .attrs = rotary_attrs,
     .types = "T: f32 f64; M: i64",
     .infer = rotary_infer,
     .train = rotary_compose},
    {0},
};
static const ot_port ms_rotary_in[] = {
    {"input", "T", 0},
    {"position_ids", "M", OT_PORT_NO_GRAD},
    {"cos_cache", "T", 0},
    {"sin_cache", "T", 0},
    {0},
};
static const ot_attr_spec ms_rotary_attrs[] = {
    OT__FLAG_ATTR("interleaved", 0), OT__INT_ATTR("is_packed_batching", 0),
    OT__INT_ATTR("num_heads", 0),    OT__INT_ATTR("rotary_embedding_dim", 0),
    OT__FLOAT_ATTR("scale", 1.0F),   {0},
};
const ot_op_def ot__op_ms_rotary_embedding[] = {
    {.domain = OT__MS,
     .name = "RotaryEmbedding",
     .since = 1,
     .inputs = ms_rotary_in,
     .outputs = ot__output_out,
     .attrs = ms_rotary_attrs,
     .types = "T: f32 f64; M: i64",
     .infer = ms_rotary_infer,
     .train = ms_rotary_compose},
    {0},
};
