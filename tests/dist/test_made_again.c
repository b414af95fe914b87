// SPDX-License-Identifier: Apache-2.0
// Parameters are gathered for the time in which they are read, and gradients summed as soon as they
// are complete: also where the backward pass makes values again, of parameters far from those whose
// gradients are made then. What comes out is that of ranks that have all values whole.
#include "sessions.h"

// Blocks with a sum around them, whose activations are most of what is alive.
static void blocks_of_a_residual_network(void **state)
{
    session_run r = {.n_ranks = 2, .kind = SGD, .n_updates = 2, .n_micro_batches = 1};
    ot_model *model = load_model("residual", OT_F32);
    ot_artifacts *expected, *found;

    (void)state;
    r.rows = 4;
    r.classes = 6;
    expected = train_sessions(model, &r);
    for (r.zero = 2; r.zero <= 3; r.zero++) {
        found = train_sessions(model, &r);
        compare_parameters(found, expected, 1e-5);
        ot_artifacts_destroy(found);
    }
    ot_artifacts_destroy(expected);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_of_a_residual_network)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
