# SPDX-License-Identifier: Apache-2.0
# Install rules and the package: find_package(kiln) gives kiln::kiln and kiln::kiln_static, from an installed tree
# and from the build tree alike.
#
# The library looks for kiln-worker in its own folder, in ../bin and in ../libexec/kiln: both trees fit.
include(CMakePackageConfigHelpers)
if(NOT TARGET kiln_shared)
    return()
endif()

get_property(kiln_asked_for GLOBAL PROPERTY KILN_ASKED_FOR)
set(kiln_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)
set(kiln_build_package_dir ${PROJECT_BINARY_DIR}/lib/cmake/kiln)

install(TARGETS kiln_shared kiln_static kiln_c EXPORT kilnTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kiln DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
if(TARGET kiln_cli)
    # kiln_add_kernels runs it, from both trees.
    set_target_properties(kiln_cli PROPERTIES EXPORT_NAME cli)
    if(TARGET kiln_front)
        install(TARGETS kiln_front RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
        install(TARGETS kiln_cli EXPORT kilnTargets RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/kiln)
    else()
        install(TARGETS kiln_cli EXPORT kilnTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    endif()
endif()
if(TARGET kiln_cli)
    # Man pages and completion: the program says what it knows.
    set(told ${PROJECT_BINARY_DIR}/share)
    set(bash_completion ${told}/bash-completion/completions/kiln)
    set(zsh_completion ${told}/zsh/site-functions/_kiln)
    file(GLOB cli_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/cli/*.md)
    set(man_pages ${told}/man/man1/kiln.1)
    foreach(page IN LISTS cli_pages)
        cmake_path(GET page STEM name)
        list(APPEND man_pages ${told}/man/man1/kiln-${name}.1)
    endforeach()
    file(MAKE_DIRECTORY ${told}/bash-completion/completions ${told}/zsh/site-functions)
    add_custom_command(OUTPUT ${man_pages} ${bash_completion} ${zsh_completion}
        COMMAND kiln_cli manual -o ${told}/man/man1
        COMMAND kiln_cli completion bash > ${bash_completion}
        COMMAND kiln_cli completion zsh > ${zsh_completion}
        DEPENDS kiln_cli COMMENT "Writing man pages and completion")
    add_custom_target(kiln_told ALL DEPENDS ${man_pages} ${bash_completion} ${zsh_completion})
    install(DIRECTORY ${told}/ DESTINATION ${CMAKE_INSTALL_DATADIR})
endif()
if(TARGET kiln_worker)
    install(TARGETS kiln_worker RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/kiln)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/kiln)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

install(EXPORT kilnTargets NAMESPACE kiln:: DESTINATION ${kiln_package_dir})
export(EXPORT kilnTargets NAMESPACE kiln:: FILE ${kiln_build_package_dir}/kilnTargets.cmake)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/kilnConfig.cmake.in
    ${kiln_build_package_dir}/kilnConfig.cmake INSTALL_DESTINATION ${kiln_package_dir})
# Before 1.0 a minor version may break users.
write_basic_package_version_file(${kiln_build_package_dir}/kilnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
file(COPY ${PROJECT_SOURCE_DIR}/cmake/FindKilnZstd.cmake ${PROJECT_SOURCE_DIR}/cmake/KilnAddKernels.cmake
     DESTINATION ${kiln_build_package_dir})
install(FILES
    ${kiln_build_package_dir}/kilnConfig.cmake ${kiln_build_package_dir}/kilnConfigVersion.cmake
    ${PROJECT_SOURCE_DIR}/cmake/FindKilnZstd.cmake ${PROJECT_SOURCE_DIR}/cmake/KilnAddKernels.cmake
    DESTINATION ${kiln_package_dir})

file(RELATIVE_PATH KILN_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" KILN_PC_PREFIX "${KILN_PC_PREFIX}")
list(TRANSFORM kiln_asked_for PREPEND "-Wl,--undefined=" OUTPUT_VARIABLE KILN_PC_UNDEFINED)
list(JOIN KILN_PC_UNDEFINED " " KILN_PC_UNDEFINED)
# Two files: pkg-config has no word for "the archive, though a shared library lies beside it". Where there is no shared library,
# `pkg-config --static kiln` does; it names libraries, not packages, which pkg-config would ask for in any case.
foreach(package IN ITEMS kiln kiln-static)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/${package}.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
