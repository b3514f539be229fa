// Root may write anywhere, so a test of an unwritable folder proves nothing until it has given root's rights up.
#pragma once

namespace tearless::test {

// While it lives, this process has the file access rights of `nobody` (a no-op for ordinary users).
// Child processes started meanwhile inherit them. Not for concurrent threads.
class WithoutRoot {
 public:
  WithoutRoot();
  ~WithoutRoot();
  WithoutRoot(const WithoutRoot&) = delete;
  WithoutRoot& operator=(const WithoutRoot&) = delete;

 private:
  bool was_root_;
};

}  // namespace tearless::test
