// SPDX-License-Identifier: Apache-2.0
// What this library's trainers save besides the names of ONNX Runtime, of several ranks as one:
// numbers are the same in all files, averages are cut as moments are, and within an accumulation
// each rank has gradients and running statistics of its own.
#include <string.h>

#include "trainer/aggregate.h"

static ot_status check_owners(const ot__shards *all)
{
    const ot__shard *first = &all->of_rank[0];

    for (int r = 1; r < all->n; r++)
        if ((all->of_rank[r].own != NULL) != (first->own != NULL))
            return ot__error(OT_ERR_INVALID, "%s: has %s '%s', %s has %s", all->of_rank[r].path,
                             first->own != NULL ? "no" : "the section", OT_KEY_OWN, first->path,
                             first->own != NULL ? "it" : "none");
    return OT_OK;
}

// ---- numbers ----

// Random numbers may be others on each rank.
static ot_status join_number(const ot__shards *all, int rank, const char *name, ot_dict *to)
{
    const ot__shard *first = &all->of_rank[0];

    if (strcmp(name, OT_KEY_SEED) == 0 && rank >= 0)
        first = &all->of_rank[rank];
    else
        for (int r = 1; r < all->n && strcmp(name, OT_KEY_SEED) != 0; r++)
            if (!ot__dict_has(all->of_rank[r].own, name) ||
                !ot__dict_same(first->own, name, all->of_rank[r].own, name))
                return ot__error(OT_ERR_INVALID, "%s: '%s' in '%s' is another than in %s",
                                 all->of_rank[r].path, name, OT_KEY_OWN, first->path);
    return ot__error_prefix(ot__dict_copy(first->own, name, to, name), "%s", first->path);
}

// ---- averages ----

static ot_status join_averages(const ot__shards *all, ot_dict *own)
{
    ot_dict *to;

    OT_TRY(ot_dict_set_dict(own, OT_KEY_AVERAGES, &to));
    for (int r = 0; r < all->n; r++)
        for (int i = 0; i < ot_dict_count(all->of_rank[r].averages); i++) {
            const char *name = ot_dict_name(all->of_rank[r].averages, i);

            OT_TRY(ot__shards_take(all, &(ot__shard_value){name, OT_KEY_AVERAGES}, to));
        }
    return OT_OK;
}

// ---- gradients ----

static ot_status find_own_tensor(const ot__shard *shard, const char *section, const char *name,
                                 const ot_tensor **out)
{
    const ot_dict *in;
    ot_status st = ot__shard_section(shard->own, section, &in);

    if (st == OT_OK && !ot__state_has(in, name))
        st = ot__error(OT_ERR_INVALID, "has no '%s' in '%s', others have", name, section);
    OT_THEN(st, ot_dict_get_tensor(in, name, out));
    return ot__error_prefix(st, "%s", shard->path);
}

static ot_status add_to_sum(const ot_tensor *gradient, double *one, double *sum)
{
    const int64_t count = ot_tensor_count(gradient);

    if (!ot__convert(one, OT_F64, gradient->data, gradient->dtype, count))
        return ot__error(OT_ERR_UNSUPPORTED, "a gradient is %s", ot_dtype_name(gradient->dtype));
    for (int64_t i = 0; i < count; i++)
        sum[i] += one[i];
    return OT_OK;
}

static ot_status sum_gradients_of_ranks(const ot__shards *all, const char *name,
                                        const ot_tensor *first, double *one, double *sum)
{
    for (int r = 0; r < all->n; r++) {
        const ot_tensor *gradient;
        ot_status st;

        OT_TRY(find_own_tensor(&all->of_rank[r], OT_KEY_GRADIENTS, name, &gradient));
        st = ot__shape_equal(&gradient->shape, &first->shape)
                 ? add_to_sum(gradient, one, sum)
                 : ot__error(OT_ERR_INVALID, "the gradient of '%s' is %s, expected %s", name,
                             OT_SHAPE_TEXT(&gradient->shape), OT_SHAPE_TEXT(&first->shape));
        OT_TRY(ot__error_prefix(st, "%s", all->of_rank[r].path));
    }
    return OT_OK;
}

