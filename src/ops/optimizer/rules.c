// SPDX-License-Identifier: Apache-2.0
// The optimizers: a record each over the one update of update.c. Their formulas are in
// kernels/optimizer/ref_optimizer.tmpl.h, their hyper-parameters are the attributes with bounds.
// Those of ai.onnxtrain have one number for all parameters or one for each group of them.
#include "ops/optimizer/optimizer.h"

#include <math.h>

// ---- attributes ----

#define NUMBERS(name_, otherwise, low_, high_)                                                     \
    {                                                                                              \
        .name = name_, .kind = OT_ATTRIBUTE_FLOATS, .flags = OT_ATTR_HAS_DEFAULT,                  \
        .f = (otherwise), .low = (low_), .high = (high_)                                           \
    }
#define FLAGS(name_, otherwise)                                                                    \
    {                                                                                              \
        .name = name_, .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_HAS_DEFAULT, .i = (otherwise),  \
        .low = 0, .high = 2                                                                        \
    }
// What all of them have: 0 clips nothing, max_norm is clip_grad_norm_'s.
#define RULE_ATTRS(max_norm_clip)                                                                  \
    NUMBERS("max_norm_clip", max_norm_clip, 0, 1e30),                                              \
        {.name = "max_norm", .kind = OT_ATTRIBUTE_FLOAT},                                          \
        {.name = "lr_factor", .kind = OT_ATTRIBUTE_FLOATS},                                        \
        {.name = "group", .kind = OT_ATTRIBUTE_INTS},                                              \
    {                                                                                              \
        .name = "names", .kind = OT_ATTRIBUTE_STRINGS                                              \
    }

static const ot__rule_ports own_ports = {0, 1, 2, 3, {4, 5}, 6, 7, 8};

#define RULE(symbol, name_, attributes, rule_, more_flags)                                         \
    const ot_op_def ot__op_##symbol[] = {                                                          \
        {.domain = "ai.onnxtrain",                                                                 \
         .name = name_,                                                                            \
         .since = 1,                                                                               \
         .inputs = ot__rule_in,                                                                    \
         .outputs = ot__rule_out,                                                                  \
         .attrs = attributes,                                                                      \
         .types = "T: f32 f64",                                                                    \
         .infer = ot__rule_infer,                                                                  \
         .kernels = ot__rule_kernels,                                                              \
         .rule = &(rule_),                                                                         \
         .flags = OT_OP_NO_GRAD | OT_OP_ANY_LAYOUT | OT_OP_TENSORWISE | (more_flags)},             \
        {0}};

// ---- Adam ----

static const ot_attr_spec adam_attrs[] = {
    NUMBERS("alpha", 0.9f, 0, 1),
    NUMBERS("beta", 0.999f, 0, 1),
    NUMBERS("epsilon", 1e-8f, 0, 1e30),
    NUMBERS("lambda", 0, 0, 1e30),
    FLAGS("do_bias_correction", 1),
    FLAGS("weight_decay_mode", 0),
    RULE_ATTRS(1),
    {0},
};
static const ot_update_rule adam = {.state = "adam",
                                    .n_slots = 2,
                                    .loop = offsetof(ot__updates, adam),
                                    .ports = &own_ports,
                                    .correction = "do_bias_correction",
                                    .needs_step = true};
RULE(adam_optimizer, "AdamOptimizer", adam_attrs, adam, 0)

// ---- LAMB: one ratio and one correction for all parameters ----

enum { RATIO_MIN = 4, RATIO_MAX }; // of lamb_attrs

// Of the norms of a tensor and of its direction.
static double lamb_ratio(const ot__update_row *row, double of_w, double of_d)
{
    const double low = (double)row->hyper[RATIO_MIN], high = (double)row->hyper[RATIO_MAX];

    return of_w != 0 && of_d != 0 ? fmax(low, fmin(high, sqrt(of_w / of_d))) : 1;
}

static const ot_attr_spec lamb_attrs[] = {
    NUMBERS("alpha", 0.9f, 0, 1),
    NUMBERS("beta", 0.999f, 0, 1),
    NUMBERS("epsilon", 1e-6f, 0, 1e30),
    NUMBERS("lambda", 0, 0, 1e30),
    OT__FLOAT_IN("ratio_min", -INFINITY, -INFINITY, INFINITY),
    OT__FLOAT_IN("ratio_max", INFINITY, -INFINITY, INFINITY),
    OT__FLAG_ATTR("do_bias_correction", 0),
    RULE_ATTRS(1),
    {0},
};
static const ot_update_rule lamb = {.state = "adam",
                                    .n_slots = 2,
                                    .loop = offsetof(ot__updates, lamb),
                                    .norms = offsetof(ot__updates, lamb_norms),
                                    .ratio = lamb_ratio,
                                    .ports = &own_ports,
                                    .correction = "do_bias_correction",
                                    .needs_step = true,
                                    .has_one_counter = true};
RULE(lamb_optimizer, "LambOptimizer", lamb_attrs, lamb, OT_OP_ORDERED)

// ---- SGD ----

static const ot_attr_spec sgd_attrs[] = {
    NUMBERS("momentum", 0, 0, 1e30),
    NUMBERS("weight_decay", 0, 0, 1e30),
    FLAGS("nesterov", 0),
    RULE_ATTRS(0),
    {0},
};
static const ot_update_rule sgd = {.state = "momentum",
                                   .n_slots = 1,
                                   .last_slot_for = "momentum",
                                   .loop = offsetof(ot__updates, sgd),
                                   .ports = &own_ports};
RULE(sgd_optimizer, "SGDOptimizer", sgd_attrs, sgd, 0)

// ---- Adagrad ----

static const ot_attr_spec adagrad_attrs[] = {
    NUMBERS("lr_decay", 0, 0, 1e30),
    NUMBERS("weight_decay", 0, 0, 1e30),
    NUMBERS("epsilon", 1e-10f, 0, 1e30),
    RULE_ATTRS(0),
    {0},
};
static const ot_update_rule adagrad = {.state = "adagrad",
                                       .n_slots = 1,
                                       .loop = offsetof(ot__updates, adagrad),
                                       .ports = &own_ports,
                                       .needs_step = true};
RULE(adagrad_optimizer, "AdagradOptimizer", adagrad_attrs, adagrad, 0)

// ---- RMSprop ----

static const ot_attr_spec rmsprop_attrs[] = {
    NUMBERS("alpha", 0.99f, 0, 1),
    NUMBERS("epsilon", 1e-8f, 0, 1e30),
    NUMBERS("weight_decay", 0, 0, 1e30),
    NUMBERS("momentum", 0, 0, 1e30),
    RULE_ATTRS(0),
    {0},
};
static const ot_update_rule rmsprop = {.state = "rmsprop",
                                       .n_slots = 2,
                                       .last_slot_for = "momentum",
                                       .loop = offsetof(ot__updates, rmsprop),
                                       .ports = &own_ports};
RULE(rmsprop_optimizer, "RMSPropOptimizer", rmsprop_attrs, rmsprop, 0)

// ---- Lion ----

static const ot_attr_spec lion_attrs[] = {
    NUMBERS("beta1", 0.9f, 0, 1),
    NUMBERS("beta2", 0.99f, 0, 1),
    NUMBERS("weight_decay", 0, 0, 1e30),
    RULE_ATTRS(0),
    {0},
};
static const ot_update_rule lion = {
    .state = "lion", .n_slots = 1, .loop = offsetof(ot__updates, lion), .ports = &own_ports};
RULE(lion_optimizer, "LionOptimizer", lion_attrs, lion, 0)
