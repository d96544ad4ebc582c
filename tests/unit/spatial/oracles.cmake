# SPDX-License-Identifier: Apache-2.0
# What the spatial pack is compared with where it is there; tests that need it say so and are skipped elsewhere.
set(KILN_SPATIAL_DATA "$ENV{KILN_SPATIAL_DATA}" CACHE PATH "Folder with ne110.xz, county2010.xz and county2016.xz, for tests")
find_library(KILN_GEOS_LIBRARY geos_c)
find_path(KILN_GEOS_INCLUDE geos_c.h)
mark_as_advanced(KILN_GEOS_LIBRARY KILN_GEOS_INCLUDE)

# The tests include device text themselves.
set(compiled kiln_unit_spatial_objects)
target_compile_options(${compiled} PRIVATE -ffp-contract=off -O2)
set_target_properties(${compiled} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)  # they are made with -O1
if(KILN_GEOS_LIBRARY AND KILN_GEOS_INCLUDE)
    target_compile_definitions(${compiled} PRIVATE KILN_TEST_GEOS)
    target_include_directories(${compiled} SYSTEM PRIVATE ${KILN_GEOS_INCLUDE})
    target_link_libraries(kiln_unit_spatial PRIVATE ${KILN_GEOS_LIBRARY})
endif()

foreach(layer IN ITEMS ne110 county2010 county2016)
    if(EXISTS ${KILN_SPATIAL_DATA}/${layer}.xz)
        set(unpacked ${CMAKE_BINARY_DIR}/tests/spatial/${layer}.layer)
        add_custom_command(OUTPUT ${unpacked}
            COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/unpack_layer.py ${KILN_SPATIAL_DATA}/${layer}.xz ${unpacked}
            DEPENDS ${CMAKE_CURRENT_LIST_DIR}/unpack_layer.py
            COMMENT "Unpacking ${layer}" VERBATIM)
        target_sources(kiln_unit_spatial PRIVATE ${unpacked})
    endif()
endforeach()
target_compile_definitions(${compiled} PRIVATE KILN_TEST_LAYERS="${CMAKE_BINARY_DIR}/tests/spatial")
