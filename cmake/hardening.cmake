# SPDX-License-Identifier: Apache-2.0
# What makes a fault in native code hard to use: optimised builds without sanitizers, which have checks of their own.
# tests/hardening/check.py looks for it in what was built.

include(CheckCCompilerFlag)
include(CheckLinkerFlag)

set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C) # or position-independent code is linked into a program that is not

# Adds an option where the compiler, or the linker, has it.
function(ot_harden kind option)
    string(MAKE_C_IDENTIFIER "OT_HAS${option}" has)
    if(kind STREQUAL "compile")
        check_c_compiler_flag(${option} ${has})
        set(to COMPILE_OPTIONS)
    else()
        check_linker_flag(C ${option} ${has})
        set(to LINK_OPTIONS)
    endif()
    if(${has})
        set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY ${to} ${option})
    endif()
endfunction()

ot_harden(compile -fstack-protector-strong)
ot_harden(compile -fstack-clash-protection)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    ot_harden(compile -fcf-protection)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    ot_harden(compile -mbranch-protection=standard)
endif()
# Some compilers define it themselves, to as much or more.
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY COMPILE_OPTIONS
             $<$<CONFIG:Release>:-U_FORTIFY_SOURCE> $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2>)
ot_harden(link -Wl,-z,relro)
ot_harden(link -Wl,-z,now)
ot_harden(link -Wl,-z,noexecstack)
