// A substitute for libFuzzer without clang and coverage feedback: runs every file of a corpus, whole and truncated, then damaged
// copies of the files until the time is up. The reader runs in a process of its own with limits on time and memory; the input is
// saved when that process dies.
//
//   fuzz_NAME CORPUS FAILED SECONDS    failing inputs are written to FAILED-<hash>
//   fuzz_NAME FILE...                  run these inputs once, to reproduce a failure

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n);

// The sanitizer's own count of allocated memory is limited; RLIMIT_AS cannot be used, as its shadow memory takes terabytes of address
// space. A capture may need zstd's window of up to 128 MiB.
extern "C" const char* __asan_default_options() {
  return "hard_rss_limit_mb=1024:max_allocation_size_mb=256:quarantine_size_mb=16:handle_abort=1:allocator_may_return_null=0";
}
extern "C" const char* __ubsan_default_options() { return "print_stacktrace=1"; }

namespace {

using Bytes = std::vector<uint8_t>;

constexpr size_t longest = 16384;
constexpr int cpu_s = 20, wall_s = 300;  // limits per input: processor time, and elapsed time in case it waits forever
constexpr uint64_t first_seed = 20130417;

// The current input, which the parent can read after the child has died.
struct Trial {
  uint64_t inputs;
  bool all_done;
  size_t n;
  uint8_t bytes[longest];
};

Bytes file_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "%s cannot be read\n", path.c_str());
    std::exit(2);
  }
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

std::vector<Bytes> corpus_of(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> corpus;
  for (const auto& path : paths) corpus.push_back(file_bytes(path));
  return corpus;
}

// Copies of exactly the input's size, so that reads past the end are detected.
void try_input(Trial& trial, const Bytes& input) {
  trial.n = std::min(input.size(), longest);
  std::copy_n(input.begin(), trial.n, trial.bytes);
  const itimerval work{{0, 0}, {cpu_s, 0}};
  ::setitimer(ITIMER_PROF, &work, nullptr);
  ::alarm(wall_s);
  const Bytes exact(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(trial.n));
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  ++trial.inputs;
}

// A number that a length, a count or a time is likely to be compared with.
uint64_t telling_number(std::mt19937_64& random) {
  static constexpr uint64_t numbers[] = {0, 1, 4, 16, 60, 127, 128, 255, 256, 1500, 9217, 32767, 32768, 65535, 65536,
                                         0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffff, 0xffffffffffffffff};
  return numbers[random() % std::size(numbers)];
}

void put_number(Bytes& x, std::mt19937_64& random) {
  const size_t width = size_t{1} << (random() % 4);
  if (x.size() < width) return;
  const size_t at = random() % (x.size() - width + 1);
  const uint64_t value = telling_number(random);
  const bool big = random() & 1;
  for (size_t k = 0; k < width; ++k) x[at + k] = static_cast<uint8_t>(value >> 8 * (big ? width - 1 - k : k));
}

// Numbers as in text logs: long, negative, with another decimal mark, or without one.
void put_text(Bytes& x, std::mt19937_64& random) {
  static const char* const texts[] = {"-1", "18446744073709551616", "1e999", "0x", "nan", ",,", "\t", "\n", "\r\n", "0,5", ":", "=", "%", "99999999999999999999999"};
  const std::string text = texts[random() % std::size(texts)];
  const auto at = x.begin() + static_cast<std::ptrdiff_t>(random() % (x.size() + 1));
  x.insert(at, text.begin(), text.end());
}

