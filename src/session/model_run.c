// Any model once, without a session.
#include "session/session_internal.h"

typedef struct execution {
    ot_model *model;
    ot__plan *plan;
    ot_shape *shapes; // per graph input
    int *fed;         // positions of the inputs that have no initializer
    int n_fed;
} execution;

static ot_status list_inputs(execution *x, const ot_tensor *const *inputs, int n_inputs)
{
    const ot_graph *g = x->model->graph;

    x->shapes = ot__alloc_zero((size_t)g->n_inputs + 1, sizeof *x->shapes);
    x->fed = ot__alloc_zero((size_t)g->n_inputs + 1, sizeof *x->fed);
    if (x->shapes == NULL || x->fed == NULL)
        return OT_ERR_NO_MEMORY;
    for (int i = 0; i < g->n_inputs; i++) {
        const ot_value *value = g->inputs[i];

        if (value->constant != NULL) {
            x->shapes[i] = value->constant->shape;
            continue;
        }
        if (x->n_fed == n_inputs || inputs[x->n_fed] == NULL)
            return ot__error(OT_ERR_INVALID, "input %d '%s' is missing", x->n_fed, value->name);
        if (inputs[x->n_fed]->dtype != value->dtype)
            return ot__error(OT_ERR_INVALID, "input %d '%s' is %s, expected %s", x->n_fed,
                             value->name, ot_dtype_name(inputs[x->n_fed]->dtype),
                             ot_dtype_name(value->dtype));
        x->shapes[i] = inputs[x->n_fed]->shape;
        x->fed[x->n_fed++] = i;
    }
    if (x->n_fed != n_inputs)
        return ot__error(OT_ERR_INVALID, "got %d inputs, expected %d", n_inputs, x->n_fed);
    return OT_OK;
}

static ot_status make_plan(execution *x, const ot_session_options *options)
{
    ot_session_options own;
    ot__plan_options plan_options;

    OT_TRY(ot__session_options_take(options, &own, &plan_options));
    plan_options.borrow_block = false;
    plan_options.memory_max = own.memory_max;
    OT_TRY(ot__pass_specialize(x->model, x->shapes, x->model->graph->n_inputs));
    OT_TRY(ot__pass_fuse(x->model));
    return ot__plan_create(x->model->graph, &plan_options, NULL, NULL, &x->plan);
}

static ot_status run(execution *x, const ot_session_options *options,
                     const ot_tensor *const *inputs, int n_inputs, ot_tensor **outputs,
                     int n_outputs)
{
    const ot_step step = {0};

    OT_TRY(ot__pass_prepare(x->model));
    if (n_outputs > x->model->graph->n_outputs)
        return ot__error(OT_ERR_INVALID, "%d outputs wanted, the model has %d", n_outputs,
                         x->model->graph->n_outputs);
    OT_TRY(list_inputs(x, inputs, n_inputs));
    OT_TRY(make_plan(x, options));
    for (int i = 0; i < n_inputs; i++)
        ot__plan_bind_input(x->plan, x->fed[i], 0, inputs[i]->data);
    for (int i = 0; i < n_outputs; i++) {
        const ot_arg *y = ot__plan_output(x->plan, i);

        OT_TRY(ot_tensor_create(y->dtype, &y->shape, &outputs[i]));
        ot__plan_bind_output(x->plan, i, outputs[i]->data);
    }
    return ot__plan_run(x->plan, &step);
}

ot_status ot_model_run(const ot_model *model, const ot_session_options *options,
                       const ot_tensor *const *inputs, int n_inputs, ot_tensor **outputs,
                       int n_outputs)
{
    execution x = {0};
    ot_status st;

    for (int i = 0; i < n_outputs; i++)
        outputs[i] = NULL;
    ot__dump_start();
    st = ot__model_clone(model, &x.model);
    if (st == OT_OK)
        st = run(&x, options, inputs, n_inputs, outputs, n_outputs);
    for (int i = 0; st != OT_OK && i < n_outputs; i++) {
        ot_tensor_destroy(outputs[i]);
        outputs[i] = NULL;
    }
    ot__plan_destroy(x.plan);
    ot_model_destroy(x.model);
    ot__free(x.shapes);
    ot__free(x.fed);
    return st;
}
