// SPDX-License-Identifier: Apache-2.0
// Batches of bound fields, in file order or shuffled; any batch of any epoch can be gone to.
#include <string.h>

#include "data/bind.h"

#define OT_KIND_BATCHES "batches"

enum { USUAL_ROWS = 32, SLICES_MAX = 1 << 20 };

struct ot_batches {
    ot__guard guard;
    const ot_dataset *dataset;
    int64_t rows; // of the fields
    ot_batches_options options;
    ot__bound *bounds;
    int n_bounds;
    int64_t first, count; // window of the split order
    int64_t epoch, next;  // position of the next row in the window
    int64_t batch_rows;   // of the latest batch
    bool is_slice;        // there is room for one alone
};

static ot_status check_batch_options(const ot_batches_options *options, int64_t rows)
{
    if (options->batch_size < 0)
        return ot__error(OT_ERR_INVALID, "batch size is %" PRId64 ", expected at least 1",
                         options->batch_size);
    if (options->first < 0 || options->last < options->first || options->last > rows)
        return ot__error(OT_ERR_INVALID,
                         "rows %" PRId64 " to %" PRId64 " are not within the %" PRId64 " there are",
                         options->first, options->last, rows);
    if (options->slices < 0 || options->slices > SLICES_MAX)
        return ot__error(OT_ERR_INVALID, "a batch has %" PRId64 " slices, expected 0 to %d",
                         options->slices, SLICES_MAX);
    if (options->slice < 0 || options->slice > OT_MAX(options->slices - 1, 0))
        return ot__error(OT_ERR_INVALID,
                         "there is no slice %" PRId64 " among the %" PRId64 " of a batch",
                         options->slice, options->slices);
    return OT_OK;
}

// The first row of a slice of a batch: rows * slice / slices, without overflow.
static int64_t slice_start(int64_t rows, int64_t slice, int64_t slices)
{
    return rows / slices * slice + rows % slices * slice / slices;
}

// The fields of all inputs, which must have the same number of rows.
static ot_status find_batch_fields(ot_batches *batches, const ot_dataset *dataset,
                                   const ot_binding *bindings, int n_bindings)
{
    const ot__field *first, *field;

    for (int i = 0; i < n_bindings; i++) {
        batches->n_bounds = i + 1;
        OT_TRY(ot__bound_find(&batches->bounds[i], dataset, &bindings[i]));
        first = batches->bounds[0].fields[0];
        field = batches->bounds[i].fields[0];
        if (field->rows != first->rows)
            return ot__error(OT_ERR_INVALID,
                             "%s: field '%s' of input '%s' has %" PRId64
                             " rows, '%s' of input '%s' has %" PRId64,
                             field->source->path, field->name, bindings[i].input, field->rows,
                             first->name, bindings[0].input, first->rows);
        batches->rows = field->rows;
    }
    return OT_OK;
}

static ot_status init(ot_batches *batches, const ot_dataset *dataset, const ot_binding *bindings,
                      int n_bindings)
{
    ot_batches_options *options = &batches->options, room;

    batches->bounds = ot__alloc_zero((size_t)n_bindings, sizeof(*batches->bounds));
    OT_TRY(ot__made(batches->bounds));
    OT_TRY(find_batch_fields(batches, dataset, bindings, n_bindings));
    OT_TRY(check_batch_options(options, batches->rows));
    if (options->batch_size == 0)
        options->batch_size = USUAL_ROWS;
    batches->first = options->first;
    batches->count = options->last > 0 ? options->last - options->first : batches->rows;
    // A batch larger than the data needs no more room than the data.
    options->batch_size = OT_MAX(OT_MIN(options->batch_size, batches->count), 1);
    options->slices = OT_MAX(options->slices, 1);
    batches->is_slice = options->slices > 1;
    room = *options;
    room.batch_size = (options->batch_size + options->slices - 1) / options->slices;
    for (int i = 0; i < n_bindings; i++)
        OT_TRY(ot__bound_init(&batches->bounds[i], &bindings[i], &room));
    return OT_OK;
}

