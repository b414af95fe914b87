# SPDX-License-Identifier: Apache-2.0
# Which Python the package is built for and tested with.

# The first python3 of PATH, or of the system, that has both Python's headers and numpy; the first of PATH, perhaps that
# of a version manager, often lacks one. Leaves the variable alone when there is none.
function(ot_choose_python variable)
    string(CONCAT check "import os, sys, sysconfig, numpy\n"
                        "there = os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h'))\n"
                        "sys.exit(not there or sys.version_info < (3, 10))")
    string(REPLACE ":" ";" folders "$ENV{PATH}")
    foreach(folder IN LISTS folders ITEMS /usr/local/bin /usr/bin)
        if(EXISTS ${folder}/python3)
            execute_process(COMMAND ${folder}/python3 -c ${check} RESULT_VARIABLE is_lacking OUTPUT_QUIET ERROR_QUIET)
            if(NOT is_lacking)
                set(${variable} ${folder}/python3 PARENT_SCOPE)
                return()
            endif()
        endif()
    endforeach()
endfunction()
