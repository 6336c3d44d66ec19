// Iterated maps, one of four for each thread and round: the threads of a warp go four different ways.
//
// Shows: a warp walks all four ways one after the other with a quarter of its threads: pipes look full of work
//        that is three quarters empty lanes.
// Parameters: SIZE n, the length of the vectors [elements]; REPETITIONS.
// Model: vector(n, fp32, reads 2, writes 1) with 2560 FLOP an element: 16 x 16 steps of each way, 2 + 3 + 4 + 1 FLOP.
// EXPECT = {
//     "gpu_kernel": "divergent_branch",
//     "arguments": {"n": 4194304},
//     "model": ["vector", {"n": 4194304, "dtype": "fp32", "reads": 2, "writes": 1, "flop_per_element": 2560}],
//     "verdict": ["compute-bound:fp32", "compute-bound:int", "balanced"],
//     "findings": ["divergence", "branch-divergence"],
// }

#include "program.cuh"

constexpr int ROUNDS = 64, STEPS = 16;

__global__ void divergent_branch(const float *in, const int *way, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i];
    for (int round = 0; round < ROUNDS; ++round) {
        switch ((way[i] + round) % 4) {
        case 0:
#pragma unroll
            for (int step = 0; step < STEPS; ++step) x = 0.5f * x + 0.25f;
            break;
        case 1:
#pragma unroll
            for (int step = 0; step < STEPS; ++step) x = x * x * 0.25f + 0.5f;
            break;
        case 2:
#pragma unroll
            for (int step = 0; step < STEPS; ++step) x = x - 0.125f * x * x * x;
            break;
        default:
#pragma unroll
            for (int step = 0; step < STEPS; ++step) x = fminf(fabsf(x - 0.5f), 0.75f);
        }
    }
    out[i] = x;
}

double reference(double x, int way) {
    for (int round = 0; round < ROUNDS; ++round) {
        for (int step = 0; step < STEPS; ++step) {
            switch ((way + round) % 4) {
            case 0: x = 0.5 * x + 0.25; break;
            case 1: x = x * x * 0.25 + 0.5; break;
            case 2: x = x - 0.125 * x * x * x; break;
            default: x = std::fmin(std::fabs(x - 0.5), 0.75);
            }
        }
    }
    return x;
}

int main(int argc, char **argv) {
    const int n = argument(argc, argv, 1, 1 << 22), repetitions = argument(argc, argv, 2, 10);
    const std::vector<float> in = noises(n);
    std::vector<int> way(n);
    for (int i = 0; i < n; ++i) way[i] = i % 4;
    Device<float> device_in(in), device_out(n);
    Device<int> device_way(way);
    repeat(repetitions, [&] {
        divergent_branch<<<blocks(n, 256), 256>>>(device_in.data(), device_way.data(), device_out.data(), n);
    });
    const std::vector<float> out = device_out.host();
    for (const std::size_t at : sample(n)) expect(at, out[at], reference(in[at], way[at]), 1e-5);
    return right("divergent_branch", n);
}
