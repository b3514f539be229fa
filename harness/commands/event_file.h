// A TensorBoard event file: what TensorBoard, and the trackers that import from it, read of a run.
//
// A record is   u64 length | u32 masked CRC-32C of these 8 bytes | the bytes | u32 masked CRC-32C of them,
// little-endian; the mask of c is ((c >> 15) | (c << 17)) + 0xa282ead8. The bytes are a protocol buffer:
//
//   Event    1: double wall_time   2: int64 step   3: string file_version   5: Summary
//   Summary  1: Value, repeated
//   Value    1: string tag         2: float simple_value
//
// The first event has file_version = "brain.Event:2" alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tearless::harness {

/// The first record of a file.
std::string event_file_header(double wall_time);

/// The record of one value. `wall_time`: seconds since 1970. A value is rounded to the nearest 32-bit float.
std::string event_record(double wall_time, int64_t step, std::string_view tag, double value);

}  // namespace tearless::harness
