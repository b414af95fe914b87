# SPDX-License-Identifier: Apache-2.0
# Language level, warnings, sanitizers and optimisation for everything in this tree.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # POSIX calls are declared without feature macros
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()

find_program(OT_CCACHE ccache)
mark_as_advanced(OT_CCACHE)
if(OT_CCACHE AND NOT DEFINED CMAKE_C_COMPILER_LAUNCHER)
    set(CMAKE_C_COMPILER_LAUNCHER ${OT_CCACHE})
endif()

# -O1: with the sanitizers, unoptimised kernels make the tests several times slower. -g1: lines, which their reports need; all of -g takes
# 1.3 times as long. A debugger shows variables with -DCMAKE_C_FLAGS_DEBUG="-O0 -g".
set(CMAKE_C_FLAGS_DEBUG "-O1 -g1 -fno-omit-frame-pointer")
set(CMAKE_C_FLAGS_RELEASE "-O3 -g1 -DNDEBUG")

# Results are the same from compiler to compiler as far as C allows: no contraction unless a kernel asks for it, and no
# -ffast-math anywhere. errno of math functions is never read.
add_compile_options(-fno-math-errno -ffp-contract=off)

add_library(ot_warnings INTERFACE)
target_compile_options(ot_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wvla
                                             $<$<BOOL:${OT_WERROR}>:-Werror>
                                             $<$<NOT:$<BOOL:${OT_WITH_OPENMP}>>:-Wno-unknown-pragmas>)

# Without the thread pool the compilers are told that pragmas for it are known, and ignore them in silence.
if(NOT OT_WITH_OPENMP)
    add_compile_options(-fopenmp-simd)
endif()
# clang reports every marked loop that it does not vectorise; with the sanitizers it vectorises none.
if(CMAKE_C_COMPILER_ID MATCHES Clang)
    target_compile_options(ot_warnings INTERFACE -Wno-pass-failed)
endif()

if(OT_SANITIZE STREQUAL "THREAD")
    add_compile_options(-fsanitize=thread)
    add_link_options(-fsanitize=thread)
elseif(OT_SANITIZE)
    # Undefined behaviour ends in a trap, which the sanitizer of addresses reports with its place (handle_sigill=1): texts and records of
    # all places are most of a program, and make its start slow. So do addresses that are known only then.
    add_compile_options(-fsanitize=address,undefined -fsanitize-undefined-trap-on-error)
    add_link_options(-fsanitize=address,undefined $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
endif()
if(OT_BUILD_FUZZERS)
    if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
        message(FATAL_ERROR "OT_BUILD_FUZZERS needs clang, the compiler is ${CMAKE_C_COMPILER_ID}")
    endif()
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()
