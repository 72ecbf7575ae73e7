"""How a kernel is compiled, kept, interpreted while its work is small, and compiled in another process. It uses numba, when
something must be compiled. Start with `compiling`."""
