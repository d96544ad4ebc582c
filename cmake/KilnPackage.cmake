# SPDX-License-Identifier: Apache-2.0
# `cpack` in a build tree, or `make package`: one .deb with all that `cmake --install` installs, below /usr.
#
# What it depends on is read from the files. CUDA is not among it: Kiln opens what it finds, and needs none to run what is in
# bundles.
if(NOT TARGET kiln_shared OR NOT TARGET kiln_cli)
    return()
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kiln)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR "The Kiln authors")
set(CPACK_PACKAGE_CONTACT "The Kiln authors <authors@kiln.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION
    "Kernels are compiled in worker processes, kept on disk and in bundles, and found again by the next process. The package
has the library, its headers, the command line, the worker program, what 'kiln run' puts into other programs, the bundles of
Kiln's own packs, man pages and completion.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libfmt-dev, libssl-dev, libzstd-dev, nvidia-cuda-toolkit")
include(CPack)
