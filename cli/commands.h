// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "options.h"

extern const command command_info, command_check, command_artifacts, command_train, command_eval,
    command_export, command_grad, command_aggregate, command_ckpt, command_ops;

#endif
