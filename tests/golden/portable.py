"""The environment in which studies round alike on different processors.

Training turns a difference in the last bit into another network. So each library computes with AVX2, whatever
the processor has beyond it, and MKL in the way that it has for processors of every maker.
"""

PORTABLE = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "MKL_CBWR": "COMPATIBLE",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}
