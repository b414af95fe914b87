// SPDX-License-Identifier: Apache-2.0
// Lines made of others by a map of sums.
#include "kernels/kernels.h"

enum { MAP_PIECE = 64 }; // elements beside each other at once

#define TEMPLATE "kernels/resize/ref_line_map.tmpl.h"
#include "kernels/by_float.tmpl.h"
