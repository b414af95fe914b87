// SGD with momentum, Nesterov's form and weight decay, as PyTorch's SGD with dampening 0.
#include "ops/optimizer.h"

enum { LR, WEIGHTS, GRADIENTS, MOMENTUMS, SIGNAL };
enum { MOMENTUM, DECAY, NESTEROV }; // ot__pieces.numbers

static ot_status sgd_prepare(ot_prep *p)
{
    ot__pieces *pieces = ot__pieces_make(p, WEIGHTS, 2);

    if (!pieces)
        return p->status;
    pieces->numbers[MOMENTUM] = (double)ot_attr_float(ot_prep_node(p), "momentum");
    pieces->numbers[DECAY] = (double)ot_attr_float(ot_prep_node(p), "weight_decay");
    pieces->numbers[NESTEROV] = (double)ot_attr_int(ot_prep_node(p), "nesterov");
    return OT_OK;
}

// `update` serves f32; NULL: the reference.
static ot_status sgd_update(const ot_run *r, void (*update)(float *, float *, const float *,
                                                            int64_t, const ot__sgd *))
{
    const ot__pieces *pieces = r->state;
    const ot__sgd p = {.lr = ot__scalar_f64(r->in[r->in_first[LR]]),
                       .momentum = pieces->numbers[MOMENTUM],
                       .weight_decay = pieces->numbers[DECAY],
                       .nesterov = pieces->numbers[NESTEROV] != 0};
    const bool is_f32 = pieces->n_pieces > 0 && r->in[r->in_first[WEIGHTS]]->dtype == OT_F32;

    if (ot__update_is_off(r, SIGNAL)) {
        ot__optimizer_set_flag(r, false);
        return OT_OK;
    }
#pragma omp parallel for schedule(static) num_threads(r->n_threads)
    for (int64_t i = 0; i < pieces->n_pieces; i++) {
        const ot__piece_of *piece = &pieces->piece[i];
        void *w = ot__piece_data(r, WEIGHTS, piece), *g = ot__piece_data(r, GRADIENTS, piece);
        void *buffer = ot__piece_data(r, MOMENTUMS, piece);

        if (update)
            update(w, buffer, g, piece->count, &p);
        else if (is_f32)
            ot__ref_sgd_f32(w, buffer, g, piece->count, &p);
        else
            ot__ref_sgd_f64(w, buffer, g, piece->count, &p);
    }
    ot__optimizer_set_flag(r, true);
    return OT_OK;
}

static ot_status sgd_run_ref(const ot_run *r)
{
    return sgd_update(r, NULL);
}

static ot_status sgd_run_simd(const ot_run *r)
{
    return sgd_update(r, ot__updates_best()->sgd);
}

static bool sgd_can_simd(const ot_prep *p)
{
    return ot__weights_are_f32(p, WEIGHTS);
}

static const ot_port sgd_in[] = {
    {"lr", "f32", 0},
    {"weights", "T", OT_PORT_SEQUENCE | OT_PORT_STATE},
    {"gradients", "T", OT_PORT_SEQUENCE},
    {"momentums", "T", OT_PORT_SEQUENCE | OT_PORT_STATE},
    {"update_signal", "bool", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port sgd_out[] = {{"update_completed", "bool", 0}, {0}};
static const ot_attr_spec sgd_attrs[] = {
    {.name = "momentum", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 0.9f},
    {.name = "weight_decay", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT},
    {.name = "nesterov", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT},
    {0},
};
static const ot_kernel sgd_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = sgd_can_simd,
     .prepare = sgd_prepare,
     .run = sgd_run_simd},
    {.name = "ref", .flags = OT_KERNEL_THREAD_EXACT, .prepare = sgd_prepare, .run = sgd_run_ref},
    {0},
};
const ot_op_def ot__op_sgd_momentum_optimizer[] = {
    {.domain = "ai.onnxtrain",
     .name = "SGDMomentumOptimizer",
     .since = 1,
     .inputs = sgd_in,
     .outputs = sgd_out,
     .attrs = sgd_attrs,
     .types = "T: f32 f64",
     .infer = ot__optimizer_infer,
     .kernels = sgd_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_ANY_LAYOUT},
    {0},
};
