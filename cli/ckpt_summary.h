// SPDX-License-Identifier: Apache-2.0
// What commands say of a checkpoint directory, and the parameters that are in it.
#ifndef CLI_CKPT_SUMMARY_H
#define CLI_CKPT_SUMMARY_H

#include <stdbool.h>

#include "onnxtrain/checkpoint.h"
#include "onnxtrain/shards.h"

const char *plural(int64_t n); // "s", or "" for 1
void ckpt_time_text(int64_t unix_ns, char text[32]);
ot_status ckpt_look(const ot_shards_reader *reader, ot_shards_info *info);
void ckpt_print_summary(const ot_shards_reader *reader, const ot_shards_info *info);

// A checkpoint directory, one with a file `latest`, or one with safetensors files of another tool.
bool ckpt_is_directory(const char *path);
bool ckpt_is_safetensors(const char *path); // by its name: a file of any maker, or a list of them
// In brief, or as a JSON object; the exit code.
int ckpt_summary(const char *path, bool json);
// All tensors of its item "model". Of another tool's files those of the parameters of the
// checkpoint file `base`, in its types.
ot_status ckpt_load_parameters(const char *path, const char *base, ot_checkpoint **out);
bool ckpt_is_foreign(const char *path); // such files are there, and can be read

#endif
