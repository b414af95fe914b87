// SPDX-License-Identifier: Apache-2.0
// Train ONNX models. Includes every public header.
#ifndef ONNXTRAIN_H
#define ONNXTRAIN_H

#include "onnxtrain/artifacts.h"
#include "onnxtrain/base.h"
#include "onnxtrain/block.h"
#include "onnxtrain/checkpoint.h"
#include "onnxtrain/comm.h"
#include "onnxtrain/config.h"
#include "onnxtrain/data.h"
#include "onnxtrain/dict.h"
#include "onnxtrain/gradients.h"
#include "onnxtrain/loss_scaler.h"
#include "onnxtrain/model.h"
#include "onnxtrain/op.h"
#include "onnxtrain/operators.h"
#include "onnxtrain/optimizer.h"
#include "onnxtrain/parallel.h"
#include "onnxtrain/prepare.h"
#include "onnxtrain/record.h"
#include "onnxtrain/resume.h"
#include "onnxtrain/runner.h"
#include "onnxtrain/schedule.h"
#include "onnxtrain/session.h"
#include "onnxtrain/sharding.h"
#include "onnxtrain/shards.h"
#include "onnxtrain/state_dict.h"
#include "onnxtrain/tensor.h"
#include "onnxtrain/train.h"
#include "onnxtrain/trainer.h"
#include "onnxtrain/trainer_options.h"
#include "onnxtrain/trainer_shards.h"

#endif
