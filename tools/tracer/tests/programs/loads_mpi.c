/* A program without MPI, which loads a plug-in that is linked with it, as Python and R do: MPI's symbols are then visible
 * to the plug-in only (RTLD_LOCAL), and dlsym(RTLD_NEXT, ...) does not find them.
 *
 *   mpicc -shared -fPIC plugin_mpi.c counts.c -o plugin_mpi.so
 *   cc loads_mpi.c -ldl -o loads_mpi
 *   MESSAGES_OUT=counts mpirun -np 3 ./loads_mpi ./plugin_mpi.so
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  void *plugin = dlopen(argc > 1 ? argv[1] : "./plugin_mpi.so", RTLD_NOW | RTLD_LOCAL);
  int (*run)(void) = NULL;
  if (plugin) *(void **)&run = dlsym(plugin, "run_plugin");
  if (!run) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  return run();
}
