// SPDX-License-Identifier: Apache-2.0
// A session whose parameters are cut over ranks: shapes of the model, and of what is here.
#include "session_fixture.h"

static const char averaging_text[] =
    MLP_HEAD "adamw (" MLP_OPTIMIZER_INPUTS
             ", seq(T[]) second_order_moments, seq(T[]) averages) => (bool[1] flag)\n"
             "{\n"
             "  flag = com.microsoft.AdamWOptimizer(learning_rate, step, params, gradients, "
             "first_order_moments, second_order_moments)\n"
             "}\n";

// Rows of fc1.weight, which has three, over two ranks.
static ot_sharding *cut_first_weight(void)
{
    ot_cut cut = OT_CUT_INIT;
    ot_sharding *sharding;

    cut.rule = OT_CUT_CEIL;
    cut.n_parts = 2;
    assert_int_equal(ot_sharding_create(OT_F32, &OT_SHAPE(IN, HIDDEN), &cut, 1, -1, &sharding),
                     OT_OK);
    return sharding;
}

static void assert_refused(ot_status found)
{
    assert_int_equal(found, OT_ERR_STATE);
    if (strstr(ot_error_message(), "'fc1.weight' is cut over ranks") == NULL)
        fail_msg("'%s'", ot_error_message());
}

static void cut_values_have_the_models_shape_and_no_place_in_a_vector(void **state)
{
    fixture *f = *state;
    ot_sharding *sharding = cut_first_weight();
    float vector[N_ELEMENTS] = {0};
    ot__parameter *p;
    ot_tensor *part;
    ot_model *model;

    make(f, OT_F32, mlp_adamw_text);
    p = ot__ckpt_find(f->checkpoint, "fc1.weight");
    assert_int_equal(ot__ckpt_cut(f->checkpoint, sharding, p->value, &part), OT_OK);
    ot_tensor_destroy(p->value);
    p->value = part;
    p->value_sharding = p->state_sharding = sharding;
    open_session(f);
    assert_int_equal(ot_session_parameters_size(f->session, OT_PARAMETERS_ALL), N_ELEMENTS);
    assert_refused(ot_session_get_parameters(f->session, OT_PARAMETERS_ALL, vector, N_ELEMENTS));
    assert_refused(ot_session_set_parameters(f->session, OT_PARAMETERS_ALL, vector, N_ELEMENTS));
    assert_refused(ot_session_get_gradients(f->session, vector, N_ELEMENTS));
    assert_refused(ot_session_set_gradients(f->session, vector, N_ELEMENTS));
    assert_refused(ot_session_export(f->session, NULL, 0, &model));
    assert_null(model);
    ot_session_destroy(f->session);
    f->session = NULL;
    ot_sharding_destroy(sharding);
}

// As with ZeRO 1. An average begins with the part of the value that it is of.
static void slots_are_made_for_the_part_that_is_here(void **state)
{
    fixture *f = *state;
    ot_sharding *sharding = cut_first_weight();
    ot__parameter *p;

    make(f, OT_F32, averaging_text);
    p = ot__ckpt_find(f->checkpoint, "fc1.weight");
    p->state_sharding = sharding;
    f->checkpoint->places[OT_CUT_DATA] = 1; // the last row
    open_session(f);
    for (int k = 0; k < OT_SLOTS; k++)
        assert_true(ot__shape_equal(&p->slots[k]->shape, &OT_SHAPE(1, HIDDEN)));
    assert_memory_equal(p->slots[OT_SLOT_AVERAGE]->data,
                        (const float *)p->value->data + (IN - 1) * HIDDEN, HIDDEN * sizeof(float));
    p = ot__ckpt_find(f->checkpoint, "fc2.weight");
    assert_true(ot__shape_equal(&p->slots[0]->shape, &p->value->shape));
    ot_session_destroy(f->session);
    f->session = NULL;
    ot_sharding_destroy(sharding);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cut_values_have_the_models_shape_and_no_place_in_a_vector,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(slots_are_made_for_the_part_that_is_here, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
