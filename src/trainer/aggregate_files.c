// SPDX-License-Identifier: Apache-2.0
// The files of a state that several processes have saved.
#include <string.h>

#include "trainer/aggregate.h"

static ot_status check_shard_paths(const char *const *paths, int n)
{
    for (int i = 0; i < n; i++)
        if (paths[i] == NULL)
            return ot__error(OT_ERR_INVALID, "path %d of %d is NULL", i, n);
    return OT_OK;
}

ot_status ot__state_aggregate_files(const char *const *paths, int n_paths, int rank, bool is_apart,
                                    ot_dict **out)
{
    ot_dict **states;
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN_MANY(paths, n_paths));
    OT_TRY(check_shard_paths(paths, n_paths));
    states = ot__alloc_zero((size_t)n_paths, sizeof(ot_dict *));
    OT_TRY(ot__made(states != NULL));
    st = OT_OK;
    for (int i = 0; st == OT_OK && i < n_paths; i++)
        st = ot__state_load_hdf5(paths[i], is_apart, &states[i]);
    OT_THEN(st, ot__state_aggregate((const ot_dict *const *)states, paths, n_paths, rank, out));
    for (int i = 0; i < n_paths; i++)
        ot_dict_destroy(states[i]);
    ot__free(states);
    return st;
}

ot_status ot_state_aggregate(const char *const *paths, int n_paths, ot_dict **out)
{
    return ot__state_aggregate_files(paths, n_paths, -1, false, out);
}

ot_status ot_state_aggregate_apart(const char *const *paths, int n_paths, ot_dict **out)
{
    return ot__state_aggregate_files(paths, n_paths, -1, true, out);
}
