// SPDX-License-Identifier: Apache-2.0
#include "artifacts/artifacts.h"
#include "evaluate.h"

static void dropout_does_not_train_in_the_eval_model(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17]>"
                                "g (float[N, 2] x) => (float[N, 2] y)"
                                "<float[2] w = {1, 2}, float ratio = {0.5}, bool on = {1}>"
                                "{ a = Mul(x, w) y = Dropout(a, ratio, on) }");
    ot_artifacts *artifacts;
    const ot_node *node;

    (void)state;
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    node = find_node(artifacts->eval, "Dropout");
    assert_int_equal(node->n_inputs, 3);
    assert_null(node->inputs[2]);
    assert_null(ot__graph_find(artifacts->eval->graph, "on"));
    node = find_node(artifacts->training, "Dropout");
    assert_string_equal(node->inputs[2]->name, "on");
    // Its gradient reads the mask, which the forward node did not write.
    assert_int_equal(node->n_outputs, 2);
    assert_non_null(find_node(artifacts->training, "DropoutGrad"));
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

// Whatever training makes of it.
static void composed_operators_stay_in_the_eval_model(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = read_text("<ir_version: 10, opset_import: [\"\" : 23]>"
                                "g (float[N, 2] x) => (float[N, 2] y)"
                                "<float[2] w = {1, 2}> { y = RMSNormalization(x, w) }");
    ot_artifacts *artifacts;

    (void)state;
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    assert_non_null(find_node(artifacts->eval, "RMSNormalization"));
    assert_null(find_node(artifacts->training, "RMSNormalization"));
    assert_non_null(find_node(artifacts->training, "SimplifiedLayerNormalizationGrad"));
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout_does_not_train_in_the_eval_model),
        cmocka_unit_test(composed_operators_stay_in_the_eval_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
