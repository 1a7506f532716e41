/* A driver of CUDA for one device without hardware, whose timer is a known function of CLOCK_MONOTONIC_RAW. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUCCESS = 0, INVALID_DEVICE = 101, NOT_READY = 600, LAUNCH_FAILED = 719 };

/* The failure that the test wants. */
enum { NOTHING, SILENT, FAILING, NO_KERNEL };
int behaviour = NOTHING;
/* Contexts, streams, modules and memory that were not given back, and contexts that are current. */
int alive = 0;
int current = 0;
int launches = 0;

enum { STEP = 32 };

/* 20 ppm fast, a second ahead, in steps. */
uint64_t device_time(uint64_t raw) {
  uint64_t fast = raw + raw / 50000 + 1000000000;
  return fast / STEP * STEP;
}

uint64_t raw_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int cuInit(unsigned flags) { return flags == 0 ? SUCCESS : 1; }

int cuGetErrorString(int error, const char **text) {
  switch (error) {
  case INVALID_DEVICE: *text = "invalid device ordinal"; return SUCCESS;
  case LAUNCH_FAILED: *text = "unspecified launch failure"; return SUCCESS;
  default: return 1;
  }
}

int cuDeviceGet(int *device, int ordinal) {
  *device = 7;
  return ordinal == 0 ? SUCCESS : INVALID_DEVICE;
}

static int create(void **object, char *what) {
  *object = what;
  alive++;
  return SUCCESS;
}

static int destroy(void) {
  alive--;
  return SUCCESS;
}

int cuDevicePrimaryCtxRetain(void **context, int device) { return device == 7 ? create(context, "context") : INVALID_DEVICE; }
int cuDevicePrimaryCtxRelease(int device) { return device == 7 ? destroy() : INVALID_DEVICE; }

int cuCtxPushCurrent_v2(void *context) {
  current++;
  return strcmp(context, "context");
}

int cuCtxPopCurrent_v2(void **context) {
  current--;
  *context = NULL;
  return SUCCESS;
}

/* Calls below need a context. */
int cuStreamCreate(void **stream, unsigned flags) { return current && flags == 1 ? create(stream, "stream") : 201; }
int cuStreamDestroy_v2(void *stream) { return current && stream ? destroy() : 201; }
int cuStreamSynchronize(void *stream) { return current && stream ? SUCCESS : 201; }
int cuModuleLoadData(void **module, const void *image) {
  return current && strstr(image, "%globaltimer") ? create(module, "module") : 201;
}
int cuModuleUnload(void *module) { return current && module ? destroy() : 201; }

int cuModuleGetFunction(void **function, void *module, const char *name) {
  *function = strcmp(name, "find_step") == 0 ? "find_step" : "read_timer";
  return current && module && behaviour != NO_KERNEL ? SUCCESS : 500;
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  *memory = aligned_alloc(64, 64);
  alive++;
  return current && bytes == 8 && flags == 3 && *memory ? SUCCESS : 201;
}

int cuMemFreeHost(void *memory) {
  free(memory);
  return destroy();
}

/* Another address than that of the host. */
int cuMemHostGetDevicePointer_v2(uint64_t *address, void *memory, unsigned flags) {
  *address = (uint64_t)(uintptr_t)memory ^ 0xf000000000000000;
  return current && flags == 0 ? SUCCESS : 201;
}

static void work(void) {
  for (uint64_t end = raw_now() + 2000; raw_now() < end;) {
  }
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **parameters, void **extra) {
  if (!current || gx * gy * gz * bx * by * bz != 1 || shared || !stream || extra) {
    return 1;
  }
  launches++;
  if (behaviour == SILENT || behaviour == FAILING) {
    return SUCCESS;
  }
  uint64_t *place = (uint64_t *)(uintptr_t)(*(uint64_t *)parameters[0] ^ 0xf000000000000000);
  work();
  *place = strcmp(function, "find_step") == 0 ? STEP : device_time(raw_now());
  work();
  return SUCCESS;
}

int cuStreamQuery(void *stream) {
  static int asked = 0;
  if (++asked % 2) {
    return NOT_READY;
  }
  return stream && behaviour != FAILING ? SUCCESS : LAUNCH_FAILED;
}
