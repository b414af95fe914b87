// SPDX-License-Identifier: Apache-2.0
#include "op_libraries.h"

#include <stdlib.h>

#include "onnxtrain/operators.h"
#include "report.h"

int load_op_libraries(const text_list *files)
{
    for (int i = 0; i < files->count; i++)
        if (ot_op_library_load(files->items[i]) != OT_OK)
            return report_error();
    return EXIT_SUCCESS;
}
