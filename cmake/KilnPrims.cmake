# SPDX-License-Identifier: Apache-2.0
# What ships of the primitives is made here, by Kiln itself, from kernels/prims: ready cubins and CCCL's headers go into
# libkiln, templates into lib/kiln beside it. Kiln's own cache keeps what was compiled, so that only the first build on a
# machine takes minutes; KILN_CACHE_DIR moves it. The compile test for seven architectures is this step.
set(kiln_products_preset ON)
if(KILN_SANITIZE OR KILN_FUZZ)
    set(kiln_products_preset OFF)  # those builds compile what they test
endif()
option(KILN_PRIMS_PRODUCTS "Make the cubins, templates and headers that ship; needs NVRTC and nvJitLink" ${kiln_products_preset})
set(KILN_CUBIN_ARCHS "75;80;86;89;90;100;120" CACHE STRING "Architectures to make ready cubins for")
set(KILN_TEMPLATE_ARCHS "80;90" CACHE STRING "Architectures to ship templates for")

if(KILN_PRIMS_PRODUCTS)
    set(folder ${CMAKE_BINARY_DIR}/lib/kiln)
    list(JOIN KILN_CUBIN_ARCHS "," cubin_archs)
    list(JOIN KILN_TEMPLATE_ARCHS "," template_archs)
    if(NOT template_archs)
        set(template_archs "-")
    endif()
    set(templates "")
    foreach(arch IN LISTS KILN_TEMPLATE_ARCHS)
        list(APPEND templates ${folder}/prims-sm_${arch}.kiln)
    endforeach()
    # What decides the contents. The tool itself is not listed: relinking it changes nothing that ships.
    file(GLOB inputs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/prims/* ${PROJECT_SOURCE_DIR}/tools/kiln-prims/*)
    foreach(source IN ITEMS prims/catalogue prims/request prims/device_text prims/operator_text prims/routes prims/shipped
                            prims/sources prims/types compile/job compile/options store/bundle_format store/entry_format)
        list(APPEND inputs ${PROJECT_SOURCE_DIR}/src/${source}.cpp)
    endforeach()
    add_custom_command(
        OUTPUT ${folder}/cubins.kiln ${folder}/headers.zst ${templates}
        COMMAND ${CMAKE_COMMAND} -E env KILN_CUDA_PATH=${KILN_CUDA_ROOT} KILN_WORKER=$<TARGET_FILE:kiln_worker>
                --unset=KILN_BUNDLES --unset=KILN_JIT --unset=KILN_DISABLE
                $<TARGET_FILE:kiln_prims_tool> ${folder} ${cubin_archs} ${template_archs}
        DEPENDS ${inputs}
        COMMENT "Compiling the primitives for ${cubin_archs} (minutes, once)"
        VERBATIM)
    add_custom_target(kiln_prims_products DEPENDS ${folder}/cubins.kiln ${folder}/headers.zst ${templates})
    add_dependencies(kiln_prims_products kiln_prims_tool kiln_worker)
    set(embedded ${folder}/cubins.kiln ${folder}/headers.zst)
    install(FILES ${templates} DESTINATION ${CMAKE_INSTALL_LIBDIR}/kiln COMPONENT kiln)
else()
    set(embedded "")
endif()

kiln_embed_products(prims ${embedded})
