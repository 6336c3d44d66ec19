// Transpose of a square FP32 matrix through a tile in shared memory, whose columns lie in one bank.
//
// Shows: both global accesses are coalesced now, but each read of a column of the tile conflicts 32 ways.
// Parameters: SIZE n, the order of the matrix [elements]; REPETITIONS.
// Model: transpose(n, n, fp32), no FLOP; 2 n^2 elements move.
// EXPECT = {
//     "gpu_kernel": "transpose_bank_conflicts",
//     "arguments": {"n": 8192},
//     "model": ["transpose", {"m": 8192, "n": 8192, "dtype": "fp32"}],
//     "verdict": ["memory-bound:shared", "memory-bound:l1", "memory-bound:dram", "balanced"],
//     "findings": ["bank-conflicts-loads"],
//     "absent": ["uncoalesced-loads", "uncoalesced-stores"],
// }

#include "program.cuh"

constexpr int TILE = 32, ROWS = 8;

__global__ void transpose_bank_conflicts(const float *in, float *out, int n) {
    __shared__ float tile[TILE][TILE];
    const int x = threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += ROWS) {
        const int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
        if (row < n && column < n) tile[y][x] = in[static_cast<std::size_t>(row) * n + column];
    }
    __syncthreads();
    for (int y = threadIdx.y; y < TILE; y += ROWS) {
        const int row = blockIdx.x * TILE + y, column = blockIdx.y * TILE + x;  // of the transposed matrix
        if (row < n && column < n) out[static_cast<std::size_t>(row) * n + column] = tile[x][y];
    }
}

int main(int argc, char **argv) {
    const int n = argument(argc, argv, 1, 8192), repetitions = argument(argc, argv, 2, 10);
    const std::size_t count = static_cast<std::size_t>(n) * n;
    const std::vector<float> in = noises(count);
    Device<float> device_in(in), device_out(count);
    const dim3 block(TILE, ROWS), grid(blocks(n, TILE), blocks(n, TILE));
    repeat(repetitions, [&] { transpose_bank_conflicts<<<grid, block>>>(device_in.data(), device_out.data(), n); });
    const std::vector<float> out = device_out.host();
    for (const std::size_t at : sample(count)) expect(at, out[at], in[at % n * n + at / n], 0.0);
    return right("transpose_bank_conflicts", n);
}
