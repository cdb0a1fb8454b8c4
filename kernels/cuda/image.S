/* The compiled kernels of a group, as bytes, or the text of some (fusion_words.h): EDDY_CUDA_IMAGE is the name, EDDY_CUDA_IMAGE_FILE the file, if there is one. A 0 ends a text. */
        .section .rodata
        .balign 16
        .globl EDDY_CUDA_IMAGE
        .hidden EDDY_CUDA_IMAGE
        .type EDDY_CUDA_IMAGE, %object
EDDY_CUDA_IMAGE:
#ifdef EDDY_CUDA_IMAGE_FILE
        .incbin EDDY_CUDA_IMAGE_FILE
#endif
        .byte 0
        .size EDDY_CUDA_IMAGE, . - EDDY_CUDA_IMAGE
        .section .note.GNU-stack, "", %progbits
