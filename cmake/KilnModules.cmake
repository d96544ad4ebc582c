# SPDX-License-Identifier: Apache-2.0
# One target per module, made from whatever .cpp files its folder holds: adding a file needs no edit here.

# kiln_together(<target> <sources>): with KILN_UNITY, compiles that many of its sources at a time. Most of what a source of ours
# costs is reading what it includes. Builds that check and builds for packagers compile each alone, so that an include that is
# missing is noticed.
function(kiln_together target sources)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ${KILN_UNITY} UNITY_BUILD_BATCH_SIZE ${sources})
endfunction()

# kiln_module(<name> [APART] [DEPENDS <module>...] [LINKS <library>...] [ROOT <folder>] [UNSHIPPED <objects>])
#
# kiln_<name> is a static library of src/<name>/*.cpp that links exactly the modules named after DEPENDS, so a
# unit test of one module fails to link on an arrow upward. Its objects also go into libkiln, unless it stands APART: for
# tools only. LINKS are what its users must link. Device text in kernels/<name>/ is embedded, as "embedded/<name>_kernels.hpp". A folder
# without sources yet makes a target that only carries the arrows. ROOT and UNSHIPPED are for packs: see KilnPacks.cmake.
function(kiln_module name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "APART" "ROOT;UNSHIPPED" "DEPENDS;LINKS")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "kiln_module(${name}): unknown ${arg_UNPARSED_ARGUMENTS}")
    endif()
    set(root ${PROJECT_SOURCE_DIR})
    set(includes ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    if(arg_ROOT AND NOT arg_ROOT STREQUAL root)
        set(root ${arg_ROOT})
        list(APPEND includes ${root}/include ${root}/src)
        set(arg_APART ON)
    endif()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${root}/src/${name}/*.cpp)
    list(FILTER sources EXCLUDE REGEX "/src/${name}/tool/")
    set(needs ${arg_LINKS})
    foreach(other IN LISTS arg_DEPENDS)
        if(NOT TARGET kiln_${other})
            message(FATAL_ERROR "kiln_module(${name}): module '${other}' is not declared before it")
        endif()
        list(APPEND needs kiln_${other})
    endforeach()

    if(NOT sources)
        message(STATUS "Module ${name}: no sources yet")
        add_library(kiln_${name} INTERFACE)
        target_include_directories(kiln_${name} INTERFACE ${includes})
        target_link_libraries(kiln_${name} INTERFACE ${needs})
    else()
        add_library(kiln_${name}_objects OBJECT ${sources})
        target_include_directories(kiln_${name}_objects
            PUBLIC ${includes})
        target_link_libraries(kiln_${name}_objects PRIVATE kiln_flags ${needs})
        kiln_together(kiln_${name}_objects 8)

        file(GLOB kernels CONFIGURE_DEPENDS ${root}/kernels/${name}/*.cu ${root}/kernels/${name}/*.cuh)
        if(kernels)
            kiln_embed(kiln_${name}_objects NAME ${name}_kernels FILES ${kernels})
        endif()

        set(contents $<TARGET_OBJECTS:kiln_${name}_objects>)
        if(arg_UNSHIPPED)
            list(APPEND contents $<TARGET_OBJECTS:${arg_UNSHIPPED}>)
            target_include_directories(kiln_${name}_objects PRIVATE $<TARGET_PROPERTY:${arg_UNSHIPPED},INCLUDE_DIRECTORIES>)
        endif()
        add_library(kiln_${name} STATIC ${contents})
        target_include_directories(kiln_${name} INTERFACE ${includes})
        target_link_libraries(kiln_${name} PUBLIC ${needs})
        set_target_properties(kiln_${name} PROPERTIES
            LINKER_LANGUAGE CXX ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/modules)
        if(NOT arg_APART)
            set_property(GLOBAL APPEND PROPERTY KILN_OBJECTS $<TARGET_OBJECTS:kiln_${name}_objects>)
        endif()
    endif()
    set_property(GLOBAL APPEND PROPERTY KILN_MODULES ${name})
endfunction()

# kiln_program(<target> NAME <file name> FOLDER <folder>... LINKS <library>...): an executable of all the .cpp files
# in the folders; nothing where there are none yet. Without NAME only their objects, for something else to link.
function(kiln_program target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME" "FOLDER;LINKS")
    list(TRANSFORM arg_FOLDER APPEND /*.cpp OUTPUT_VARIABLE patterns)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns})
    if(NOT sources)
        message(STATUS "Program ${arg_NAME}: no sources yet")
        return()
    endif()
    if(arg_NAME)
        add_executable(${target} ${sources})
        set_target_properties(${target} PROPERTIES OUTPUT_NAME ${arg_NAME})
    else()
        add_library(${target} OBJECT ${sources})
    endif()
    target_include_directories(${target} PRIVATE ${arg_FOLDER} ${PROJECT_SOURCE_DIR}/tools ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${target} PRIVATE kiln_flags ${arg_LINKS})
endfunction()
