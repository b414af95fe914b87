// SPDX-License-Identifier: Apache-2.0
// Parameters that lie in the layouts of their kernels while a session works: nobody outside sees
// it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "onnxtrain/onnxtrain.h"
#include "session/session_internal.h"

#if OT_WITH_ONEDNN && defined(__x86_64__)
enum { HAS_LAYOUTS = 1 };
#else
enum { HAS_LAYOUTS = 0 };
#endif
enum { CLASSES = 5, STEPS = 3 };
static const char path[] = "packing_checkpoint";

// Convolutions whose channels are whole blocks (v, w, depthwise d), and ones whose are not (u).
static const char model_text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                 "net (float[batch, 3, 8, 8] x) => (float[batch, 5] y)\n"
                                 "{\n"
                                 "  v = RandomNormal<shape = [16, 3, 3, 3], scale = 0.3>()\n"
                                 "  w = RandomNormal<shape = [32, 16, 3, 3], scale = 0.1>()\n"
                                 "  d = RandomNormal<shape = [32, 1, 3, 3], scale = 0.3>()\n"
                                 "  u = RandomNormal<shape = [6, 32, 1, 1], scale = 0.3>()\n"
                                 "  f = RandomNormal<shape = [6, 5], scale = 0.3>()\n"
                                 "  a = Conv<pads = [1, 1, 1, 1]>(x, v)\n"
                                 "  b = Relu(a)\n"
                                 "  c = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(b, w)\n"
                                 "  e = Relu(c)\n"
                                 "  g = Conv<pads = [1, 1, 1, 1], group = 32>(e, d)\n"
                                 "  h = Conv(g, u)\n"
                                 "  i = GlobalAveragePool(h)\n"
                                 "  j = Flatten(i)\n"
                                 "  y = MatMul(j, f)\n"
                                 "}\n";
static const char *const names[] = {"v", "w", "d", "u", "f"};

static void need(ot_status st)
{
    if (st != OT_OK)
        fail_msg("%s: %s", ot_status_name(st), ot_error_message());
}

typedef struct fixture {
    ot_artifacts *artifacts;
    ot_session *session;
} fixture;

static void open_session(fixture *f, int reference)
{
    const ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_session_options session_options = OT_SESSION_OPTIONS_INIT;
    ot_model *model;

    options.losses = &loss;
    options.n_losses = 1;
    options.optimizer = &optimizer;
    optimizer.max_norm = 0.5; // a sum over all gradients
    optimizer.hyper =
        &(const ot_hyper){"epsilon", 0.01}; // an update is no step function of the gradient
    optimizer.n_hyper = 1;
    session_options.reference_kernels = reference;
    session_options.n_threads = 2;
    need(ot_model_load_buffer(model_text, strlen(model_text), NULL, &model));
    need(ot_artifacts_generate(model, &options, &f->artifacts));
    ot_model_destroy(model);
    need(ot_session_create_from_artifacts(f->artifacts, &session_options, &f->session));
    need(ot_session_set_learning_rate(f->session, 0.01));
}

static void close_session(fixture *f)
{
    ot_session_destroy(f->session);
    ot_artifacts_destroy(f->artifacts);
}

static ot_tensor *make_input(const ot_session *session, int i, int number, int64_t rows)
{
    ot_tensor *tensor;
    ot_dtype dtype;
    ot_shape shape;

    need(ot_session_input_info(session, OT_MODE_TRAIN, i, &dtype, &shape));
    shape.dim[0] = rows;
    need(ot_tensor_create(dtype, &shape, &tensor));
    for (int64_t k = 0; k < ot_tensor_count(tensor); k++) {
        const uint32_t word = (uint32_t)(k + 31 * number) * 2654435761u >> 12;

        if (dtype == OT_F32)
            ((float *)tensor->data)[k] = (float)word / 524288.0f - 1.0f;
        else
            ((int64_t *)tensor->data)[k] = word % CLASSES;
    }
    return tensor;
}

static float step(ot_session *session, ot_mode mode, int number, int64_t rows)
{
    ot_tensor *in[] = {make_input(session, 0, number, rows), make_input(session, 1, number, rows)};
    const ot_tensor *const inputs[] = {in[0], in[1]};
    ot_tensor *loss = NULL;
    float value;

    need(mode == OT_MODE_TRAIN ? ot_session_train_step(session, inputs, 2, &loss, 1)
                               : ot_session_eval_step(session, inputs, 2, &loss, 1));
    value = *(const float *)loss->data;
    ot_tensor_destroy(loss);
    ot_tensor_destroy(in[0]);
    ot_tensor_destroy(in[1]);
    return value;
}

