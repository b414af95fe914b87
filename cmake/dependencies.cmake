# SPDX-License-Identifier: Apache-2.0
# Libraries the project builds on, each as one imported target.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
# The oldest versions that this is built and tested with: those of Debian 12.
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c>=1.4.1)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib>=1.2.13)
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip>=1.7.3)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson>=2.14)
find_program(PROTOC_C protoc-c REQUIRED)
mark_as_advanced(PROTOC_C)
if(OT_BUILD_PYTHON STREQUAL "AUTO")
    find_package(Python3 3.10 QUIET COMPONENTS Interpreter Development.Module)
    set(OT_BUILD_PYTHON ${Python3_FOUND})
    if(NOT OT_BUILD_PYTHON)
        message(STATUS "The Python package is left out: there is no Python 3.10 with its headers (python3-dev)")
    endif()
endif()
if(OT_BUILD_TESTS)
    pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
    find_program(OT_CXX NAMES g++ clang++ c++ REQUIRED) # the headers test; nothing else is C++
    mark_as_advanced(OT_CXX)
    find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
endif()

if(OT_WITH_OPENMP)
    find_package(OpenMP REQUIRED COMPONENTS C)
endif()

# oneDNN's own CMake package asks for OpenCL's headers, which nothing here needs: the header and the library are enough.
if(OT_WITH_ONEDNN)
    find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h)
    find_library(DNNL_LIBRARY dnnl)
    mark_as_advanced(DNNL_INCLUDE_DIR DNNL_LIBRARY)
    if(NOT DNNL_INCLUDE_DIR OR NOT DNNL_LIBRARY)
        message(FATAL_ERROR "oneDNN was not found: install libdnnl-dev, or configure with -DOT_WITH_ONEDNN=OFF")
    endif()
    set(DNNL_MINIMUM 2.6)
    file(STRINGS ${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h dnnl_version REGEX "^#define DNNL_VERSION_(MAJOR|MINOR) ")
    string(REGEX REPLACE ".*MAJOR +([0-9]+).*MINOR +([0-9]+).*" "\\1.\\2" dnnl_version "${dnnl_version}")
    if(dnnl_version VERSION_LESS DNNL_MINIMUM)
        message(FATAL_ERROR "oneDNN ${dnnl_version} is too old: at least ${DNNL_MINIMUM} is needed, or -DOT_WITH_ONEDNN=OFF")
    endif()
    add_library(DNNL::dnnl UNKNOWN IMPORTED)
    set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
                                                INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
endif()
