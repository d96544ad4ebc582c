# SPDX-License-Identifier: Apache-2.0
# How everything is compiled. Only top-level builds change global settings; a project that takes Kiln in by
# add_subdirectory keeps its own.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# What libkiln.so exports is what the public headers mark with KILN_PUBLIC. The rest of it, and of what it is made of, is
# nobody's business: a program may hold another fmt beside ours.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

if(PROJECT_IS_TOP_LEVEL)
    set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
    set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
    set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
    set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
    if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
        set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
    endif()
    # Sources that are compiled together are linked together. What nobody calls is left out of what is shipped: a worker signs nothing, and without
    # this holds all of libcrypto.
    add_compile_options($<$<CONFIG:Release,MinSizeRel>:-ffunction-sections> $<$<CONFIG:Release,MinSizeRel>:-fdata-sections>)
    add_link_options($<$<CONFIG:Release,MinSizeRel>:LINKER:--gc-sections>)
    find_program(KILN_CCACHE ccache)
    mark_as_advanced(KILN_CCACHE)
    if(KILN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
        # Clones share what one of them has compiled, wherever they lie: paths count from the source folder on. Debug information names the folder of the first.
        set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${KILN_CCACHE})
    endif()
endif()

# What every target of ours is compiled with; never part of what is exported.
add_library(kiln_flags INTERFACE)
target_compile_options(kiln_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual -Wold-style-cast
    -Wcast-align -Wextra-semi -Wformat=2 -Wimplicit-fallthrough -Wvla
    $<$<CXX_COMPILER_ID:GNU>:-Wno-dangling-reference -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds>
    # Where sources are compiled together, a name of one is no shadow over another's.
    $<IF:$<BOOL:${KILN_UNITY}>,$<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>,-Wshadow>
    $<$<BOOL:${KILN_DEVELOPER}>:-Werror>)
if(KILN_SANITIZE)
    # GCC's flow warnings misfire in instrumented code.
    target_compile_options(kiln_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-error>)
    add_compile_options(-fsanitize=${KILN_SANITIZE} -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${KILN_SANITIZE})
    if(KILN_SANITIZE MATCHES "undefined")
        add_compile_options(-fno-sanitize-recover=all)
    endif()
    if(KILN_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        add_compile_options(-Wno-tsan)  # atomic_thread_fence is not modelled
    endif()
endif()
if(KILN_FUZZ)
    # libFuzzer comes with clang; GCC can call back at every block of the code, which our own driver counts.
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
        set(watched fuzzer-no-link,address,undefined)
    else()
        set(watched address,undefined)
        add_compile_options(-fsanitize-coverage=trace-pc -Wno-error)
    endif()
    add_compile_options(-fsanitize=${watched} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${watched})
endif()
