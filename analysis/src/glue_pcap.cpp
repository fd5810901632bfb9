// [[Rcpp::plugins(cpp17)]]
#include <Rcpp.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <list>

#include "core_table.h"
#include "glue_threads.h"

namespace {

using samovar::column_count;
using samovar::columns;

// Below this size R's heap has room or finds it; above it, an estimate from the first packets is not trusted.
constexpr size_t least_room_bytes = size_t{1} << 24, most_room_bytes = size_t{1} << 29;
constexpr size_t rows_between_interrupts = 1 << 16;
using Wanted = std::vector<size_t>;

Wanted numbers_of(const Rcpp::IntegerVector& wanted) {
  Wanted numbers;
  for (const int number : wanted) numbers.push_back(static_cast<size_t>(number - 1));
  return numbers;
}

SEXPTYPE type_of(samovar::Kind kind) {
  return kind == samovar::Kind::real ? REALSXP : kind == samovar::Kind::integer ? INTSXP : LGLSXP;
}

size_t bytes_of(samovar::Kind kind) { return kind == samovar::Kind::real ? sizeof(double) : sizeof(int); }

size_t row_bytes(const Wanted& wanted) {
  size_t bytes = 0;
  for (const size_t number : wanted) bytes += bytes_of(columns[number].kind);
  return bytes;
}

// If R is out of memory, C++ objects are destroyed before R's error continues.
SEXP new_vector(SEXPTYPE type, size_t length) {
  return Rcpp::unwindProtect([=] { return Rf_allocVector(type, static_cast<R_xlen_t>(length)); });
}

// R's heap grows by little more than each request, with a garbage collection each time: several for a wide table. One request
// for the whole size costs one collection. Its memory is never touched and is garbage at once; it must not be protected, or the
// next collection scans it. If it fails, the estimate was wrong.
SEXP ask_for(void* bytes) {
  Rf_allocVector(RAWSXP, static_cast<R_xlen_t>(*static_cast<size_t*>(bytes)));
  return R_NilValue;
}
SEXP do_without(SEXP, void*) { return R_NilValue; }
void make_room(size_t bytes) {
  Rcpp::unwindProtect([&] { return R_tryCatchError(ask_for, &bytes, do_without, nullptr); });
}

// R's garbage collection and the pass over the records are independent: they run in parallel.
void count_and_make_room(samovar::Reader& reader, const Wanted& wanted) {
  const size_t bytes = reader.packets_expected() * row_bytes(wanted), threads = threads_wanted();
  if (bytes < least_room_bytes) return reader.count(threads);
  const std::launch when = threads > 1 ? std::launch::async | std::launch::deferred : std::launch::deferred;
  std::future<void> counted = std::async(when, [&reader, threads] { reader.count(threads); });
  make_room(std::min(bytes, most_room_bytes));
  counted.get();
}

samovar::Destination allocate(Rcpp::List& table, const Wanted& wanted, size_t rows) {
  samovar::Destination to;
  Rcpp::CharacterVector names(static_cast<R_xlen_t>(wanted.size()));
  for (size_t k = 0; k < wanted.size(); ++k) {
    const samovar::Column& column = columns[wanted[k]];
    SEXP vector = new_vector(type_of(column.kind), rows);
    table[static_cast<R_xlen_t>(k)] = vector;
    names[static_cast<R_xlen_t>(k)] = column.name;
    to.at[wanted[k]] = column.kind == samovar::Kind::real      ? static_cast<void*>(REAL(vector))
                       : column.kind == samovar::Kind::integer ? static_cast<void*>(INTEGER(vector))
                                                               : static_cast<void*>(LOGICAL(vector));
    samovar::prefer_large_pages(to.at[wanted[k]], rows * bytes_of(column.kind));
  }
  table.names() = names;
  return to;
}

Rcpp::List read_counted(samovar::Reader& reader, const Wanted& wanted) {
  count_and_make_room(reader, wanted);
  Rcpp::List table(static_cast<R_xlen_t>(wanted.size()));
  const samovar::Destination to = allocate(table, wanted, reader.packets());
  reader.read_counted(to, threads_wanted(), Rcpp::checkUserInterrupt);
  return table;
}

Rcpp::List read_stream(samovar::Reader& reader, const Wanted& wanted, size_t limit) {
  std::list<samovar::Chunk> chunks;
  size_t rows = 0;
  for (bool more = true; more && rows < limit;) {
    Rcpp::checkUserInterrupt();
    const size_t part = std::min(rows_between_interrupts, limit - rows);
    samovar::Chunk& chunk = chunks.emplace_back(part, wanted);
    chunk.rows = reader.read(chunk.destination(), 0, part);
    rows += chunk.rows;
    more = chunk.rows == part;
  }
  Rcpp::List table(static_cast<R_xlen_t>(wanted.size()));
  const samovar::Destination to = allocate(table, wanted, rows);
  for (size_t first = 0; !chunks.empty(); chunks.pop_front()) {
    chunks.front().copy_to(to, first);
    first += chunks.front().rows;
  }
  return table;
}

void set_levels(Rcpp::List& table, const char* name, const Rcpp::CharacterVector& levels) {
  if (!table.containsElementNamed(name)) return;
  Rcpp::IntegerVector column = table[name];
  column.attr("levels") = levels;
  column.attr("class") = "factor";
}

// A name is up to 64 KiB of arbitrary bytes; R's strings have no zero bytes.
SEXP text_or_missing(const std::string& text) {
  const std::string shown = text.substr(0, text.find('\0'));
  return shown.empty() ? NA_STRING : Rf_mkCharLenCE(shown.data(), static_cast<int>(shown.size()), CE_UTF8);
}

double or_missing(double count) { return count < 0 ? NA_REAL : count; }

std::string resolution_text(const samovar::Interface& interface) {
  const int exponent = interface.resolution_exponent;
  if (!interface.binary_resolution && exponent % 3 == 0 && exponent <= 9)
    return std::vector<std::string>{"s", "ms", "us", "ns"}[static_cast<size_t>(exponent / 3)];
  return (interface.binary_resolution ? "2^-" : "10^-") + std::to_string(exponent) + " s";
}

// The coarsest resolution counts: comparisons across interfaces are not more precise.
std::string precision_of(const std::vector<samovar::Interface>& interfaces) {
  const samovar::Interface* coarsest = nullptr;
  const auto unit_s = [](const samovar::Interface& i) {
    return std::pow(i.binary_resolution ? 2.0 : 10.0, -i.resolution_exponent);
  };
  for (const samovar::Interface& i : interfaces)
    if (!coarsest || unit_s(i) > unit_s(*coarsest)) coarsest = &i;
  return coarsest ? resolution_text(*coarsest) : "";
}

std::string link_text(uint32_t link_type) {
  const char* name = samovar::name_of_link(link_type);
  return name ? name : "unknown (" + std::to_string(link_type) + ")";
}

// A list of columns, from which R makes a table: Rcpp's data frames call R functions, 10 ms in the first read of a process.
Rcpp::List table_of(const std::vector<samovar::Interface>& interfaces) {
  const R_xlen_t n = static_cast<R_xlen_t>(interfaces.size());
  Rcpp::IntegerVector number(n);
  Rcpp::CharacterVector name(n), link(n), precision(n);
  Rcpp::NumericVector snaplen(n), offset_s(n), interface_drops(n), system_drops(n);
  for (R_xlen_t k = 0; k < n; ++k) {
    const samovar::Interface& i = interfaces[static_cast<size_t>(k)];
    number[k] = static_cast<int>(k) + 1;
    name[k] = text_or_missing(i.name);
    link[k] = link_text(i.link_type);
    snaplen[k] = i.snaplen_bytes;
    precision[k] = resolution_text(i);
    offset_s[k] = static_cast<double>(i.offset_s);
    interface_drops[k] = or_missing(i.interface_drops);
    system_drops[k] = or_missing(i.system_drops);
  }
  return Rcpp::List::create(
      Rcpp::_["interface"] = number, Rcpp::_["name"] = name, Rcpp::_["link_type"] = link,
      Rcpp::_["snaplen_bytes"] = snaplen, Rcpp::_["precision"] = precision, Rcpp::_["offset_s"] = offset_s,
      Rcpp::_["interface_drops"] = interface_drops, Rcpp::_["system_drops"] = system_drops);
}

Rcpp::List table_of(const std::vector<samovar::ClassPause>& pauses) {
  const R_xlen_t n = static_cast<R_xlen_t>(pauses.size());
  Rcpp::NumericVector t_ns(n);
  Rcpp::IntegerVector interface(n), priority(n), quanta(n);
  for (R_xlen_t k = 0; k < n; ++k) {
    const samovar::ClassPause& pause = pauses[static_cast<size_t>(k)];
    t_ns[k] = pause.t_ns;
    interface[k] = pause.interface;
    priority[k] = pause.priority;
    quanta[k] = pause.quanta;
  }
  return Rcpp::List::create(Rcpp::_["t_ns"] = t_ns, Rcpp::_["interface"] = interface, Rcpp::_["priority"] = priority,
                            Rcpp::_["quanta"] = quanta);
}

std::string links_of(const std::vector<samovar::Interface>& interfaces) {
  std::string all;
  std::vector<std::string> seen;
  for (const samovar::Interface& i : interfaces) {
    const std::string name = link_text(i.link_type);
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
    all += (seen.empty() ? "" : ", ") + name;
    seen.push_back(name);
  }
  return all;
}

double snaplen_of(const std::vector<samovar::Interface>& interfaces) {
  double least = R_PosInf;
  for (const samovar::Interface& i : interfaces)
    if (i.snaplen_bytes) least = std::min<double>(least, i.snaplen_bytes);
  return least == R_PosInf ? 0 : least;
}

Rcpp::NumericVector undecoded_of(const samovar::Decoder& decoder) {
  Rcpp::NumericVector counts;
  for (samovar::Proto proto : {samovar::mpls, samovar::pppoe, samovar::snap})
    counts.push_back(static_cast<double>(decoder.undecoded_packets(proto)), samovar::proto_names[proto - 1]);
  counts.push_back(static_cast<double>(decoder.unknown_packets()), "unknown link type");
  return counts;
}

// The table and the attributes of the capture so far.
Rcpp::List described(Rcpp::List table, samovar::Reader& reader) {
  samovar::Capture& capture = reader.capture();
  samovar::Decoder& decoder = reader.decoder();
  const Rcpp::CharacterVector addresses = Rcpp::wrap(decoder.flows().address_names());
  set_levels(table, "proto",
             Rcpp::CharacterVector(std::begin(samovar::proto_names), std::end(samovar::proto_names)));
  set_levels(table, "flow", Rcpp::wrap(decoder.flows().flow_names()));
  set_levels(table, "src", addresses);
  set_levels(table, "dst", addresses);
  return Rcpp::List::create(
      Rcpp::_["table"] = table, Rcpp::_["epoch_s"] = static_cast<double>(capture.epoch_s()),
      Rcpp::_["format"] = capture.format(), Rcpp::_["link_type"] = links_of(capture.interfaces()),
      Rcpp::_["precision"] = precision_of(capture.interfaces()),
      Rcpp::_["snaplen_bytes"] = snaplen_of(capture.interfaces()),
      Rcpp::_["interfaces"] = table_of(capture.interfaces()),
      Rcpp::_["cut_packets"] = static_cast<double>(decoder.cut_packets()),
      Rcpp::_["untimed_packets"] = static_cast<double>(decoder.untimed_packets()),
      Rcpp::_["undecoded_packets"] = undecoded_of(decoder),
      Rcpp::_["class_pauses"] = table_of(decoder.take_class_pauses()),
      Rcpp::_["truncated"] = !capture.truncation().empty(), Rcpp::_["truncated_note"] = capture.truncation());
}

}  // namespace

