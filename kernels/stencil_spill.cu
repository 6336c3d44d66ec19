// Stencil of 65 points down each column of a volume, with the window of a column in registers.
//
// Shows: blocks of 1024 threads leave 64 registers each, and the window alone needs 65: values spill to local
//        memory, and L1 and L2 carry them to and fro.
// Parameters: SIZE n, the number of columns; 128 elements a column; REPETITIONS.
// Model: vector(128 n, fp32, reads 1, writes 1) with 130 FLOP an element.
// EXPECT = {
//     "gpu_kernel": "stencil_spill",
//     "arguments": {"n": 262144},
//     "model": ["vector", {"n": 33554432, "dtype": "fp32", "reads": 1, "writes": 1, "flop_per_element": 130}],
//     "verdict": ["memory-bound:l1", "memory-bound:l2", "compute-bound:lsu-issue", "compute-bound:fp32", "balanced"],
//     "findings": ["register-spills|local-memory"],
// }

#include "program.cuh"

constexpr int RADIUS = 32, POINTS = 2 * RADIUS + 1, DEPTH = 128, THREADS = 1024;

// Weight of the point at `distance` from the middle; all together are about 1.
__host__ __device__ constexpr float weight(int distance) {
    return 1.0f / (POINTS + (distance < 0 ? -distance : distance));
}

__global__ void __launch_bounds__(THREADS) stencil_spill(const float *in, float *out, int columns) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns) return;
    float window[POINTS];  // of z - RADIUS to z + RADIUS; beyond an end its last value goes on
#pragma unroll
    for (int i = 0; i < POINTS; ++i) {
        window[i] = in[static_cast<std::size_t>(i < RADIUS ? 0 : i - RADIUS) * columns + column];
    }
    for (int z = 0; z < DEPTH; ++z) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < POINTS; ++i) sum += weight(i - RADIUS) * window[i];
        out[static_cast<std::size_t>(z) * columns + column] = sum;
#pragma unroll
        for (int i = 0; i + 1 < POINTS; ++i) window[i] = window[i + 1];
        const int next = z + RADIUS + 1 < DEPTH ? z + RADIUS + 1 : DEPTH - 1;
        window[POINTS - 1] = in[static_cast<std::size_t>(next) * columns + column];
    }
}

int main(int argc, char **argv) {
    const int columns = argument(argc, argv, 1, 1 << 18), repetitions = argument(argc, argv, 2, 10);
    const std::size_t count = static_cast<std::size_t>(columns) * DEPTH;
    const std::vector<float> in = noises(count);
    Device<float> device_in(in), device_out(count);
    repeat(repetitions, [&] {
        stencil_spill<<<blocks(columns, THREADS), THREADS>>>(device_in.data(), device_out.data(), columns);
    });
    const std::vector<float> out = device_out.host();
    for (const std::size_t at : sample(count)) {
        const int z = static_cast<int>(at / columns);
        double sum = 0.0;
        for (int i = -RADIUS; i <= RADIUS; ++i) {
            const int row = z + i < 0 ? 0 : z + i >= DEPTH ? DEPTH - 1 : z + i;
            sum += weight(i) * static_cast<double>(in[static_cast<std::size_t>(row) * columns + at % columns]);
        }
        expect(at, out[at], sum, 1e-5);
    }
    return right("stencil_spill", columns);
}
