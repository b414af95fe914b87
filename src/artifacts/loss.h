// SPDX-License-Identifier: Apache-2.0
// The losses among themselves.
#ifndef OT_ARTIFACTS_LOSS_H
#define OT_ARTIFACTS_LOSS_H

#include "artifacts/block.h"

// loss_custom.c: the nodes of another model; its inputs bind to values of the graph by name.
ot_status ot__loss_custom(ot_block *block, const ot_loss_options *options, ot_value **loss);

#endif