ot_status ot_batches_create(const ot_dataset *dataset, const ot_binding *bindings, int n_bindings,
                            const ot_batches_options *options, ot_batches **out)
{
    ot_batches_options own;
    ot_batches *batches;
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(ot__guard_check(dataset, OT_KIND_DATASET));
    OT_TRY(OT_GIVEN_MANY(bindings, n_bindings));
    if (n_bindings < 1)
        return ot__error(OT_ERR_INVALID, "no input is bound to the data");
    OT_TRY(OT_OPTIONS_READ(ot_batches_options, OT_BATCHES_OPTIONS_INIT, options, &own));
    batches = ot__alloc_zero(1, sizeof(*batches));
    OT_TRY(ot__made(batches));
    ot__guard_init(&batches->guard, OT_KIND_BATCHES);
    ot__dataset_retain(dataset);
    batches->dataset = dataset;
    batches->options = own;
    st = init(batches, dataset, bindings, n_bindings);
    return OT_HAND_OUT(st, out, batches, ot_batches_destroy);
}

void ot_batches_destroy(ot_batches *batches)
{
    if (!batches || ot__guard_enter(batches, OT_KIND_BATCHES) != OT_OK)
        return;
    for (int i = 0; i < batches->n_bounds; i++)
        ot__bound_deinit(&batches->bounds[i]);
    ot__free(batches->bounds);
    ot__dataset_release(batches->dataset);
    ot__guard_deinit(&batches->guard);
    ot__free(batches);
}

int64_t ot_batches_rows(const ot_batches *batches)
{
    return OT_IS_LIVE(batches) ? batches->count : 0;
}

int64_t ot_batches_count(const ot_batches *batches)
{
    int64_t size;

    if (!OT_IS_LIVE(batches))
        return 0;
    size = batches->options.batch_size;
    return batches->options.drop_last ? batches->count / size : (batches->count + size - 1) / size;
}

int64_t ot_batches_left_over(const ot_batches *batches)
{
    return OT_IS_LIVE(batches) && batches->options.drop_last
               ? batches->count % batches->options.batch_size
               : 0;
}

int64_t ot_batches_batch_rows(const ot_batches *batches)
{
    return OT_IS_LIVE(batches) ? batches->batch_rows : 0;
}

static ot_status seek(ot_batches *batches, int64_t epoch, int64_t batch)
{
    if (epoch < 0 || batch < 0 || batch > ot_batches_count(batches))
        return ot__error(OT_ERR_INVALID,
                         "there is no batch %" PRId64 " among the %" PRId64 " of epoch %" PRId64,
                         batch, ot_batches_count(batches), epoch);
    batches->epoch = epoch;
    batches->next = OT_MIN(batch * batches->options.batch_size, batches->count);
    return OT_OK;
}

ot_status ot_batches_seek(ot_batches *batches, int64_t epoch, int64_t batch)
{
    ot_status st;

    OT_TRY(ot__guard_enter(batches, OT_KIND_BATCHES));
    st = seek(batches, epoch, batch);
    ot__guard_leave(batches);
    return st;
}

ot_status ot__batches_set_slice(ot_batches *batches, int64_t slice, int64_t slices)
{
    if (batches->is_slice)
        return ot__error(OT_ERR_INVALID,
                         "the batches are slices of others, expected whole ones, which are cut");
    batches->options.slice = slice;
    batches->options.slices = slices;
    return OT_OK;
}

int64_t ot__batches_size(const ot_batches *batches)
{
    return batches->options.batch_size;
}

static int64_t row_at(const ot_batches *batches, int64_t position)
{
    const ot_batches_options *options = &batches->options;

    if (options->shuffle)
        position = ot__permute(options->seed, (uint64_t)batches->epoch, batches->count, position);
    position += batches->first;
    return options->split_seed ? ot__permute(options->split_seed, 0, batches->rows, position)
                               : position;
}