// [[Rcpp::export]]
Rcpp::List capture_columns() {
  Rcpp::CharacterVector name;
  Rcpp::LogicalVector usual;
  for (const samovar::Column& column : columns) {
    name.push_back(column.name);
    usual.push_back(column.usual);
  }
  return Rcpp::List::create(Rcpp::_["name"] = name, Rcpp::_["usual"] = usual);
}

// [[Rcpp::export]]
Rcpp::List decode_capture(const std::string& path, const Rcpp::IntegerVector& wanted, int mtu_bytes) {
  samovar::Reader reader(samovar::open_source(path), mtu_bytes);
  Rcpp::List table = reader.countable() ? read_counted(reader, numbers_of(wanted))
                                        : read_stream(reader, numbers_of(wanted), SIZE_MAX);
  reader.check_links();
  return described(table, reader);
}

// [[Rcpp::export]]
SEXP open_capture_parts(const std::string& path, int mtu_bytes) {
  auto reader = std::make_unique<samovar::Reader>(samovar::open_source(path), mtu_bytes);
  return Rcpp::XPtr<samovar::Reader>(reader.release());
}

// [[Rcpp::export]]
void close_capture_parts(SEXP parts) {
  Rcpp::XPtr<samovar::Reader>(parts).release();
}

// [[Rcpp::export]]
Rcpp::List decode_capture_part(SEXP parts, const Rcpp::IntegerVector& wanted, double packets) {
  Rcpp::XPtr<samovar::Reader> reader(parts);
  Rcpp::List table = read_stream(*reader, numbers_of(wanted), static_cast<size_t>(packets));
  reader->check_links();
  return described(table, *reader);
}
