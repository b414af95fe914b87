// Face of `train`: the loop that the command and the bindings share.
#ifndef OT_TRAIN_TRAIN_H
#define OT_TRAIN_TRAIN_H

#include "artifacts/artifacts.h"
#include "data/data.h"
#include "onnxtrain/train.h"
#include "session/session.h"

#define OT_PROPERTY_EPOCH "onnxtrain.epoch" // epochs done
#define OT_PROPERTY_BATCH "onnxtrain.batch" // batches done of the present epoch

#endif
