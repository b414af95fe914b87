// SPDX-License-Identifier: Apache-2.0
// Sequences cannot be stated as cases: tests/unit/ops/test_optimizers.c holds the optimizers
// against the formulas.
#include "ops/harness.h"

OT_OP_TESTED_BY_UNIT("com.microsoft.AdamWOptimizer", adamw_tested)
OT_OP_TESTED_BY_UNIT("com.microsoft.SGDOptimizerV2", sgd_tested)
OT_OP_TESTED_BY_UNIT("com.microsoft.InplaceClipGradNorm", clip_tested)
OT_OP_TESTED_BY_UNIT("ai.onnxtrain.AdagradOptimizer", adagrad_tested)
OT_OP_TESTED_BY_UNIT("ai.onnxtrain.AdamOptimizer", adam_tested)
OT_OP_TESTED_BY_UNIT("ai.onnxtrain.GradientNorm", norm_tested)
OT_OP_TESTED_BY_UNIT("ai.onnxtrain.LambOptimizer", lamb_tested)
OT_OP_TESTED_BY_UNIT("ai.onnxtrain.LionOptimizer", lion_tested)
OT_OP_TESTED_BY_UNIT("ai.onnxtrain.ParameterAverage", average_tested)
OT_OP_TESTED_BY_UNIT("ai.onnxtrain.RMSPropOptimizer", rmsprop_tested)
OT_OP_TESTED_BY_UNIT("ai.onnxtrain.SGDMomentumOptimizer", momentum_tested)
OT_OP_TESTED_BY_UNIT("ai.onnxtrain.SGDOptimizer", sgd_general_tested)
