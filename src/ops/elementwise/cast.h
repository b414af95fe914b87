// SPDX-License-Identifier: Apache-2.0
// Converting element types: what Cast and CastLike do with strings (cast_strings.c).
#ifndef OT_OPS_CAST_H
#define OT_OPS_CAST_H

#include "op/op.h"

// Fails where numbers of one type cannot become those of another.
ot_status ot__cast_check(ot_prep *p, ot_dtype to, ot_dtype from);
ot_status ot__cast_run_strings(const ot_run *r); // strings to strings
ot_status ot__cast_prepare_to_numbers(ot_prep *p);
ot_status ot__cast_run_to_numbers(const ot_run *r);
ot_status ot__cast_prepare_to_strings(ot_prep *p);
ot_status ot__cast_run_to_strings(const ot_run *r);

#endif