static void update(ot_session *session)
{
    need(ot_session_optimizer_step(session));
    ot_session_reset_gradients(session);
}

static ot__parameter *find(const fixture *f, const char *name)
{
    return ot__ckpt_find(ot_session_checkpoint(f->session), name);
}

// The elements of everything that belongs to the parameters, as seen from outside. Freed by the
// caller.
static float *look(fixture *f, int64_t *n)
{
    const int64_t size = ot_session_parameters_size(f->session, OT_PARAMETERS_ALL);
    float *all = calloc((size_t)size * 4, sizeof *all), *at = all;

    for (size_t k = 0; k < OT_COUNT(names); k++) {
        ot_tensor *value, *gradient;
        const ot__parameter *p = find(f, names[k]);

        need(ot_checkpoint_get_parameter(ot_session_checkpoint(f->session), names[k], &value));
        need(ot_checkpoint_get_gradient(ot_session_checkpoint(f->session), names[k], &gradient));
        const ot_tensor *const tensors[] = {value, gradient, p->slots[0], p->slots[1]};
        for (size_t i = 0; i < OT_COUNT(tensors); i++) {
            memcpy(at, tensors[i]->data, tensors[i]->n_bytes);
            at += ot_tensor_count(tensors[i]);
        }
        ot_tensor_destroy(value);
        ot_tensor_destroy(gradient);
    }
    *n = at - all;
    assert_int_equal(*n, 4 * size);
    return all;
}

// ---- tests ----

static void whole_blocks_of_channels_get_a_layout_and_others_none(void **state)
{
    fixture f;

    (void)state;
    open_session(&f, 0);
    for (size_t k = 0; k < OT_COUNT(names); k++)
        assert_null(find(&f, names[k])->layout);
    (void)step(f.session, OT_MODE_TRAIN, 0, 4);
    assert_int_equal(find(&f, "v")->layout != NULL, HAS_LAYOUTS);
    assert_int_equal(find(&f, "w")->layout != NULL, HAS_LAYOUTS);
    assert_null(find(&f, "u")->layout);
    assert_null(find(&f, "f")->layout);
    close_session(&f);
}

static void the_reference_kernels_train_alike(void **state)
{
    fixture fast, reference;
    float *a, *b;
    int64_t n;

    (void)state;
    open_session(&fast, 0);
    open_session(&reference, 1);
    for (int i = 0; i < STEPS; i++) {
        const int64_t rows = i == 1 ? 3 : 4; // another plan, the same layouts

        assert_float_equal(step(fast.session, OT_MODE_TRAIN, i, rows),
                           step(reference.session, OT_MODE_TRAIN, i, rows), 1e-4);
        if (i == 1) { // one more into the same gradients
            (void)step(fast.session, OT_MODE_TRAIN, 7, rows);
            (void)step(reference.session, OT_MODE_TRAIN, 7, rows);
        }
        assert_float_equal(step(fast.session, OT_MODE_EVAL, i, 5),
                           step(reference.session, OT_MODE_EVAL, i, 5), 1e-4);
        assert_null(find(&reference, "w")->layout);
        a = look(&fast, &n);
        b = look(&reference, &n);
        for (int64_t k = 0; k < n; k++)
            assert_float_equal(a[k], b[k], 2e-3);
        free(a);
        free(b);
        update(fast.session);
        update(reference.session);
    }
    close_session(&fast);
    close_session(&reference);
}

static void looking_changes_nothing(void **state)
{
    fixture watched, alone;
    float *a, *b;
    int64_t n;

    (void)state;
    open_session(&watched, 0);
    open_session(&alone, 0);
    for (int i = 0; i < STEPS; i++) {
        (void)step(watched.session, OT_MODE_TRAIN, i, 4);
        (void)step(alone.session, OT_MODE_TRAIN, i, 4);
        free(look(&watched, &n));
        update(watched.session);
        update(alone.session);
        free(look(&watched, &n));
    }
    a = look(&watched, &n);
    b = look(&alone, &n);
    assert_memory_equal(a, b, (size_t)n * sizeof *a);
    free(a);
    free(b);
    close_session(&watched);
    close_session(&alone);
}

