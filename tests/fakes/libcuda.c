/* A stand-in for the CUDA driver: one GPU, a context that is always current, events on the host's clock.
 *
 * NCUKIT_FAKE_STATE  folder: the profiler's switch is logged there (marks.txt), so that tests see the marks
 * NCUKIT_FAKE_CUINIT the code of cuInit
 * NCUKIT_FAKE_NO_CONTEXT  set: the program uses no GPU
 * NCUKIT_FAKE_LATE   seconds that a context has work which no event sees
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long long u64;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static void mark(const char *what) {
  char path[4096];
  const char *folder = getenv("NCUKIT_FAKE_STATE");
  if (!folder) return;
  snprintf(path, sizeof path, "%s/marks.txt", folder);
  FILE *file = fopen(path, "a");
  if (!file) return;
  fprintf(file, "%s %d\n", what, (int)getpid());
  fclose(file);
}

int cuInit(unsigned flags) { const char *code = getenv("NCUKIT_FAKE_CUINIT"); return code ? atoi(code) : 0; }
int cuDriverGetVersion(int *v) { *v = 12040; return 0; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDeviceGet(int *d, int i) { *d = i; return 0; }
int cuDeviceGetName(char *s, int n, int d) { strncpy(s, "NVIDIA H100 Test", n); return 0; }
int cuDeviceTotalMem_v2(size_t *n, int d) { *n = 80ull << 30; return 0; }
int cuDeviceGetUuid(unsigned char *u, int d) { for (int i = 0; i < 16; i++) u[i] = i; return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) {
  *v = a == 75 ? 9 : a == 76 ? 0 : a == 38 ? 50 << 20 : 132;
  return 0;
}
int cuDevicePrimaryCtxGetState(int d, unsigned *flags, int *active) { *flags = 0; *active = 0; return 0; }
int cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)1; return 0; }
int cuCtxSetCurrent(void *c) { return 0; }
int cuCtxGetCurrent(void **c) { *c = getenv("NCUKIT_FAKE_NO_CONTEXT") ? 0 : (void *)1; return 0; }
int cuCtxGetDevice(int *d) { *d = 0; return 0; }
int cuCtxSynchronize(void) {
  const char *late = getenv("NCUKIT_FAKE_LATE");
  if (late) usleep(atof(late) * 1e6);
  return 0;
}
int cuEventCreate(double **e, unsigned flags) { *e = calloc(1, sizeof **e); return 0; }
int cuEventRecord(double *e, void *stream) { *e = now(); return 0; }
int cuEventSynchronize(double *e) { return 0; }
int cuEventElapsedTime(float *ms, double *a, double *b) { *ms = (*b - *a) * 1e3; return 0; }
int cuMemAlloc_v2(u64 *p, size_t n) { *p = 1; return 0; }
int cuMemFree_v2(u64 p) { return 0; }
int cuMemsetD32Async(u64 p, unsigned v, size_t n, void *s) { mark("flush"); return 0; }
int cuGetErrorName(int code, const char **text) { *text = "CUDA_ERROR_TEST"; return 0; }
int cuProfilerStart(void) { mark("start"); return 0; }
int cuProfilerStop(void) { mark("stop"); return 0; }
