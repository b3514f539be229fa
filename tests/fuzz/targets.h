// The functions that read foreign bytes, one target each. A target takes any bytes and returns 0; it catches UserError;
// everything else that leaves it (another exception, a crash, a wrong result) is a bug. tools/fuzz.sh gives them to
// libFuzzer, replay.h gives them tests/fuzz/corpus and mutations of it.
//
// To add a target `foo`: fuzz_foo.cc and its declaration below; its line in CMakeLists.txt; a test in harness_test.cc
// or engine_test.cc that replays it; its sources in tools/fuzz.sh; stored inputs in corpus/foo/.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tearless::fuzz {

int fuzz_grid(const uint8_t* data, size_t size);            ///< a grid file, up to its empty table in every form
int fuzz_settings(const uint8_t* data, size_t size);        ///< run.toml: what is read is written and read again
int fuzz_run_folder(const uint8_t* data, size_t size);      ///< the files in which a training program reports
int fuzz_archive(const uint8_t* data, size_t size);         ///< an archive of results
int fuzz_request(const uint8_t* data, size_t size);         ///< a line that another process sends to the service
int fuzz_sentence_stats(const uint8_t* data, size_t size);  ///< outputs/<set>.stats, up to the scores of its sums
int fuzz_worker_file(const uint8_t* data, size_t size);     ///< what a worker writes, seen in two pieces
int fuzz_slurm(const uint8_t* data, size_t size);           ///< answers of squeue
int fuzz_token_file(const uint8_t* data, size_t size);      ///< a prepared corpus under a checksum that fits it
int fuzz_corpus(const uint8_t* data, size_t size);          ///< two sides of raw text, up to subwords
int fuzz_digits(const uint8_t* data, size_t size);          ///< IDX files of images and labels
int fuzz_characters(const uint8_t* data, size_t size);      ///< plain text as the numbers of its symbols
int fuzz_trees(const uint8_t* data, size_t size);           ///< dependency trees in CoNLL-X or CoNLL-U

}  // namespace tearless::fuzz