// Insert bytes of a file, or overwrite bytes with them.
void splice(Bytes& x, const Bytes& other, std::mt19937_64& random) {
  if (other.empty()) return;
  const size_t begin = random() % other.size();
  const size_t length = std::min<size_t>(other.size() - begin, 1 + random() % 400);
  const size_t at = random() % (x.size() + 1);
  if (random() & 1) {
    x.insert(x.begin() + static_cast<std::ptrdiff_t>(at), other.begin() + static_cast<std::ptrdiff_t>(begin),
             other.begin() + static_cast<std::ptrdiff_t>(begin + length));
  } else {
    std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(begin), std::min(length, x.size() - at), x.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

void erase_some(Bytes& x, std::mt19937_64& random) {
  const size_t at = random() % x.size();
  const size_t length = std::min<size_t>(x.size() - at, 1 + random() % (random() & 1 ? 8 : 300));
  x.erase(x.begin() + static_cast<std::ptrdiff_t>(at), x.begin() + static_cast<std::ptrdiff_t>(at + length));
}

void damage(Bytes& x, const std::vector<Bytes>& corpus, std::mt19937_64& random) {
  if (x.empty()) x.push_back(static_cast<uint8_t>(random()));
  switch (random() % 8) {
    case 0: x[random() % x.size()] ^= static_cast<uint8_t>(1u << (random() % 8)); break;
    case 1: x[random() % x.size()] = static_cast<uint8_t>(random()); break;
    case 2: put_number(x, random); break;
    case 3: put_text(x, random); break;
    case 4: splice(x, corpus[random() % corpus.size()], random); break;
    case 5: splice(x, Bytes(x), random); break;
    case 6: erase_some(x, random); break;
    default: x.resize(random() % (x.size() + 1));
  }
}

// Input k is the same in every run.
Bytes damaged(const std::vector<Bytes>& corpus, uint64_t k) {
  std::mt19937_64 random(first_seed + k);
  Bytes x = corpus[random() % corpus.size()];
  for (uint64_t times = 1 + random() % 6; times > 0; --times) damage(x, corpus, random);
  return x;
}

// Truncated at every byte of the first kilobyte, then at every 61st.
void try_cuts(Trial& trial, const Bytes& whole) {
  for (size_t n = whole.size();; n -= std::min<size_t>(n, n > 1024 ? 61 : 1)) {
    try_input(trial, Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)));
    if (n == 0) return;
  }
}

// Truncation takes at most a third of the time, so that slow machines try damage too.
void try_until(Trial& trial, const std::vector<Bytes>& corpus, double seconds) {
  const auto from = std::chrono::steady_clock::now();
  const auto spent_s = [from] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count(); };
  for (const Bytes& whole : corpus) try_input(trial, whole);
  for (const Bytes& whole : corpus)
    if (spent_s() < seconds / 3) try_cuts(trial, whole);
  for (uint64_t k = 0; spent_s() < seconds; ++k) try_input(trial, damaged(corpus, k));
}

void keep_failure(const Trial& trial, const std::string& prefix) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (size_t k = 0; k < trial.n; ++k) hash = (hash ^ trial.bytes[k]) * 1099511628211u;
  char name[17];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(hash));
  const std::string path = prefix + "-" + name;
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(trial.bytes), static_cast<std::streamsize>(trial.n));
  std::fprintf(stderr, "input %llu failed; it is stored in %s\n", static_cast<unsigned long long>(trial.inputs + 1), path.c_str());
}

std::string cause_of(int status) {
  if (WIFEXITED(status)) return "exited with status " + std::to_string(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  if (signal == SIGPROF) return "used more than " + std::to_string(cpu_s) + " s of processor time";
  if (signal == SIGALRM) return "took more than " + std::to_string(wall_s) + " s";
  return std::string("killed by signal: ") + ::strsignal(signal);
}

int watch(const std::string& folder, const std::string& failed, double seconds) {
  const std::vector<Bytes> corpus = corpus_of(folder);
  void* shared = ::mmap(nullptr, sizeof(Trial), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || corpus.empty()) {
    std::fprintf(stderr, "%s: no inputs, or not enough memory for them\n", folder.c_str());
    return 2;
  }
  Trial& trial = *new (shared) Trial;
  const pid_t child = ::fork();
  if (child == 0) {
    try_until(trial, corpus, seconds);
    trial.all_done = true;
    std::exit(0);  // exit() runs the leak check
  }
  int status = 0;
  rusage used{};
  ::wait4(child, &status, 0, &used);
  std::printf("stat::number_of_executed_units: %llu\nstat::peak_rss_mb: %ld\n", static_cast<unsigned long long>(trial.inputs), used.ru_maxrss / 1024);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  std::fprintf(stderr, "%s\n", cause_of(status).c_str());
  if (trial.all_done) std::fprintf(stderr, "all inputs were read, but memory leaked\n");
  else keep_failure(trial, failed);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::filesystem::is_directory(argv[1])) return watch(argv[1], argv[2], std::stod(argv[3]));
  for (int k = 1; k < argc; ++k) {
    const Bytes input = file_bytes(argv[k]);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  return 0;
}
