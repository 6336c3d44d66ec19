// Copy of every eighth element of an FP32 vector.
//
// Shows: each element costs a sector of 32 bytes, of which 4 are used: DRAM is full of bytes that nobody asked for.
// Parameters: SIZE n, elements copied; REPETITIONS.
// Model: vector(n, fp32, reads 1, writes 1), no FLOP; DRAM moves 4.5 times these bytes: 36 an element instead of 8.
// EXPECT = {
//     "gpu_kernel": "strided_copy",
//     "arguments": {"n": 16777216},
//     "model": ["vector", {"n": 16777216, "dtype": "fp32", "reads": 1, "writes": 1, "flop_per_element": 0}],
//     "verdict": ["memory-bound:dram", "memory-bound:l2", "memory-bound:l1", "balanced"],
//     "findings": ["uncoalesced-loads"],
//     "counted": {"bytes": [3.5, 6.0]},  # 4.5; less where the L2 keeps what was written
//     "absent": ["uncoalesced-stores"],
// }

#include "program.cuh"

constexpr int STRIDE = 8;

__global__ void strided_copy(const float *in, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[static_cast<std::size_t>(i) * STRIDE];
}

int main(int argc, char **argv) {
    const int n = argument(argc, argv, 1, 1 << 24), repetitions = argument(argc, argv, 2, 10);
    const std::vector<float> in = noises(static_cast<std::size_t>(n) * STRIDE);
    Device<float> device_in(in), device_out(n);
    repeat(repetitions, [&] { strided_copy<<<blocks(n, 256), 256>>>(device_in.data(), device_out.data(), n); });
    const std::vector<float> out = device_out.host();
    for (const std::size_t at : sample(n)) expect(at, out[at], in[at * STRIDE], 0.0);
    return right("strided_copy", n);
}
