// Blocks of a pcapng file (draft-ietf-opsawg-pcapng-03).
#pragma once

#include "core_pcap.h"

namespace samovar {

constexpr uint32_t block_section = 0x0A0D0D0A;  // the same in either byte order

// Reads the header of the first section; throws FormatError if it is damaged.
std::unique_ptr<Capture> open_pcapng(Source& source);

}  // namespace samovar
