// Eight polynomials a thread by Horner's rule: nothing but dependent chains of FFMA.
__global__ void horner(const float4 *__restrict__ x, float4 *__restrict__ y, int rounds, float c0, float c1) {
    const unsigned i = blockIdx.x * blockDim.x * 2 + threadIdx.x;
    const float4 u = x[i], v = x[i + blockDim.x];
    float a[8] = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w}, p[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) p[j] = c0;
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
        for (int t = 0; t < 16; ++t)
#pragma unroll
            for (int j = 0; j < 8; ++j) p[j] = p[j] * a[j] + c1;
    }
    y[i] = make_float4(p[0], p[1], p[2], p[3]);
    y[i + blockDim.x] = make_float4(p[4], p[5], p[6], p[7]);
}
