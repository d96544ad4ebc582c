# SPDX-License-Identifier: Apache-2.0
"""python -m kiln: the `kiln` program of this package, where its folder of scripts is not on PATH."""

from ._bundles import main

if __name__ == "__main__":
    main()
