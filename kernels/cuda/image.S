/* The compiled kernels of a group, as bytes: EDDY_CUDA_IMAGE is the name, EDDY_CUDA_IMAGE_FILE the file, if there is one. */
        .section .rodata
        .balign 16
        .globl EDDY_CUDA_IMAGE
        .hidden EDDY_CUDA_IMAGE
        .type EDDY_CUDA_IMAGE, %object
EDDY_CUDA_IMAGE:
#ifdef EDDY_CUDA_IMAGE_FILE
        .incbin EDDY_CUDA_IMAGE_FILE
#else
        .byte 0
#endif
        .size EDDY_CUDA_IMAGE, . - EDDY_CUDA_IMAGE
        .section .note.GNU-stack, "", %progbits
