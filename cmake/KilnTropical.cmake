# SPDX-License-Identifier: Apache-2.0
# What ships of the tropical pack: one bundle of its units, made here by Kiln itself and put into libkiln, so that the
# first call of a program needs no compiler. Kiln's own cache keeps what was compiled; KILN_CACHE_DIR moves it.
option(KILN_TROPICAL_PRODUCTS "Make the bundle of the tropical pack; needs NVRTC" ${kiln_products_preset})
set(KILN_TROPICAL_ARCHS "90" CACHE STRING "Architectures to make it for")

if(KILN_TROPICAL_PRODUCTS)
    set(bundle ${CMAKE_BINARY_DIR}/lib/kiln/tropical.kiln)
    list(JOIN KILN_TROPICAL_ARCHS "," archs)
    # What decides the contents. The tool itself is not listed: relinking it changes nothing that ships.
    file(GLOB inputs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/tropical/* ${PROJECT_SOURCE_DIR}/tools/kiln-tropical/*)
    foreach(name IN ITEMS tropical/units tropical/tuning compile/job compile/options compile/keys store/bundle_format
                          store/entry_format)
        list(APPEND inputs ${PROJECT_SOURCE_DIR}/src/${name}.cpp)
    endforeach()
    add_custom_command(
        OUTPUT ${bundle}
        COMMAND ${CMAKE_COMMAND} -E env KILN_CUDA_PATH=${KILN_CUDA_ROOT} KILN_WORKER=$<TARGET_FILE:kiln_worker>
                --unset=KILN_BUNDLES --unset=KILN_JIT --unset=KILN_DISABLE
                $<TARGET_FILE:kiln_tropical_tool> ${bundle} ${archs}
        DEPENDS ${inputs}
        COMMENT "Compiling the tropical pack for ${archs} (a minute, once)"
        VERBATIM)
    add_custom_target(kiln_tropical_products DEPENDS ${bundle})
    add_dependencies(kiln_tropical_products kiln_tropical_tool kiln_worker)
else()
    set(bundle "")
endif()

kiln_embed_products(tropical ${bundle})