static void flat_vectors_are_row_major(void **state)
{
    fixture f;
    float *values, *gradients, *at;
    int64_t n;

    (void)state;
    open_session(&f, 0);
    (void)step(f.session, OT_MODE_TRAIN, 0, 4);
    update(f.session);
    n = ot_session_parameters_size(f.session, OT_PARAMETERS_ALL);
    values = calloc((size_t)n, sizeof *values);
    gradients = calloc((size_t)n, sizeof *gradients);
    need(ot_session_get_parameters(f.session, OT_PARAMETERS_ALL, values, n));
    need(ot_session_get_gradients(f.session, gradients, n));
    assert_int_equal(find(&f, "w")->layout != NULL, HAS_LAYOUTS); // read where they are
    at = values;
    for (int k = 0; k < f.session->n_parameters; k++) {
        const char *name = f.session->parameters[k]->name;
        ot_tensor *value, *gradient;

        need(ot_checkpoint_get_parameter(ot_session_checkpoint(f.session), name, &value));
        need(ot_checkpoint_get_gradient(ot_session_checkpoint(f.session), name, &gradient));
        assert_memory_equal(at, value->data, value->n_bytes);
        assert_memory_equal(gradients + (at - values), gradient->data, gradient->n_bytes);
        at += ot_tensor_count(value);
        ot_tensor_destroy(value);
        ot_tensor_destroy(gradient);
    }
    (void)step(f.session, OT_MODE_TRAIN, 1, 4);
    for (int64_t k = 0; k < n; k++)
        values[k] = (float)k;
    need(ot_session_set_parameters(f.session, OT_PARAMETERS_ALL, values, n));
    memset(gradients, 0, (size_t)n * sizeof *gradients);
    need(ot_session_get_parameters(f.session, OT_PARAMETERS_ALL, gradients, n));
    assert_memory_equal(gradients, values, (size_t)n * sizeof *values);
    free(values);
    free(gradients);
    close_session(&f);
}

static void assert_same_parameters(const fixture *f, const fixture *g)
{
    for (int k = 0; k < f->session->n_parameters; k++) {
        const char *name = f->session->parameters[k]->name;
        ot_tensor *a, *b;

        need(ot_checkpoint_get_parameter(ot_session_checkpoint(f->session), name, &a));
        need(ot_checkpoint_get_parameter(ot_session_checkpoint(g->session), name, &b));
        assert_memory_equal(a->data, b->data, a->n_bytes);
        ot_tensor_destroy(a);
        ot_tensor_destroy(b);
    }
}

static void the_optimizer_may_change_while_parameters_have_layouts(void **state)
{
    const ot_model *optimizer;
    fixture f, g;

    (void)state;
    open_session(&f, 0);
    open_session(&g, 0); // keeps its optimizer
    optimizer = ot_artifacts_optimizer_model(f.artifacts);
    for (int k = 0; k < STEPS; k++) {
        (void)step(f.session, OT_MODE_TRAIN, k, 4);
        (void)step(g.session, OT_MODE_TRAIN, k, 4);
        assert_int_equal(find(&f, "w")->layout != NULL, HAS_LAYOUTS);
        if (k == 1) // none for a while
            need(ot_session_set_optimizer(f.session, NULL));
        need(ot_session_set_optimizer(f.session, optimizer)); // with the moments there are
        assert_null(find(&f, "w")->layout);
        update(f.session);
        update(g.session);
        assert_same_parameters(&f, &g);
    }
    (void)step(f.session, OT_MODE_TRAIN, 0, 4);
    assert_int_equal(ot_session_set_optimizer(f.session, ot_artifacts_eval_model(f.artifacts)),
                     OT_ERR_INVALID);
    update(f.session); // by the one it had
    (void)step(g.session, OT_MODE_TRAIN, 0, 4);
    update(g.session);
    assert_same_parameters(&f, &g);
    close_session(&f);
    close_session(&g);
}

static void assert_same_moments(const fixture *f, const fixture *g)
{
    for (size_t k = 0; k < OT_COUNT(names); k++)
        for (int i = 0; i < 2; i++) {
            const ot_tensor *a = find(f, names[k])->slots[i], *b = find(g, names[k])->slots[i];

            assert_memory_equal(a->data, b->data, a->n_bytes);
        }
}

