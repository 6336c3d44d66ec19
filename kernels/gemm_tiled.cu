// FP32 matrix product with tiles in shared memory and one element of C for each thread.
//
// Shows: tiles relieve L2 and DRAM, but each multiply-add still loads from shared memory, which is now full;
//        the next step is a tile in registers.
// Parameters: SIZE n, the order of the matrices, at most 46340 [elements]; REPETITIONS.
// Model: gemm(n, n, n, fp32), 2 n^3 FLOP; 3 n^2 elements move at least.
// EXPECT = {
//     "gpu_kernel": "gemm_tiled",
//     "arguments": {"n": 2048},
//     "model": ["gemm", {"m": 2048, "n": 2048, "k": 2048, "dtype": "fp32"}],
//     "verdict": ["memory-bound:shared", "compute-bound:lsu-issue", "memory-bound:l1", "balanced"],
//     "findings": ["loads-outnumber-math"],
// }

#include "program.cuh"

constexpr int TILE = 16;

__global__ void gemm_tiled(const float *a, const float *b, float *c, int n) {
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    const int x = threadIdx.x, y = threadIdx.y;
    const int column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
    float sum = 0.0f;
    for (int first = 0; first < n; first += TILE) {
        const bool in_a = row < n && first + x < n, in_b = first + y < n && column < n;
        tile_a[y][x] = in_a ? a[row * n + first + x] : 0.0f;
        tile_b[y][x] = in_b ? b[(first + y) * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

int main(int argc, char **argv) {
    const int n = argument(argc, argv, 1, 2048, 46340), repetitions = argument(argc, argv, 2, 10);
    const std::size_t count = static_cast<std::size_t>(n) * n;
    const std::vector<float> a = noises(count), b = noises(count);
    Device<float> device_a(a), device_b(b), device_c(count);
    const dim3 block(TILE, TILE), grid(blocks(n, TILE), blocks(n, TILE));
    repeat(repetitions, [&] {
        gemm_tiled<<<grid, block>>>(device_a.data(), device_b.data(), device_c.data(), n);
    });
    const std::vector<float> c = device_c.host();
    for (const std::size_t at : sample(count)) {
        double sum = 0.0;
        for (int i = 0; i < n; ++i) sum += static_cast<double>(a[at / n * n + i]) * b[i * n + at % n];
        expect(at, c[at], sum, 1e-6 * n);
    }
    return right("gemm_tiled", n);
}
