// Work divided among threads, and memory in large pages.
#pragma once

#include <cstddef>
#include <functional>

namespace samovar {

// Processors that this process may run on.
size_t processors();

// Calls task(k) for each k below `count` on up to `threads` threads, including the caller's, and returns when all are
// done. Between its own tasks the caller's thread calls `pause`. An exception from a task or `pause` ends the work and
// is thrown here.
void share_out(size_t threads, size_t count, const std::function<void(size_t)>& task,
               const std::function<void()>& pause = nullptr);

// Requests large pages for the `bytes` at `at`: in memory that is written once from end to end, page faults cost more than
// the writing.
void prefer_large_pages(void* at, size_t bytes);

}  // namespace samovar
