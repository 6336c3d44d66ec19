// As much of CUDA as the programs of kernels/ use, on the CPU: each thread of a block is a thread, blocks run one
// after the other.  Checks what a kernel computes, where there is no GPU; says nothing about speed.
#pragma once

#include <atomic>
#include <barrier>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(threads)

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;
thread_local std::barrier<> *block_barrier;

inline void __syncthreads() { block_barrier->arrive_and_wait(); }
inline float atomicAdd(float *address, float value) { return std::atomic_ref(*address).fetch_add(value); }

// What `kernel<<<grid, block>>>(arguments)` becomes.
template <class Kernel>
void emulate(dim3 grid, dim3 block, Kernel kernel) {
    const unsigned threads = block.x * block.y * block.z;
    std::barrier<> barrier(threads);
    std::vector<std::jthread> pool;
    for (unsigned t = 0; t < threads; ++t) {
        pool.emplace_back([=, &barrier] {
            threadIdx = {t % block.x, t / block.x % block.y, t / block.x / block.y};
            blockDim = block, gridDim = grid, block_barrier = &barrier;
            for (unsigned b = 0; b < grid.x * grid.y * grid.z; ++b) {
                blockIdx = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
                kernel();
                barrier.arrive_and_wait();
            }
        });
    }
}

using cudaError_t = int;
constexpr int cudaSuccess = 0, cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2;
inline const char *cudaGetErrorString(cudaError_t) { return "out of memory"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
template <class T>
cudaError_t cudaMalloc(T **pointer, std::size_t bytes) {
    *pointer = static_cast<T *>(std::malloc(bytes));
    std::memset(*pointer, 0xFF, bytes);  // NaN: what a kernel leaves unwritten shows
    return cudaSuccess;
}
inline void cudaFree(void *pointer) { std::free(pointer); }
inline cudaError_t cudaMemset(void *pointer, int value, std::size_t bytes) {
    std::memset(pointer, value, bytes);
    return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void *to, const void *from, std::size_t bytes, int) {
    std::memcpy(to, from, bytes);
    return cudaSuccess;
}
