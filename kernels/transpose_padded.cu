// Transpose of a square FP32 matrix through a tile in shared memory with one column more than it needs.
//
// Shows: the remedy for transpose_bank_conflicts.cu; what is left is the speed of a copy.
// Parameters: SIZE n, the order of the matrix [elements]; REPETITIONS.
// Model: transpose(n, n, fp32), no FLOP; 2 n^2 elements move.
// EXPECT = {
//     "gpu_kernel": "transpose_padded",
//     "arguments": {"n": 8192},
//     "model": ["transpose", {"m": 8192, "n": 8192, "dtype": "fp32"}],
//     "verdict": ["memory-bound:dram"],
//     "findings": ["busiest-unit"],
//     "absent": ["bank-conflicts-loads", "bank-conflicts-stores", "uncoalesced-loads", "uncoalesced-stores"],
// }

#include "program.cuh"

constexpr int TILE = 32, ROWS = 8;

__global__ void transpose_padded(const float *in, float *out, int n) {
    __shared__ float tile[TILE][TILE + 1];
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
    repeat(repetitions, [&] { transpose_padded<<<grid, block>>>(device_in.data(), device_out.data(), n); });
    const std::vector<float> out = device_out.host();
    for (const std::size_t at : sample(count)) expect(at, out[at], in[at % n * n + at / n], 0.0);
    return right("transpose_padded", n);
}
