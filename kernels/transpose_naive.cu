// Transpose of a square FP32 matrix: rows are read, columns are written.
//
// Shows: each store of a warp touches 32 sectors and uses 4 bytes of each; partial sectors fill the L2's input.
// Parameters: SIZE n, the order of the matrix [elements]; REPETITIONS.
// Model: transpose(n, n, fp32), no FLOP; 2 n^2 elements move.
// EXPECT = {
//     "gpu_kernel": "transpose_naive",
//     "arguments": {"n": 8192},
//     "model": ["transpose", {"m": 8192, "n": 8192, "dtype": "fp32"}],
//     "verdict": ["memory-bound:l2", "memory-bound:dram", "memory-bound:l1", "balanced"],
//     "findings": ["uncoalesced-stores"],
// }

#include "program.cuh"

__global__ void transpose_naive(const float *in, float *out, int n) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && column < n) {
        out[static_cast<std::size_t>(column) * n + row] = in[static_cast<std::size_t>(row) * n + column];
    }
}

int main(int argc, char **argv) {
    const int n = argument(argc, argv, 1, 8192), repetitions = argument(argc, argv, 2, 10);
    const std::size_t count = static_cast<std::size_t>(n) * n;
    const std::vector<float> in = noises(count);
    Device<float> device_in(in), device_out(count);
    const dim3 block(32, 8), grid(blocks(n, block.x), blocks(n, block.y));
    repeat(repetitions, [&] { transpose_naive<<<grid, block>>>(device_in.data(), device_out.data(), n); });
    const std::vector<float> out = device_out.host();
    for (const std::size_t at : sample(count)) expect(at, out[at], in[at % n * n + at / n], 0.0);
    return right("transpose_naive", n);
}
