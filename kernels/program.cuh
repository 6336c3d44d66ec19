// What every program of this folder needs: arguments, device memory, and CUDA calls that never fail in silence.
// Exit codes: 0 the result is right, 1 it is wrong, 2 a CUDA call failed (standard error says which), 64 usage.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA(call) succeed((call), #call)

inline void succeed(cudaError_t status, const char *call) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(status));
        std::exit(2);
    }
}

// The argument at `position` as a whole number from 1 to `most`; `otherwise` where it is not given.
inline int argument(int argc, char **argv, int position, int otherwise, int most = 1 << 30) {
    if (position >= argc) return otherwise;
    char *end = nullptr;
    const long value = std::strtol(argv[position], &end, 10);
    if (*end != '\0' || value < 1 || value > most) {
        std::fprintf(stderr, "usage: %s [SIZE] [REPETITIONS]: '%s' is no number from 1 to %d\n", argv[0],
                     argv[position], most);
        std::exit(64);
    }
    return static_cast<int>(value);
}

// Device memory for `count` values.
template <class T>
class Device {
public:
    explicit Device(std::size_t count) : count_(count) { CUDA(cudaMalloc(&data_, count * sizeof(T))); }
    explicit Device(const std::vector<T> &host) : Device(host.size()) {
        CUDA(cudaMemcpy(data_, host.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
    }
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;
    ~Device() { cudaFree(data_); }

    T *data() { return data_; }

    std::vector<T> host() const {
        std::vector<T> copy(count_);
        CUDA(cudaMemcpy(copy.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
        return copy;
    }

private:
    T *data_ = nullptr;
    std::size_t count_;
};

// Launch `times` times, and wait.
template <class Launch>
void repeat(int times, Launch launch) {
    for (int i = 0; i < times; ++i) {
        launch();
        CUDA(cudaGetLastError());
    }
    CUDA(cudaDeviceSynchronize());
}

inline unsigned blocks(std::size_t work, unsigned block) {
    return static_cast<unsigned>((work + block - 1) / block);
}

// A number from -1 to 1 that depends on `i` alone.
inline float noise(std::size_t i) {
    std::uint64_t bits = (i + 1) * 0x9E3779B97F4A7C15u;
    bits = (bits ^ (bits >> 32)) * 0xD6E8FEB86659FD93u;
    return static_cast<float>(bits >> 40) / static_cast<float>(1 << 23) - 1.0f;
}

inline std::vector<float> noises(std::size_t count) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = noise(i);
    return values;
}

// Positions to check: the first, the last, and others between them.
inline std::vector<std::size_t> sample(std::size_t count, std::size_t wanted = 1000) {
    std::vector<std::size_t> positions = {0, count - 1};
    for (std::size_t i = 0; i < wanted; ++i) {
        positions.push_back(static_cast<std::size_t>((noise(i) + 1.0) / 2.0 * static_cast<double>(count - 1)));
    }
    return positions;
}

// End with exit code 1 where `found` is further than `tolerance` from `wanted`.
inline void expect(std::size_t position, double found, double wanted, double tolerance) {
    if (!(std::fabs(found - wanted) <= tolerance)) {
        std::fprintf(stderr, "wrong: element %zu is %.9g, not %.9g\n", position, found, wanted);
        std::exit(1);
    }
}

inline int right(const char *name, int size) {
    std::printf("%s %d: right\n", name, size);
    return 0;
}
