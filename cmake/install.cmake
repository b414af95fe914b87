# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where: libraries, headers, the command, and how others find them.

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/onnxtrain)

install(TARGETS onnxtrain EXPORT onnxtrain LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS onnxtrain_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/onnxtrain DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET onnxtrain_command)
    install(TARGETS onnxtrain_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

install(EXPORT onnxtrain NAMESPACE onnxtrain:: FILE onnxtrain-config.cmake DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/onnxtrain-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/onnxtrain-config-version.cmake DESTINATION ${package_dir})

# The prefix is relative to the file itself, so that an installed tree may be moved.
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
# For who links libonnxtrain.a: what it calls itself. No Requires.private: those modules would add what their own static
# libraries need, which is not installed.
set(private_libs "-lprotobuf-c -lzip -lz -ljansson -ldl -lm -pthread")
if(OT_WITH_OPENMP)
    string(APPEND private_libs " ${OpenMP_C_FLAGS}")
endif()
if(OT_WITH_ONEDNN)
    string(APPEND private_libs " -ldnnl")
endif()
configure_file(cmake/onnxtrain.pc.in ${PROJECT_BINARY_DIR}/onnxtrain.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/onnxtrain.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
