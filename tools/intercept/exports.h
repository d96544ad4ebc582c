// SPDX-License-Identifier: Apache-2.0
//
// Every function that a stand-in has: the bridge has a jump for each.
#pragma once

// clang-format off
#define KILN_NVRTC_EXPORTS(X) \
    X(__nvrtcCPEx) X(__nvrtcNvvmHandle) X(nvrtcAddNameExpression) X(nvrtcCompileProgram) X(nvrtcCreateProgram) \
    X(nvrtcDestroyProgram) X(nvrtcGetBundledHeadersInfo) X(nvrtcGetCUBIN) X(nvrtcGetCUBINSize) \
    X(nvrtcGetErrorString) X(nvrtcGetLTOIR) X(nvrtcGetLTOIRSize) X(nvrtcGetLoweredName) X(nvrtcGetNVVM) \
    X(nvrtcGetNVVMSize) X(nvrtcGetNumSupportedArchs) X(nvrtcGetOptiXIR) X(nvrtcGetOptiXIRSize) \
    X(nvrtcGetPCHCreateStatus) X(nvrtcGetPCHHeapSize) X(nvrtcGetPCHHeapSizeRequired) X(nvrtcGetPTX) \
    X(nvrtcGetPTXSize) X(nvrtcGetProgramLog) X(nvrtcGetProgramLogSize) X(nvrtcGetSupportedArchs) \
    X(nvrtcGetTileIR) X(nvrtcGetTileIRSize) X(nvrtcInstallBundledHeaders) X(nvrtcRemoveBundledHeaders) \
    X(nvrtcSetFlowCallback) X(nvrtcSetPCHHeapSize) X(nvrtcVersion)

#define KILN_NVJITLINK_EXPORTS(X) \
    X(__nvJitLinkAPI) X(nvJitLinkVersion) X(nvJitLinkCreate) X(nvJitLinkDestroy) X(nvJitLinkAddData) \
    X(nvJitLinkAddFile) X(nvJitLinkComplete) X(nvJitLinkGetLinkedCubinSize) X(nvJitLinkGetLinkedCubin) \
    X(nvJitLinkGetLinkedPtxSize) X(nvJitLinkGetLinkedPtx) X(nvJitLinkGetLinkedLTOIRSize) \
    X(nvJitLinkGetLinkedLTOIR) X(nvJitLinkGetErrorLogSize) X(nvJitLinkGetErrorLog) X(nvJitLinkGetInfoLogSize) \
    X(nvJitLinkGetInfoLog)

// The names that nvJitLink.h really calls: a set for each minor version.
#define KILN_NVJITLINK_OF_MINOR(X, minor) \
    X(Create, minor) X(Destroy, minor) X(AddData, minor) X(AddFile, minor) X(Complete, minor) \
    X(GetLinkedCubinSize, minor) X(GetLinkedCubin, minor) X(GetLinkedPtxSize, minor) X(GetLinkedPtx, minor) \
    X(GetLinkedLTOIRSize, minor) X(GetLinkedLTOIR, minor) X(GetErrorLogSize, minor) X(GetErrorLog, minor) \
    X(GetInfoLogSize, minor) X(GetInfoLog, minor)

#define KILN_NVJITLINK_OF_MINORS(X) \
    KILN_NVJITLINK_OF_MINOR(X, 12_0) KILN_NVJITLINK_OF_MINOR(X, 12_1) KILN_NVJITLINK_OF_MINOR(X, 12_2) \
    KILN_NVJITLINK_OF_MINOR(X, 12_3) KILN_NVJITLINK_OF_MINOR(X, 12_4) KILN_NVJITLINK_OF_MINOR(X, 12_5) \
    KILN_NVJITLINK_OF_MINOR(X, 12_6) KILN_NVJITLINK_OF_MINOR(X, 12_7) KILN_NVJITLINK_OF_MINOR(X, 12_8) \
    KILN_NVJITLINK_OF_MINOR(X, 12_9) KILN_NVJITLINK_OF_MINOR(X, 13_0) KILN_NVJITLINK_OF_MINOR(X, 13_1) \
    KILN_NVJITLINK_OF_MINOR(X, 13_2) KILN_NVJITLINK_OF_MINOR(X, 13_3) KILN_NVJITLINK_OF_MINOR(X, 13_4) \
    KILN_NVJITLINK_OF_MINOR(X, 13_5) KILN_NVJITLINK_OF_MINOR(X, 13_6) KILN_NVJITLINK_OF_MINOR(X, 13_7) \
    KILN_NVJITLINK_OF_MINOR(X, 13_8) KILN_NVJITLINK_OF_MINOR(X, 13_9)
// clang-format on
