# SPDX-License-Identifier: Apache-2.0
# KILN_VERSION, taken from include/kiln/version.hpp: the one place where it is written.
set(kiln_version_file ${CMAKE_CURRENT_LIST_DIR}/../include/kiln/version.hpp)
file(STRINGS ${kiln_version_file} kiln_version_lines REGEX "^#define KILN_VERSION_(MAJOR|MINOR|PATCH) [0-9]+$")
set(KILN_VERSION "")
foreach(part IN ITEMS MAJOR MINOR PATCH)
    if(NOT "${kiln_version_lines}" MATCHES "KILN_VERSION_${part} ([0-9]+)")
        message(FATAL_ERROR "${kiln_version_file}: no KILN_VERSION_${part}")
    endif()
    list(APPEND KILN_VERSION ${CMAKE_MATCH_1})
endforeach()
list(JOIN KILN_VERSION "." KILN_VERSION)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${kiln_version_file})
