#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "yoke/cli/program.h"

int main(int count, char** arguments) {
  // A pipe must not become descriptor 0, 1 or 2 because the caller has closed those.
  int descriptor = -1;
  do {
    descriptor = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  } while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor >= 0) ::close(descriptor);
  // A file that reaches the limit of its size (ulimit -f) is an error of its writer, not our death.
  ::signal(SIGXFSZ, SIG_IGN);
  // So is a reader of our output who has left: there are ranks to end and files to remove.
  ::signal(SIGPIPE, SIG_IGN);
  return yoke::cli::run_program({arguments, arguments + count});
}
