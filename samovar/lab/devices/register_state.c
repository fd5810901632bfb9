/* A library to preload into user-mode Linux 6.12 and earlier, which does not start by itself on processors with AMX.
 *
 * Such a kernel saves the registers of its processes in 2,696 bytes, which is enough for AVX-512. With AMX, they take 11,008.
 * The machine's kernel lets ptrace(2) read a part of them, but refuses to write back less than the whole (PTRACE_SETREGSET with
 * NT_X86_XSTATE: EFAULT). This library adds zeros as the missing bytes. They are the initial state of the registers of AMX, which
 * no program in the lab can use, because the user-mode kernel does not know how to permit it (arch_prctl(2)). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef long ptrace_function(enum __ptrace_request, ...);

/* Static, because the stacks of a user-mode kernel have only 16 KB. One thread of the kernel runs processes. */
static unsigned char state[65536];

long ptrace(enum __ptrace_request request, ...) {
  static ptrace_function *original;
  static size_t state_bytes;
  va_list arguments;
  va_start(arguments, request);
  pid_t pid = va_arg(arguments, pid_t);
  void *address = va_arg(arguments, void *);
  void *data = va_arg(arguments, void *);
  va_end(arguments);
  if (!original) original = (ptrace_function *)dlsym(RTLD_NEXT, "ptrace");
  if (request != PTRACE_SETREGSET || address != (void *)NT_X86_XSTATE) return original(request, pid, address, data);

  struct iovec *given = data, whole = {state, sizeof state};
  if (!state_bytes && original(PTRACE_GETREGSET, pid, address, &whole) == 0) {
    state_bytes = whole.iov_len;
    memset(state, 0, sizeof state);
  }
  if (given->iov_len >= state_bytes) return original(request, pid, address, data);
  memcpy(state, given->iov_base, given->iov_len);
  whole.iov_len = state_bytes;
  return original(request, pid, address, &whole);
}
