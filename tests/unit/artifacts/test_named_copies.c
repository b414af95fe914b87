// SPDX-License-Identifier: Apache-2.0
#include "artifacts/artifacts.h"
#include "evaluate.h"

static const char text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                           "f (float[n,2] x) => (float[n,2] y, float[2] given)\n"
                           "<float[2] a = {1, 2}>\n"
                           "{ b = Identity (a)  c = Identity (b)  given = Identity (a)\n"
                           "  p = Mul (x, a)  q = Mul (p, b)  y = Mul (q, c) }";

static ot_status generate(const ot_model *model, const char *trainable, const char *frozen,
                          ot_artifacts **out)
{
    static const ot_loss_options mse = {.size = sizeof mse, .loss = OT_LOSS_MSE, .factor = 1};
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;

    options.losses = &mse;
    options.n_losses = 1;
    options.prepare = OT_PREPARE_NONE;
    options.trainable = &trainable;
    options.n_trainable = 1;
    options.frozen = &frozen;
    options.n_frozen = frozen ? 1 : 0;
    return ot_artifacts_generate(model, &options, out);
}

// Names with '+' where it trains, '-' where it does not.
static void assert_parameters(const ot_artifacts *artifacts, const char *expected)
{
    const ot_checkpoint *checkpoint = ot_artifacts_checkpoint((ot_artifacts *)artifacts);
    char found[64] = "";

    for (int i = 0; i < ot_checkpoint_parameter_count(checkpoint); i++) {
        const char *name = ot_checkpoint_parameter_name(checkpoint, i);
        const size_t n = strlen(found);

        snprintf(found + n, sizeof found - n, "%s%c ", name,
                 ot_checkpoint_parameter_trainable(checkpoint, name) == 1 ? '+' : '-');
    }
    assert_string_equal(found, expected);
}

static void named_copies_are_parameters(void **state)
{
    static const struct {
        const char *trainable, *frozen, *parameters;
    } rows[] = {
        {"a", NULL, "a+ "},   {"b", NULL, "b+ "}, {"c", "a", "a- c+ "},
        {"c", "b", "b- c+ "}, {"*", NULL, "a+ "}, {"a", "c", "a+ c- "},
    };
    ot_model *model = read_text(text);
    ot_artifacts *artifacts;
    ot_tensor *value;

    (void)state;
    for (size_t i = 0; i < OT_COUNT(rows); i++) {
        assert_ok(generate(model, rows[i].trainable, rows[i].frozen, &artifacts));
        assert_parameters(artifacts, rows[i].parameters);
        assert_ok(ot_checkpoint_get_parameter(ot_artifacts_checkpoint(artifacts),
                                              rows[i].trainable[0] == '*' ? "a" : rows[i].trainable,
                                              &value));
        assert_float_equal(ot__tensor_get_f64(value, 1), 2, 0);
        ot_tensor_destroy(value);
        ot_artifacts_destroy(artifacts);
    }
    ot_model_destroy(model);
}

static void a_copy_that_the_model_gives_stays_one(void **state)
{
    ot_model *model = read_text(text);
    ot_artifacts *artifacts;

    (void)state;
    assert_fails(generate(model, "given", NULL, &artifacts), OT_ERR_INVALID,
                 "'given' is computed by Identity");
    ot_model_destroy(model);
}

static void every_allocation_may_fail(void **state)
{
    ot_model *model = read_text(text);
    ot_artifacts *artifacts = NULL;
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int n = 0; st == OT_ERR_NO_MEMORY; n++) {
        ot__alloc_fail_after(n);
        st = generate(model, "c", "b", &artifacts);
        ot__alloc_fail_after(-1);
    }
    assert_int_equal(st, OT_OK);
    assert_parameters(artifacts, "b- c+ ");
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(named_copies_are_parameters),
        cmocka_unit_test(a_copy_that_the_model_gives_stays_one),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
