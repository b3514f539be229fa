// Archives of results: what tar and gzip make of ours, what we make of theirs, and what is refused.
#include "harness/archive/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>

#include "base/files.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::harness::archive_test {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

class ArchiveTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    test::write_text(folder_ / name, text);
  }
  void write_workspace(const std::string& root) const {
    for (const auto& [name, text] : contents_) write((fs::path(root) / name).string(), text);
    write((fs::path(root) / "tearless.db").string(), "not of the results");
  }
  // Runs a shell command in the folder.
  void shell(const std::string& command) const {
    const test::Finished finished =
        test::run({.arguments = {"/bin/sh", "-ec", command}, .environment = {}, .folder = folder_.path()});
    ASSERT_EQ(finished.code, 0) << command << finished.errors;
  }
  std::map<std::string, std::string> files_in(const fs::path& folder) const {
    std::map<std::string, std::string> files;
    std::error_code absent;
    for (const auto& entry : fs::recursive_directory_iterator(folder, absent)) {
      if (entry.is_regular_file())
        files[entry.path().lexically_relative(folder).string()] = test::read_text(entry.path());
    }
    return files;
  }
  std::string refusal(const std::string& archive) const {
    const std::string sentence = error_of([&] { unpack(folder_ / archive, folder_ / "out"); });
    EXPECT_THAT(sentence, HasSubstr((folder_ / archive).string()));
    return sentence;
  }

  test::TempFolder folder_;
  const std::map<std::string, std::string> contents_ = {
      {"runs/aa/DONE", "{}"},
      {"runs/aa/attempts/1/start.json", std::string(511, 'x')},
      {"runs/aa/metrics.jsonl", std::string(100000, 'm') + "\n"},
      {"runs/aa/outputs/test.stats", std::string("\0\1\2", 3)},
      {"runs/bb/scores.json", std::string(512, 'y')},
      {"runs/bb/empty", ""},
      {"sweeps/" + std::string(60, 's') + "/" + std::string(60, 't') + "/runs.jsonl", "a long name\n"},
  };
};

TEST_F(ArchiveTest, IsReadByTarAndGivesTheSameFilesBack) {
  write_workspace("ws");
  write_atomically(folder_ / "a.tar.gz", pack(folder_ / "ws"));
  shell("mkdir tar && tar xzf a.tar.gz -C tar");
  EXPECT_TRUE(files_in(folder_ / "tar") == contents_);
  unpack(folder_ / "a.tar.gz", folder_ / "out");
  EXPECT_TRUE(files_in(folder_ / "out") == contents_);
}

TEST_F(ArchiveTest, HasTheSameBytesWheneverAndWhereverTheSameFilesLie) {
  write_workspace("ws");
  write_workspace("elsewhere/ws");
  shell("touch -d 2001-01-01 elsewhere/ws/runs/*/*; chmod 600 elsewhere/ws/runs/aa/DONE");
  const std::string bytes = pack(folder_ / "ws");
  EXPECT_EQ(pack(folder_ / "elsewhere/ws"), bytes);
  write("ws/runs/aa/DONE", "{ }");
  EXPECT_NE(pack(folder_ / "ws"), bytes);
}

TEST_F(ArchiveTest, ThatTarHasMadeIsRead) {
  write_workspace("ws");
  // The last three have more in their headers than names: times, a record for all files, an owner without a name.
  for (const char* format : {"ustar", "gnu", "oldgnu", "posix", "posix --pax-option=comment=mine",
                             "posix --pax-option=globexthdr.name=g,comment:=each", "posix --owner=4000000"}) {
    fs::remove_all(folder_ / "out");
    shell(std::string("cd ws && tar czf ../a.tar.gz ./runs ./sweeps --format=") + format);
    unpack(folder_ / "a.tar.gz", folder_ / "out");
    EXPECT_TRUE(files_in(folder_ / "out") == contents_) << format;
  }
}

TEST_F(ArchiveTest, OfPaxOrGnuTarThatIsCutAnywhereIsRefused) {
  write_workspace("ws");
  for (const std::string format : {"gnu", "posix"}) {
    shell("cd ws && tar cf ../whole.tar sweeps runs/aa/DONE --format=" + format);
    const std::string bytes = test::read_text(folder_ / "whole.tar");
    for (size_t blocks = 0; blocks * 512 < bytes.find("{}"); ++blocks) {
      fs::remove_all(folder_ / "out");
      write("cut.tar", bytes.substr(0, blocks * 512));
      shell("gzip -c cut.tar > cut.tar.gz");
      EXPECT_THAT(refusal("cut.tar.gz"), HasSubstr("is cut or damaged (it ends too early)")) << format << blocks;
    }
  }
}

