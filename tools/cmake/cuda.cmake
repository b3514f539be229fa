# build/bin/libtearless_cuda.so, where nvcc of LibTorch's CUDA version is at hand. The engine opens it for device = "cuda" and never links it.