// A save beside steps copies them as they lie; what is saved is row-major, and of one moment.
static void a_save_meanwhile_leaves_them_where_they_are(void **state)
{
    static const char directory[] = "packing_directory";
    ot_shards_save_options options = OT_SHARDS_SAVE_OPTIONS_INIT;
    fixture f, g, h;
    ot_shards_job *job;

    (void)state;
    open_session(&f, 0);
    open_session(&g, 0); // stops where f is saved
    open_session(&h, 1);
    need(ot_shards_job_create(&job));
    options.replaces = 1;
    for (int k = 0; k < STEPS; k++) {
        (void)step(f.session, OT_MODE_TRAIN, k, 4);
        update(f.session);
        (void)step(g.session, OT_MODE_TRAIN, k, 4);
        update(g.session);
        need(ot_session_save_shards_async(f.session, job, directory, &options));
        assert_int_equal(find(&f, "w")->layout != NULL, HAS_LAYOUTS);
    }
    (void)step(f.session, OT_MODE_TRAIN, STEPS, 4);
    update(f.session);
    need(ot_shards_job_wait(job));
    ot_shards_job_destroy(job);
    need(ot_session_load_shards(h.session, directory));
    assert_same_parameters(&h, &g);
    assert_same_moments(&h, &g);
    assert_true(ot__directory_remove(directory, NULL));
    close_session(&f);
    close_session(&g);
    close_session(&h);
}

static void gradients_that_are_set_are_row_major(void **state)
{
    const int64_t n_weights = 16 * 3 * 3 * 3;
    float *gradients;
    fixture f, g;
    ot_tensor *v;
    int64_t n;

    (void)state;
    open_session(&f, 0);
    open_session(&g, 0);
    (void)step(f.session, OT_MODE_TRAIN, 0, 4);
    (void)step(g.session, OT_MODE_TRAIN, 0, 4);
    n = ot_session_parameters_size(f.session, OT_PARAMETERS_TRAINABLE);
    gradients = calloc((size_t)n, sizeof *gradients);
    for (int64_t i = 0; i < n; i++)
        gradients[i] = (float)(i % 7) / 64;
    need(ot_session_set_gradients(f.session, gradients, n)); // where they are
    need(ot_session_set_gradients(g.session, gradients, n));
    need(ot_tensor_wrap(OT_F32, &OT_SHAPE(16, 3, 3, 3), gradients,
                        (size_t)n_weights * sizeof(float), &v));
    for (int64_t i = 0; i < n_weights; i++)
        gradients[i] = (float)(i % 5) / 64;
    need(ot_checkpoint_set_gradient(ot_session_checkpoint(f.session), "v", v));
    need(ot_session_get_gradients(g.session, gradients, n));
    for (int64_t i = 0; i < n_weights; i++)
        gradients[i] = (float)(i % 5) / 64; // v is the first
    need(ot_session_set_gradients(g.session, gradients, n));
    update(f.session);
    update(g.session);
    assert_same_parameters(&f, &g);
    ot_tensor_destroy(v);
    free(gradients);
    close_session(&f);
    close_session(&g);
}

static void a_saved_checkpoint_has_what_the_session_has(void **state)
{
    ot_checkpoint *loaded;
    fixture f;

    (void)state;
    open_session(&f, 0);
    for (int i = 0; i < STEPS; i++) {
        (void)step(f.session, OT_MODE_TRAIN, i, 4);
        update(f.session);
    }
    need(ot_session_save(f.session, path));
    need(ot_checkpoint_load(path, &loaded));
    (void)step(f.session, OT_MODE_EVAL, 0, 4); // back into the layouts
    for (size_t k = 0; k < OT_COUNT(names); k++) {
        const ot__parameter *p = ot__ckpt_find(loaded, names[k]);
        ot_tensor *value;

        need(ot_checkpoint_get_parameter(ot_session_checkpoint(f.session), names[k], &value));
        assert_memory_equal(p->value->data, value->data, value->n_bytes);
        for (int m = 0; m < OT_SLOT_MOMENTS; m++)
            assert_memory_equal(p->slots[m]->data, find(&f, names[k])->slots[m]->data,
                                value->n_bytes);
        ot_tensor_destroy(value);
    }
    ot_checkpoint_destroy(loaded);
    unlink(path);
    close_session(&f);
}

