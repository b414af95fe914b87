// SPDX-License-Identifier: Apache-2.0
// Putting a model right before training, and what is said about it.
#ifndef OT_ARTIFACTS_PREPARE_H
#define OT_ARTIFACTS_PREPARE_H

#include "graph/graph.h"
#include "onnxtrain/prepare.h"

// findings.c
ot_status ot__findings_create(ot_findings **out);
// Both strings are copied; NULL: out of memory. `changes`: 1 when the model was changed.
ot_status ot__findings_add(ot_findings *findings, ot_finding_kind kind, int changes,
                           const char *name, const char *text);

// prepare_sharing.c: a step, which changes the model and adds what it found.
ot_status ot__prepare_sharing(ot_model *model, const ot_prepare_options *options,
                              ot_findings *findings);

#endif
