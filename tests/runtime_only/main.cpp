// Uses the whole public interface with nothing but the run side linked: runtime_only FILE.tsr

#include <cstdio>

#include "tessera/program.h"
#include "tessera/session.h"

int main(int count, char** words) {
  if (count != 2) return 2;
  auto program = tessera::Program::load(words[1]);
  if (!program) {
    std::fprintf(stderr, "%s\n", program.error().to_string().c_str());
    return 1;
  }
  auto session = tessera::Session::create(*program);
  if (!session) {
    std::fprintf(stderr, "%s\n", session.error().to_string().c_str());
    return 1;
  }
  if (const auto done = session->run(); !done) {
    std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
    return 1;
  }
  return 0;
}
