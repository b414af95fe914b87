// SPDX-License-Identifier: Apache-2.0
// A shared library that is none of operators.
extern int nothing_here;
int nothing_here = 1;
