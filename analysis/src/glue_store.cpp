// [[Rcpp::plugins(cpp17)]]
#include <Rcpp.h>
#include <zstd.h>

#include <memory>
#include <vector>

namespace {

// The claimed size of a frame is trusted up to what zstd can produce from so many bytes (a block of 128 KiB takes four).
constexpr unsigned long long most_ratio = 1 << 16;

}  // namespace

// [[Rcpp::export]]
Rcpp::RawVector packed_bytes(const Rcpp::RawVector bytes) {
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  if (!context) Rcpp::stop("not enough memory to compress");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, 1);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::vector<unsigned char> packed(ZSTD_compressBound(static_cast<size_t>(bytes.size())));
  const size_t size = ZSTD_compress2(context.get(), packed.data(), packed.size(), RAW(bytes), static_cast<size_t>(bytes.size()));
  if (ZSTD_isError(size)) Rcpp::stop("cannot be compressed: %s", ZSTD_getErrorName(size));
  return Rcpp::RawVector(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size));
}

// [[Rcpp::export]]
Rcpp::RawVector unpacked_bytes(const Rcpp::RawVector packed) {
  const auto given = static_cast<size_t>(packed.size());
  const unsigned long long size = ZSTD_getFrameContentSize(RAW(packed), given);
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > most_ratio * given) Rcpp::stop("damaged zstd frame");
  const Rcpp::Shield<SEXP> bytes(Rf_allocVector(RAWSXP, static_cast<R_xlen_t>(size)));
  const size_t found = ZSTD_decompress(RAW(bytes), static_cast<size_t>(size), RAW(packed), given);
  if (ZSTD_isError(found) || found != size) Rcpp::stop("damaged zstd frame");
  return Rcpp::RawVector(static_cast<SEXP>(bytes));
}
