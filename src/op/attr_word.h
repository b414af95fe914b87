// SPDX-License-Identifier: Apache-2.0
// String attributes that are one of a few words.
#ifndef OT_OP_ATTR_WORD_H
#define OT_OP_ATTR_WORD_H

#include "op/op.h"

// The place of the attribute's word among `words`, which end with NULL; -1 with the failure in `c`,
// which is NULL where inference has seen it.
int ot__attr_word(ot_infer *c, const ot_node *node, const char *attr, const char *const *words);

#endif
