// SPDX-License-Identifier: Apache-2.0
// Face of `session`: steps over artifacts.
#ifndef OT_SESSION_SESSION_H
#define OT_SESSION_SESSION_H

#include "ckpt/ckpt.h"
#include "exec/exec.h"
#include "graph/graph.h"
#include "onnx/onnx.h"
#include "onnxtrain/session.h"
#include "passes/passes.h"

// Properties that carry what the checkpoint format has no place for.
#define OT_PROPERTY_SEED "onnxtrain.seed"
#define OT_PROPERTY_COUNTER "onnxtrain.counter" // train steps done: key of the random generator
#define OT_PROPERTY_LEARNING_RATE "onnxtrain.learning_rate" // string: exact
#define OT_PROPERTY_SCHEDULE "onnxtrain.schedule"           // string
#define OT_PROPERTY_OPTIMIZER "onnxtrain.optimizer" // string: operator whose moments these are

#endif
