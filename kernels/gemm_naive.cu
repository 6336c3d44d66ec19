// FP32 matrix product with one thread for each element of C, straight from global memory.
//
// Shows: two loads for each multiply-add; L1 serves nearly all of them, and getting them out of it is the limit.
// Parameters: SIZE n, the order of the matrices, at most 46340 [elements]; REPETITIONS.
// Model: gemm(n, n, n, fp32), 2 n^3 FLOP; 3 n^2 elements move at least.
// EXPECT = {
//     "gpu_kernel": "gemm_naive",
//     "arguments": {"n": 2048},
//     "model": ["gemm", {"m": 2048, "n": 2048, "k": 2048, "dtype": "fp32"}],
//     "verdict": ["compute-bound:lsu-issue", "memory-bound:l1"],
//     "findings": ["loads-outnumber-math"],
// }

#include "program.cuh"

__global__ void gemm_naive(const float *a, const float *b, float *c, int n) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < n; ++i) sum += a[row * n + i] * b[i * n + column];
    c[row * n + column] = sum;
}

int main(int argc, char **argv) {
    const int n = argument(argc, argv, 1, 2048, 46340), repetitions = argument(argc, argv, 2, 10);
    const std::size_t count = static_cast<std::size_t>(n) * n;
    const std::vector<float> a = noises(count), b = noises(count);
    Device<float> device_a(a), device_b(b), device_c(count);
    const dim3 block(32, 8), grid(blocks(n, block.x), blocks(n, block.y));
    repeat(repetitions, [&] {
        gemm_naive<<<grid, block>>>(device_a.data(), device_b.data(), device_c.data(), n);
    });
    const std::vector<float> c = device_c.host();
    for (const std::size_t at : sample(count)) {
        double sum = 0.0;
        for (int i = 0; i < n; ++i) sum += static_cast<double>(a[at / n * n + i]) * b[i * n + at % n];
        expect(at, c[at], sum, 1e-6 * n);
    }
    return right("gemm_naive", n);
}