static void an_exported_model_has_row_major_parameters(void **state)
{
    ot_model *model;
    fixture f;

    (void)state;
    open_session(&f, 0);
    (void)step(f.session, OT_MODE_TRAIN, 0, 4);
    update(f.session);
    need(ot_session_export(f.session, NULL, 0, &model));
    for (size_t k = 0; k < OT_COUNT(names); k++) {
        const ot_tensor *held = ot__graph_find(model->graph, names[k])->constant;
        ot_tensor *value;

        need(ot_checkpoint_get_parameter(ot_session_checkpoint(f.session), names[k], &value));
        assert_memory_equal(held->data, value->data, value->n_bytes);
        ot_tensor_destroy(value);
    }
    ot_model_destroy(model);
    close_session(&f);
}

static void evaluating_first_gives_the_same_as_evaluating_later(void **state)
{
    fixture f;
    float before;

    (void)state;
    open_session(&f, 0);
    before = step(f.session, OT_MODE_EVAL, 0, 4);
    (void)step(f.session, OT_MODE_TRAIN, 0, 4);
    assert_float_equal(step(f.session, OT_MODE_EVAL, 0, 4), before, 0);
    close_session(&f);
}

static void the_checkpoint_of_a_closed_session_is_row_major(void **state)
{
    ot_tensor *before, *after;
    ot_checkpoint *checkpoint;
    fixture f;

    (void)state;
    open_session(&f, 0);
    checkpoint = ot_session_checkpoint(f.session);
    need(ot_checkpoint_get_parameter(checkpoint, "w", &before));
    (void)step(f.session, OT_MODE_TRAIN, 0, 4); // changes no parameter
    ot_session_destroy(f.session);
    f.session = NULL;
    need(ot_checkpoint_get_parameter(checkpoint, "w", &after));
    assert_memory_equal(after->data, before->data, before->n_bytes);
    ot_tensor_destroy(before);
    ot_tensor_destroy(after);
    close_session(&f);
}

// A state dict gives them row-major, and takes them so.
static void a_state_by_names_is_row_major(void **state)
{
    const unsigned sections = OT_STATE_MODEL | OT_STATE_OPTIMIZER | OT_STATE_OWN;
    fixture from, to;
    ot_dict *dict;
    float *a, *b;
    int64_t n;

    (void)state;
    open_session(&from, 0);
    open_session(&to, 0);
    for (int i = 0; i < STEPS; i++) {
        (void)step(from.session, OT_MODE_TRAIN, i, 4);
        update(from.session);
    }
    (void)step(to.session, OT_MODE_TRAIN, 7, 4);
    update(to.session);
    need(ot_session_get_shards(from.session, sections, NULL, &dict));
    need(ot_session_set_shards(to.session, sections, dict, NULL, NULL));
    ot_dict_destroy(dict);
    (void)step(from.session, OT_MODE_TRAIN, 8, 4);
    (void)step(to.session, OT_MODE_TRAIN, 8, 4);
    update(from.session);
    update(to.session);
    a = look(&from, &n);
    b = look(&to, &n);
    assert_memory_equal(a, b, (size_t)n * sizeof *a);
    free(a);
    free(b);
    close_session(&from);
    close_session(&to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_blocks_of_channels_get_a_layout_and_others_none),
        cmocka_unit_test(the_reference_kernels_train_alike),
        cmocka_unit_test(looking_changes_nothing),
        cmocka_unit_test(flat_vectors_are_row_major),
        cmocka_unit_test(the_optimizer_may_change_while_parameters_have_layouts),
        cmocka_unit_test(a_save_meanwhile_leaves_them_where_they_are),
        cmocka_unit_test(gradients_that_are_set_are_row_major),
        cmocka_unit_test(a_saved_checkpoint_has_what_the_session_has),
        cmocka_unit_test(an_exported_model_has_row_major_parameters),
        cmocka_unit_test(evaluating_first_gives_the_same_as_evaluating_later),
        cmocka_unit_test(a_state_by_names_is_row_major),
        cmocka_unit_test(the_checkpoint_of_a_closed_session_is_row_major),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