TEST_F(ArchiveTest, OfPaxWithRecordsThatCannotBeReadIsRefused) {
  write_workspace("ws");
  shell("cd ws && tar cf ../whole.tar sweeps --format=posix");
  const std::string bytes = test::read_text(folder_ / "whole.tar");
  const size_t path = bytes.find(" path=");
  ASSERT_NE(path, std::string::npos);
  const size_t begin = std::max(bytes.rfind('\0', path), bytes.rfind('\n', path)) + 1;
  for (const char* length : {"999", "000", "007", "xyz", "-12"}) {
    fs::remove_all(folder_ / "out");
    std::string changed = bytes;
    changed.replace(begin, 3, length);
    write("pax.tar", changed);
    shell("gzip -c pax.tar > pax.tar.gz");
    EXPECT_THAT(refusal("pax.tar.gz"), HasSubstr("is cut or damaged")) << length;
  }
}

TEST_F(ArchiveTest, ThatIsCutAnywhereIsRefused) {
  write_workspace("ws");
  const std::string bytes = pack(folder_ / "ws");
  for (size_t length = 0; length < bytes.size(); length += length < 40 || length + 40 > bytes.size() ? 1 : 7) {
    fs::remove_all(folder_ / "out");
    write("cut.tar.gz", bytes.substr(0, length));
    EXPECT_THAT(refusal("cut.tar.gz"),
                length < 2 ? HasSubstr("is no archive") : HasSubstr("is cut or damaged (it ends too early)"))
        << length;
  }
  fs::remove_all(folder_ / "out");
  shell(
      "mkdir t && cd ws && tar cf ../t/a.tar --format=ustar runs && head -c 3000 ../t/a.tar | gzip > ../short.tar.gz");
  EXPECT_THAT(refusal("short.tar.gz"), HasSubstr("it ends too early")) << "the tar inside is cut, the gzip is not";
}

TEST_F(ArchiveTest, WithAChangedByteIsRefused) {
  write_workspace("ws");
  const std::string bytes = pack(folder_ / "ws");
  size_t tried = 0, refused = 0;
  for (size_t at = 10; at < bytes.size(); at += 5, ++tried) {  // after gzip's header, some of which means nothing
    fs::remove_all(folder_ / "out");
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    write("changed.tar.gz", changed);
    const std::string sentence = error_of([&] { unpack(folder_ / "changed.tar.gz", folder_ / "out"); });
    if (sentence.empty()) {  // a bit that gzip does not read
      EXPECT_TRUE(files_in(folder_ / "out") == contents_) << at;
    } else {
      EXPECT_THAT(sentence, HasSubstr("is cut or damaged")) << at;
      ++refused;
    }
  }
  EXPECT_GT(refused, tried * 9 / 10);
}

TEST_F(ArchiveTest, OfSomethingElseIsRefused) {
  write("plain.tar.gz", "title = \"a grid\"\n");
  write("empty.tar.gz", "");
  EXPECT_THAT(refusal("plain.tar.gz"), HasSubstr("is no archive of results"));
  EXPECT_THAT(refusal("empty.tar.gz"), HasSubstr("is no archive of results"));
  shell("head -c 2000 /dev/zero | tr '\\0' x | gzip > text.tar.gz");
  EXPECT_THAT(refusal("text.tar.gz"), HasSubstr("no file of a tar archive"));
}

TEST_F(ArchiveTest, WithNamesThatLeadElsewhereIsRefusedAndNothingIsWrittenThere) {
  write("mine", "mine");
  fs::create_directories(folder_ / "runs");
  const std::string root = folder_.path().string();
  shell("mkdir deep; cd deep; tar czPf ../up.tar.gz --format=ustar ../mine");
  shell("tar czPf absolute.tar.gz --format=ustar " + root + "/mine");
  shell("tar czPf around.tar.gz --format=ustar runs/../mine");
  shell("tar czf other.tar.gz --format=ustar mine");
  shell("mkdir programs; cp mine programs; tar czf program.tar.gz --format=ustar programs");
  fs::rename(folder_ / "mine", folder_ / "was");
  for (const char* archive : {"up.tar.gz", "absolute.tar.gz", "around.tar.gz", "other.tar.gz", "program.tar.gz"}) {
    EXPECT_THAT(refusal(archive), AllOf(HasSubstr("mine"), HasSubstr("not in these folders"))) << archive;
  }
  EXPECT_FALSE(fs::exists(folder_ / "mine"));
  EXPECT_TRUE(files_in(folder_ / "out").empty());
}

