// SPDX-License-Identifier: Apache-2.0
// The configuration of a run: what OT_SET, the file of --config, --set and the other options say
// together.
#ifndef CLI_TRAIN_CONFIG_H
#define CLI_TRAIN_CONFIG_H

#include "onnxtrain/config.h"
#include "train.h"

// Whether a file or the environment says something: then the command line alone is not enough to
// tell what is wrong.
bool train_config_is_elsewhere(const train_values *values);
// What `--set` and the other options say; `model` NULL: none. EXIT_USAGE after a message.
int train_config_take_flags(const train_values *values, const char *model);
// What OT_SET and the file say, and then checks it all. The values get what stands in "train".
// EXIT_FAILED after a message.
int train_config_read(const train_values *values);
const ot_config *train_config(void);     // the one of this process; owned here
const char *train_config_model(void);    // NULL: none is given
bool train_config_names_optimizer(void); // or says more of it than the learning rate
int train_config_print(void);            // to standard output; the exit code
void train_config_deinit(void);

#endif
