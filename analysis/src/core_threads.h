// Work shared among threads, and memory in large pages.
#pragma once

#include <cstddef>
#include <functional>

namespace samovar {

// Processors that this process may run on.
size_t processors();

// Calls task(k) for each k below `count`, on up to `threads` threads of which the caller's is one; returns when all
// are done. Between its own tasks the caller's thread calls `pause`. What a task or `pause` throws ends the work and
// is thrown here.
void share_out(size_t threads, size_t count, const std::function<void(size_t)>& task,
               const std::function<void()>& pause = nullptr);

// Asks for large pages where `bytes` from `at` on hold whole ones: memory that is written once from end to end costs
// more in page faults than in writing.
void prefer_large_pages(void* at, size_t bytes);

}  // namespace samovar