TEST_F(ArchiveTest, WithLinksOrDevicesIsRefused) {
  write("secret", "secret");
  shell("mkdir runs; ln -s ../secret runs/soft; tar czf soft.tar.gz --format=ustar runs; rm runs/soft");
  shell("echo 1 > runs/a; ln runs/a runs/b; tar czf hard.tar.gz --format=ustar runs; rm runs/*");
  shell("mkfifo runs/pipe; tar czf pipe.tar.gz --format=ustar runs");
  const std::string target(150, 't');
  shell("rm runs/pipe; ln -s " + target + " runs/long");
  shell("tar czf gnu_link.tar.gz --format=gnu runs; tar czf pax_link.tar.gz --format=posix runs; rm runs/long");
  shell(
      "mknod runs/null c 1 3 && tar czf pax_device.tar.gz --format=posix runs || cp pax_link.tar.gz pax_device.tar.gz");
  for (const char* archive :
       {"soft.tar.gz", "hard.tar.gz", "pipe.tar.gz", "gnu_link.tar.gz", "pax_link.tar.gz", "pax_device.tar.gz"}) {
    EXPECT_THAT(refusal(archive), AnyOf(HasSubstr("which is no plain file"), HasSubstr("not in these folders")))
        << archive;
  }
}

TEST_F(ArchiveTest, WithSparseFilesIsRefused) {
  shell("mkdir runs; truncate -s 1000000 runs/holes; echo end >> runs/holes");
  for (const std::string format : {"gnu", "posix"}) {
    shell("tar czSf " + format + ".tar.gz runs --format=" + format);
    EXPECT_THAT(refusal(format + ".tar.gz"), AnyOf(HasSubstr("no plain file"), HasSubstr("holds sparse files")));
  }
}

TEST_F(ArchiveTest, WithNamesThatAreLongerThanOnesOfResultsIsRefused) {
  const std::string deep = "runs/" + std::string(200, 'a') + "/" + std::string(200, 'b');
  shell("mkdir -p " + deep + "; echo 1 > " + deep + "/DONE");
  for (const std::string format : {"gnu", "posix"}) {
    shell("tar czf " + format + ".tar.gz runs --format=" + format);
    EXPECT_THAT(refusal(format + ".tar.gz"), HasSubstr("not in these folders"));
  }
}

TEST_F(ArchiveTest, WithAFileTwiceIsRefused) {
  shell("mkdir runs; echo 1 > runs/a; tar czf twice.tar.gz --format=ustar runs/a ./runs/a --hard-dereference");
  EXPECT_THAT(refusal("twice.tar.gz"), HasSubstr("holds runs/a twice"));
}

TEST_F(ArchiveTest, ThatWouldFillTheDiskIsRefused) {
  shell("mkdir runs; head -c 200000000 /dev/zero > runs/zeros; tar czf bomb.tar.gz --format=ustar runs; rm runs/zeros");
  ASSERT_LT(fs::file_size(folder_ / "bomb.tar.gz"), 300000u);
  EXPECT_THAT(refusal("bomb.tar.gz"), AllOf(HasSubstr("holds more than"), HasSubstr("is not unpacked")));
  shell("for i in 1 2 3 4; do head -c 40000000 /dev/zero > runs/$i; done; tar czf many.tar.gz --format=ustar runs");
  EXPECT_THAT(refusal("many.tar.gz"), HasSubstr("is not unpacked"));
}

TEST_F(ArchiveTest, OfMoreFilesThanResultsOfItsSizeCanBeIsRefused) {
  shell("mkdir runs; cd runs; seq -f %g.toml 12000 | xargs touch");
  for (const std::string format : {"ustar", "posix"}) {
    fs::remove_all(folder_ / "out");
    shell("tar czf many.tar.gz runs --format=" + format);
    EXPECT_THAT(refusal("many.tar.gz"),
                AllOf(HasSubstr("holds more files than results of its size can be"), HasSubstr("is not unpacked")));
  }
}

TEST_F(ArchiveTest, MayHoldMoreTheLargerItIs) {
  std::mt19937 random(3);
  std::string norms(80'000'000, '\0');  // more than any archive may hold
  for (size_t at = 0; at < norms.size() / 100; ++at) norms[at] = static_cast<char>(random());
  write("ws/runs/aa/gradient_norms.f32", norms);
  write_atomically(folder_ / "a.tar.gz", pack(folder_ / "ws"));
  unpack(folder_ / "a.tar.gz", folder_ / "out");
  EXPECT_TRUE(test::read_text(folder_ / "out/runs/aa/gradient_norms.f32") == norms);
}

TEST_F(ArchiveTest, OfANameThatDoesNotFitIsNotMade) {
  write("ws/runs/aa/outputs/" + std::string(101, 'x') + ".stats", "");
  EXPECT_THAT(error_of([&] { pack(folder_ / "ws"); }), HasSubstr("does not fit into an archive"));
}

}  // namespace
}  // namespace tearless::harness::archive_test
