#include "harness/commands/event_file.h"

#include <bit>
#include <boost/crc.hpp>

namespace tearless::harness {
namespace {

template <class Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof number; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}

std::string varint(uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(0x80 | (number & 0x7f));
  return bytes + static_cast<char>(number);
}

// Fields of a protocol buffer: (number << 3 | wire type), then the value.
std::string of_int(uint32_t field, int64_t value) {
  return varint(field << 3 | 0) + varint(static_cast<uint64_t>(value));
}
std::string of_double(uint32_t field, double value) {
  return varint(field << 3 | 1) + little_endian(std::bit_cast<uint64_t>(value));
}
std::string of_bytes(uint32_t field, std::string_view value) {
  return varint(field << 3 | 2) + varint(value.size()) + std::string(value);
}
std::string of_float(uint32_t field, float value) {
  return varint(field << 3 | 5) + little_endian(std::bit_cast<uint32_t>(value));
}

std::string masked_crc(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;  // Castagnoli
  crc.process_bytes(bytes.data(), bytes.size());
  return little_endian(std::rotr(static_cast<uint32_t>(crc.checksum()), 15) + 0xa282ead8u);
}

std::string record(std::string_view bytes) {
  const std::string length = little_endian(uint64_t{bytes.size()});
  return length + masked_crc(length) + std::string(bytes) + masked_crc(bytes);
}

}  // namespace

std::string event_file_header(double wall_time) {
  return record(of_double(1, wall_time) + of_bytes(3, "brain.Event:2"));
}

std::string event_record(double wall_time, int64_t step, std::string_view tag, double value) {
  const std::string summary = of_bytes(1, of_bytes(1, tag) + of_float(2, static_cast<float>(value)));
  return record(of_double(1, wall_time) + of_int(2, step) + of_bytes(5, summary));
}

}  // namespace tearless::harness
