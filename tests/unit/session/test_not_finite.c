// SPDX-License-Identifier: Apache-2.0
// Where a session looks for numbers that are not finite. This program counts the looks: it has
// these functions in place of the library's.
#include "unit/session/session_fixture.h"

#include <math.h>

#include "session/session_internal.h"

static const ot_tensor *counted;
static _Thread_local int n_looks; // threads of other tests look too

bool ot__tensor_is_finite(const ot_tensor *tensor)
{
    return ot__tensor_find_not_finite(tensor) < 0;
}

int64_t ot__tensor_find_not_finite(const ot_tensor *tensor)
{
    n_looks += tensor == counted;
    for (int64_t i = 0; i < ot_tensor_count(tensor); i++)
        if (!isfinite(ot__tensor_get_f64(tensor, i)))
            return i;
    return -1;
}

static void a_constant_that_many_nodes_read_is_looked_at_once(void **state)
{
    fixture *f = *state;
    ot__not_finite found;
    ot_value *constant;
    ot_tensor *tensor;
    ot_node *node;
    ot_value *readers[100];
    ot_graph *graph;

    make(f, OT_F32, NULL);
    open_session(f);
    graph = f->session->training.model->graph;
    constant = ot__graph_new_value(graph, "many");
    assert_non_null(constant);
    assert_int_equal(ot_tensor_create(OT_F32, &(ot_shape){.ndim = 0}, &tensor), OT_OK);
    ((float *)tensor->data)[0] = 1;
    constant->constant = tensor;
    for (int i = 0; i < 100; i++)
        readers[i] = constant;
    node = graph->nodes[0];
    {
        ot_value **inputs = node->inputs;
        const int n_inputs = node->n_inputs;

        node->inputs = readers;
        node->n_inputs = 100;
        counted = tensor;
        assert_false(ot__session_find_not_finite(f->session, false, &found));
        assert_int_equal(n_looks, 1);
        ((float *)tensor->data)[0] = INFINITY;
        assert_true(ot__session_find_not_finite(f->session, false, &found));
        assert_int_equal(n_looks, 2);
        assert_string_equal(found.name, "many");
        assert_string_equal(found.what, "constant");
        node->inputs = inputs;
        node->n_inputs = n_inputs;
    }
    constant->constant = NULL;
    ot_tensor_destroy(tensor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_constant_that_many_nodes_read_is_looked_at_once, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
