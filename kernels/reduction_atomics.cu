// Sum of a vector with one atomic addition for each element, all to one address.
//
// Shows: atomics to one address take turns in one slice of the L2, while every average reads a few percent.
// Parameters: SIZE n, the length of the vector, at most 2^24 [elements]; REPETITIONS.
// Model: reduction(n, fp32), n - 1 FLOP; n elements are read.
// EXPECT = {
//     "gpu_kernel": "reduction_atomics",
//     "arguments": {"n": 4194304},
//     "model": ["reduction", {"n": 4194304, "dtype": "fp32"}],
//     "verdict": ["memory-bound:l2"],
//     "findings": ["contended-atomics|possible-atomics"],
//     "counted": {"flop": None},  # the L2 adds, where no counter of the SMs sees it
// }

#include "program.cuh"

__global__ void reduction_atomics(const float *values, float *sum, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, values[i]);
}

int main(int argc, char **argv) {
    const int n = argument(argc, argv, 1, 1 << 22, 1 << 24), repetitions = argument(argc, argv, 2, 10);
    std::vector<float> values(n);  // whole numbers: their sum is exact in any order
    double wanted = 0.0;
    for (int i = 0; i < n; ++i) wanted += values[i] = noise(i) > 0.0f ? 1.0f : 0.0f;
    Device<float> device_values(values), device_sum(1);
    repeat(repetitions, [&] {
        CUDA(cudaMemset(device_sum.data(), 0, sizeof(float)));
        reduction_atomics<<<blocks(n, 256), 256>>>(device_values.data(), device_sum.data(), n);
    });
    expect(0, device_sum.host()[0], wanted, 0.0);
    return right("reduction_atomics", n);
}
