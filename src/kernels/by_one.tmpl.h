// SPDX-License-Identifier: Apache-2.0
// Includes TEMPLATE for one element type T: with FN(name) as name_SUFFIX. For the files that go
// through several types, which define T and SUFFIX anew for each; both are undefined behind it.

#ifndef OT__KERNELS_BY_ONE
#define OT__KERNELS_BY_ONE
#define OT__JOIN(name, suffix) name##_##suffix
#define OT__NAME(name, suffix) OT__JOIN(name, suffix)
#endif

#define FN(name) OT__NAME(name, SUFFIX)
#include TEMPLATE
#undef FN
#undef T
#undef SUFFIX