// What a rank has that goes on with all of them: the mean.
static ot_status average_gradients(const ot__shards *all, const char *name, ot_tensor **out)
{
    const ot_tensor *first;
    ot_tensor *mean = NULL;
    int64_t count;
    double *sum;
    ot_status st;

    OT_TRY(find_own_tensor(&all->of_rank[0], OT_KEY_GRADIENTS, name, &first));
    count = ot_tensor_count(first);
    sum = ot__alloc_zero(2 * (size_t)count + 1, sizeof *sum);
    st = ot__made(sum != NULL);
    OT_THEN(st, sum_gradients_of_ranks(all, name, first, sum + count, sum));
    OT_THEN(st, ot_tensor_create(first->dtype, &first->shape, &mean));
    for (int64_t i = 0; st == OT_OK && i < count; i++)
        sum[i] /= all->n;
    if (st == OT_OK)
        (void)ot__convert(mean->data, mean->dtype, sum, OT_F64, count);
    ot__free(sum);
    return OT_HAND_OUT(st, out, mean, ot_tensor_destroy);
}

static ot_status clone_gradient(const ot__shard *shard, const char *name, ot_tensor **out)
{
    const ot_tensor *own;

    OT_TRY(find_own_tensor(shard, OT_KEY_GRADIENTS, name, &own));
    return ot_tensor_clone(own, out);
}

static ot_status join_gradients(const ot__shards *all, int rank, ot_dict *own)
{
    const ot_dict *first;
    ot_dict *to;

    OT_TRY(ot__shard_section(all->of_rank[0].own, OT_KEY_GRADIENTS, &first));
    OT_TRY(ot_dict_set_dict(own, OT_KEY_GRADIENTS, &to));
    for (int i = 0; i < ot_dict_count(first); i++) {
        const char *name = ot_dict_name(first, i);
        ot_tensor *tensor = NULL;
        ot_status st = rank >= 0 ? clone_gradient(&all->of_rank[rank], name, &tensor)
                                 : average_gradients(all, name, &tensor);

        OT_THEN(st, ot_dict_take_tensor(to, name, tensor));
        if (st != OT_OK) {
            ot_tensor_destroy(tensor);
            return st;
        }
    }
    return OT_OK;
}

// ---- running statistics ----

// The weights of the files are the means; a rank that goes on has its own.
static ot_status take_statistics(const ot__shards *all, int rank, ot_dict *state)
{
    const ot_dict *from = NULL;
    ot_dict *weights;

    if (rank >= 0)
        OT_TRY(ot__shard_section(all->of_rank[rank].own, OT_KEY_STATISTICS, &from));
    OT_TRY(ot_dict_get_dict(state, OT_KEY_MODEL, &weights));
    OT_TRY(ot_dict_get_dict(weights, OT_KEY_FULL_PRECISION, &weights));
    for (int i = 0; i < ot_dict_count(from); i++)
        OT_TRY(ot__dict_copy(from, ot_dict_name(from, i), weights, ot_dict_name(from, i)));
    return OT_OK;
}

// ---- all of it ----

static ot_status join_own_value(const ot__shards *all, int rank, const char *name, ot_dict *state,
                                ot_dict *own)
{
    if (strcmp(name, OT_KEY_AVERAGES) == 0)
        return join_averages(all, own);
    if (strcmp(name, OT_KEY_GRADIENTS) == 0)
        return join_gradients(all, rank, own);
    if (strcmp(name, OT_KEY_STATISTICS) == 0)
        return take_statistics(all, rank, state);
    return join_number(all, rank, name, own);
}

ot_status ot__shards_join_own(const ot__shards *all, int rank, ot_dict *state)
{
    const ot_dict *first = all->of_rank[0].own;
    ot_dict *own;

    OT_TRY(check_owners(all));
    if (first == NULL || all->n_columns > 1)
        return OT_OK;
    OT_TRY(ot_dict_set_dict(state, OT_KEY_OWN, &own));
    for (int i = 0; i < ot_dict_count(first); i++)
        OT_TRY(join_own_value(all, rank, ot_dict_name(first, i), state, own));
    return OT_OK;
}
