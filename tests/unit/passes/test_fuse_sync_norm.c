// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"
#include "passes/passes.h"

#define HEAD                                                                                       \
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> "                           \
    "g (float[N,3,2] x, float[N,3,2] dy, float[3] s, float[3] b, float[3] m, float[3] v) => "
#define NORM                                                                                       \
    "  y, rm, rv, sm, si = com.microsoft.BatchNormInternal <momentum = 0.75> (x, s, b, m, v)"

static void a_normalisation_and_its_gradient_are_those_of_all_ranks(void **state)
{
    ot_model *model =
        read_prepared(HEAD "(float[N,3,2] y, float[N,3,2] z, float[N,3,2] dx) {" NORM
                           "  z = BatchNormalization (y, s, b, m, v)"
                           "  dx, ds, db = com.microsoft.BatchNormalizationGrad <epsilon = 0.5>"
                           " (dy, x, s, sm, si)"
                           "}");
    const ot_graph *g = model->graph;

    (void)state;
    assert_ok(ot__fuse_sync_norm(model));
    assert_string_equal(g->nodes[0]->op_type, "SyncBatchNormalization");
    assert_float_equal(ot_attr_float(g->nodes[0], "momentum"), 0.75, 0);
    assert_true((g->nodes[0]->op->flags & OT_OP_ORDERED) != 0);
    assert_string_equal(g->nodes[1]->op_type, "BatchNormalization"); // by stored statistics
    assert_string_equal(g->nodes[2]->op_type, "SyncBatchNormalizationGrad");
    assert_float_equal(ot_attr_float(g->nodes[2], "epsilon"), 0.5, 0);
    assert_true((g->nodes[2]->op->flags & OT_OP_ORDERED) != 0);
    assert_ok(ot__graph_verify(g));
    ot_model_destroy(model);
}

static void assert_refused(const char *text, const char *why)
{
    ot_model *model = read_prepared(text);

    assert_int_equal(ot__fuse_sync_norm(model), OT_ERR_UNSUPPORTED);
    if (strstr(ot_error_message(), why) == NULL)
        fail_msg("%s", ot_error_message());
    ot_model_destroy(model);
}

static void statistics_that_are_not_saved_are_refused(void **state)
{
    (void)state;
    assert_refused(HEAD "(float[N,3,2] y) {"
                        "  y, rm, rv = BatchNormalization <training_mode = 1> (x, s, b, m, v)"
                        "}",
                   "keeps no statistics of its batch");
    assert_refused(HEAD "(float[N,3,2] y, float[N,3,2] dx) {" NORM
                        "  dx, ds, db = com.microsoft.BatchNormalizationGrad (dy, x, s, m, si)"
                        "}",
                   "its statistics 'm' are not those that a BatchNormInternal saved");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_normalisation_and_its_gradient_are_those_of_all_ranks),
        cmocka_unit_test(statistics_that_are_not_saved_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
