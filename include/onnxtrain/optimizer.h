// SPDX-License-Identifier: Apache-2.0
// Which optimizers there are, by the names of their operators, and how one is asked for.
#ifndef ONNXTRAIN_OPTIMIZER_H
#define ONNXTRAIN_OPTIMIZER_H

#include "onnxtrain/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A hyper-parameter and its value: {"alpha", 0.9}. Whole ones, such as modes, are numbers too. */
typedef struct ot_hyper {
    const char *name;
    double value;
} ot_hyper;

/** Parameters that have hyper-parameters of their own. */
typedef struct ot_param_group {
    size_t size;               ///< sizeof(ot_param_group)
    const char *const *params; ///< names, or patterns with * and ?
    int n_params;
    const ot_hyper *hyper; ///< what is not named here is as in the optimizer's
    int n_hyper;
    double lr_factor; ///< of the learning rate (1)
} ot_param_group;
#define OT_PARAM_GROUP_INIT                                                                        \
    {                                                                                              \
        sizeof(ot_param_group), NULL, 0, NULL, 0, 1.0                                              \
    }

typedef struct ot_optimizer_options {
    size_t size;      ///< sizeof(ot_optimizer_options)
    const char *name; ///< of the operator, as ot_optimizer_name() lists them; NULL: no optimizer
    double lr; ///< where a trainer begins (0.001); optimizer models take the rate as an input
    const ot_hyper *hyper; ///< what is not named has the fallback of ot_optimizer_hyper()
    int n_hyper;
    const ot_param_group *groups; ///< all of one size; the last group that names a parameter is its
                                  ///< group. A name of no initializer is an error
    int n_groups;
    double max_norm;      ///< clip the global gradient norm to this, as PyTorch's clip_grad_norm_;
                          ///< 0: no clipping
    double average_decay; ///< of a moving average of the parameters; 0: none
} ot_optimizer_options;
#define OT_OPTIMIZER_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(ot_optimizer_options), "AdamWOptimizer", 0.001, NULL, 0, NULL, 0, 0.0, 0.0          \
    }

OT_API int ot_optimizer_count(void);
/** From 0; NULL out of range. Static. */
OT_API const char *ot_optimizer_name(int index);

/** What a hyper-parameter may be: low <= value < high, or without an upper bound where `high` is
 * infinite. */
typedef struct ot_hyper_info {
    size_t size;      ///< sizeof(ot_hyper_info)
    const char *name; ///< static
    double fallback;  ///< its value where none is given
    double low, high;
    int is_whole;
} ot_hyper_info;
#define OT_HYPER_INFO_INIT                                                                         \
    {                                                                                              \
        sizeof(ot_hyper_info), NULL, 0.0, 0.0, 0.0, 0                                              \
    }

/**
 * The hyper-parameters of the optimizer `name`, from 0.
 *
 * @param out  its size is set; filled in
 * @return OT_ERR_NOT_FOUND behind the last, and of an unknown name
 */
OT_API ot_status ot_optimizer_hyper(const char *name, int index, ot_hyper_info *out);

#ifdef __cplusplus
}
#endif
#endif
