// SPDX-License-Identifier: Apache-2.0
// Operators of a user's own.
#ifndef CLI_OP_LIBRARIES_H
#define CLI_OP_LIBRARIES_H

#include "options.h"

// A row of a command's table: `at` is the offset of a text_list, which load_op_libraries() takes.
#define OP_LIBRARY_OPTION(at)                                                                      \
    {                                                                                              \
        "op-library", OPTION_LIST, at, "FILE",                                                     \
            "shared library of operators that the model has, compiled with onnxtrain/op.h; its "   \
            "code runs in this process",                                                           \
            NULL, NULL, 0                                                                          \
    }

// Before a model is read; the exit code.
int load_op_libraries(const text_list *files);

#endif
