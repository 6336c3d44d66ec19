// C = A * B on the tensor cores: A is M x K (row major), B is N x K (row major), C is M x N.
// Rows of A and B must be readable 64 columns past K: the pipeline fetches two tiles ahead.
// Block tile 256 x 128 x 32, eight warps of 64 x 64, three stages of cp.async, swizzled shared memory.
// FP16 values travel as 16-bit words, so that no header but this file is in the line table.
typedef unsigned short half;
typedef unsigned uint32_t;

constexpr int TM = 256, TN = 128, TK = 32, STAGES = 3;
constexpr int STAGE = (TM + TN) * TK;

__device__ __forceinline__ int slot(int row, int chunk) {
    return row * TK + ((chunk ^ ((row >> 1) & 3)) << 3);
}

__device__ __forceinline__ void copy16(uint32_t to, const half *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}

__device__ __forceinline__ void load4(uint32_t (&r)[4], uint32_t from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from));
}

__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ uint32_t pack(float low, float high) {
    uint32_t r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

__global__ void __launch_bounds__(256) gemm(const half *__restrict__ A, const half *__restrict__ B,
                                            half *__restrict__ C, int K, int N) {
    extern __shared__ half shared[];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int wm = (warp & 3) * 64, wn = (warp >> 2) * 64;
    const int row = threadIdx.x >> 2, chunk = threadIdx.x & 3;
    const half *a = A + (size_t)(blockIdx.y * TM + row) * K + chunk * 8;
    const half *b = B + (size_t)(blockIdx.x * TN + row) * K + chunk * 8;
    const uint32_t base = (uint32_t)__cvta_generic_to_shared(shared);
    const uint32_t put = base + slot(row, chunk) * 2;
    float c[4][8][4] = {};

    auto fetch = [&](int stage) {
        const uint32_t to = put + stage * STAGE * 2;
#pragma unroll
        for (int i = 0; i < TM / 64; ++i) copy16(to + i * 64 * TK * 2, a + (size_t)i * 64 * K);
#pragma unroll
        for (int i = 0; i < TN / 64; ++i) copy16(to + (TM + i * 64) * TK * 2, b + (size_t)i * 64 * K);
        asm volatile("cp.async.commit_group;");
        a += TK, b += TK;
    };
    fetch(0);
    fetch(1);
    int read = 0, write = 2;
#pragma unroll 1
    for (int k = 0; k < K; k += TK) {
        asm volatile("cp.async.wait_group 1;");
        __syncthreads();
        fetch(write);
        const uint32_t from = base + read * STAGE * 2;
#pragma unroll
        for (int kk = 0; kk < 2; ++kk) {
            uint32_t fa[4][4], fb[4][4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                load4(fa[i], from + slot(wm + i * 16 + (lane & 15), kk * 2 + (lane >> 4)) * 2);
#pragma unroll
            for (int j = 0; j < 4; ++j)
                load4(fb[j], from + (TM * TK + slot(wn + j * 16 + (lane & 7) + ((lane >> 4) << 3),
                                                    kk * 2 + ((lane >> 3) & 1))) * 2);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) mma(c[i][j], fa[i], fb[j >> 1][(j & 1) * 2], fb[j >> 1][(j & 1) * 2 + 1]);
        }
        read = read == STAGES - 1 ? 0 : read + 1;
        write = write == STAGES - 1 ? 0 : write + 1;
    }
    const int m = blockIdx.y * TM + wm + (lane >> 2), n = blockIdx.x * TN + wn + (lane & 3) * 2;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            uint32_t *to = (uint32_t *)(C + (size_t)(m + i * 16) * N + n + j * 8);
            to[0] = pack(c[i][j][0], c[i][j][1]);
            to[4 * N] = pack(c[i][j][2], c[i][j][3]);
        }
}
