# Add the folder `docs/packaging/spack` with `spack repo add`, then `spack install downbeat`.
from spack.package import *


class Downbeat(Package):
    """One global clock for the processes of parallel programs, and what is measured with it:
    benchmarks of MPI operations, corrected traces, timers of regions."""

    homepage = "https://github.com/downbeat/downbeat"
    git = "https://github.com/downbeat/downbeat.git"

    license("MIT OR Apache-2.0")

    version("main", branch="main")

    variant("mpi", default=True, description="Program, libraries and tracer for an MPI library")
    variant("fortran", default=False, description="Modules of Fortran")

    depends_on("c", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("rust@1.88:", type="build")
    depends_on("mpi", when="+mpi")
    # bindgen reads mpi.h with libclang.
    depends_on("llvm+clang", type="build", when="+mpi")

    conflicts("platform=windows", msg="programs are launched with process groups and signals")
    conflicts("^intel-oneapi-mpi", when="+mpi", msg="Open MPI and MPICH are supported")

    def mpi_library(self):
        return "openmpi" if self.spec["mpi"].name == "openmpi" else "mpich"

    def setup_build_environment(self, env):
        env.set("CARGO_HOME", join_path(self.stage.path, "cargo"))
        if self.spec.satisfies("+mpi"):
            env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)

    def install(self, spec, prefix):
        arguments = ["xtask", "install", "--prefix", prefix]
        if spec.satisfies("+mpi"):
            # The installation looks for compilers as Debian names them.
            library = self.mpi_library()
            names = join_path(self.stage.path, "compilers")
            mkdirp(names)
            for language in ("mpicc", "mpif90"):
                compiler = join_path(spec["mpi"].prefix.bin, language)
                symlink(compiler, join_path(names, f"{language}.{library}"))
            env["PATH"] = names + ":" + env["PATH"]
            arguments += ["--mpi", library]
        if spec.satisfies("+fortran"):
            arguments.append("--fortran")
        which("cargo", required=True)(*arguments)