// One row into place 0 of all inputs.
static ot_status read_one(ot_batches *batches, int64_t row)
{
    for (int i = 0; i < batches->n_bounds; i++)
        OT_TRY(ot__bound_read(&batches->bounds[i], row, 0, batches->rows,
                              batches->bounds[i].is_class ? batches->options.n_classes : 0));
    return OT_OK;
}

ot_status ot__batches_id(ot_batches *batches, uint64_t *id)
{
    const int64_t rows[] = {0, batches->count - 1};

    *id = 0;
    batches->epoch = 0;
    for (int k = 0; k < 2 && batches->count > 0; k++) {
        OT_TRY(read_one(batches, row_at(batches, rows[k])));
        for (int i = 0; i < batches->n_bounds; i++) {
            const ot__bound *bound = &batches->bounds[i];

            *id = ot__id_mix(*id, bound->tensor->data,
                             (size_t)bound->row_count * ot_dtype_size(bound->dtype));
        }
    }
    return OT_OK;
}

// Of `n_bounds` inputs from `bounds` on.
static ot_status next(ot_batches *batches, ot__bound *bounds, int n_bounds,
                      const ot_tensor **tensors)
{
    const ot_batches_options *options = &batches->options;
    const int64_t rows = OT_MIN(batches->count - batches->next, options->batch_size);
    const int64_t first = slice_start(rows, options->slice, options->slices);
    const int64_t n = slice_start(rows, options->slice + 1, options->slices) - first;

    for (int i = 0; i < n_bounds; i++)
        tensors[i] = NULL;
    batches->batch_rows = 0;
    if (rows <= 0 || (options->drop_last && rows < options->batch_size))
        return OT_OK;
    for (int64_t at = 0; at < n; at++) {
        const int64_t row = row_at(batches, batches->next + first + at);
        for (int i = 0; i < n_bounds; i++)
            OT_TRY(ot__bound_read(&bounds[i], row, at, batches->rows,
                                  bounds[i].is_class ? options->n_classes : 0));
    }
    batches->next += rows;
    batches->batch_rows = rows;
    for (int i = 0; i < n_bounds; i++) {
        ot__bound *bound = &bounds[i];
        bound->tensor->shape.dim[0] = n;
        bound->tensor->n_bytes = (size_t)(n * bound->row_count) * ot_dtype_size(bound->dtype);
        tensors[i] = bound->tensor;
    }
    return OT_OK;
}

ot_status ot__batches_next_of(ot_batches *batches, int input, const ot_tensor **tensor)
{
    return next(batches, &batches->bounds[input], 1, tensor);
}

ot_status ot_batches_next(ot_batches *batches, const ot_tensor **tensors, int n_tensors)
{
    ot_status st;

    OT_TRY(OT_GIVEN(tensors));
    OT_TRY(ot__guard_enter(batches, OT_KIND_BATCHES));
    st = n_tensors == batches->n_bounds
             ? next(batches, batches->bounds, batches->n_bounds, tensors)
             : ot__error(OT_ERR_INVALID, "room for %d tensors is given, the batches have %d inputs",
                         n_tensors, batches->n_bounds);
    ot__guard_leave(batches);
    return st;
}

const char *const *ot_batches_class_names(const ot_batches *batches, int *n_classes)
{
    if (!n_classes)
        return NULL;
    *n_classes = 0;
    if (!OT_IS_LIVE(batches))
        return NULL;
    for (int i = 0; i < batches->n_bounds; i++)
        if (batches->bounds[i].is_class && batches->bounds[i].class_names) {
            *n_classes = batches->bounds[i].n_class_names;
            return (const char *const *)batches->bounds[i].class_names;
        }
    return NULL;
}
