#include "core_threads.h"

#include <sched.h>
#include <sys/mman.h>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace samovar {

size_t processors() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    return std::max<size_t>(static_cast<size_t>(CPU_COUNT(&allowed)), 1);
  return std::max<size_t>(std::thread::hardware_concurrency(), 1);
}

namespace {

class Work {
 public:
  Work(size_t count, const std::function<void(size_t)>& task) : count_(count), task_(task) {}

  void run(const std::function<void()>& pause) noexcept {
    try {
      for (size_t k; (k = next_++) < count_;) {
        task_(k);
        if (pause) pause();
      }
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!thrown_) thrown_ = std::current_exception();
      next_ = count_;
    }
  }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  size_t count_;
  const std::function<void(size_t)>& task_;
  std::atomic<size_t> next_{0};
  std::mutex mutex_;
  std::exception_ptr thrown_;
};

}  // namespace

void share_out(size_t threads, size_t count, const std::function<void(size_t)>& task,
               const std::function<void()>& pause) {
  Work work(count, task);
  std::vector<std::thread> others;
  try {
    while (others.size() + 1 < std::min(threads, count)) others.emplace_back([&] { work.run(nullptr); });
  } catch (const std::system_error&) {
    // No more threads are available: the existing ones do the work.
  }
  work.run(pause);
  for (std::thread& other : others) other.join();
  work.rethrow();
}

void prefer_large_pages(void* at, size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr uintptr_t large = uintptr_t{1} << 21;
  const uintptr_t from = (reinterpret_cast<uintptr_t>(at) + large - 1) / large * large;
  const uintptr_t to = (reinterpret_cast<uintptr_t>(at) + bytes) / large * large;
  if (to > from) ::madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
#else
  (void)at;
  (void)bytes;
#endif
}

}  // namespace samovar
