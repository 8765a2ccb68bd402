#include "yoke/base/terminal.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "tests/support/scoped_variable.h"

namespace yoke {
namespace {

using test::ScopedVariable;
using Value = std::optional<std::string>;

struct Terminal {
  Terminal() { EXPECT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0); }
  ~Terminal() {
    ::close(master);
    ::close(slave);
  }
  int master = -1, slave = -1;
};

struct NoTerminal {
  NoTerminal() { EXPECT_EQ(::pipe(ends), 0); }
  ~NoTerminal() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  int ends[2];
};

TEST(Terminals, ColorFollowsTheFirstThatSpeaks) {
  const Terminal terminal;
  const NoTerminal pipe;
  struct Row {
    Value no_color, clicolor_force, force_color, term;
    bool on_terminal, on_pipe;
  };
  const Value unset = std::nullopt;
  int number = 0;
  for (const Row& row : std::initializer_list<Row>{
           {unset, unset, unset, "xterm", true, false},
           {unset, unset, unset, "dumb", false, false},
           {"", unset, unset, "xterm", true, false},
           {"1", unset, unset, "xterm", false, false},
           {"1", "1", "1", "xterm", false, false},
           {unset, "1", unset, "dumb", true, true},
           {unset, unset, "1", "xterm", true, true},
           {unset, "0", unset, "xterm", true, false},
       }) {
    const ScopedVariable a("NO_COLOR", row.no_color), b("CLICOLOR_FORCE", row.clicolor_force),
        c("FORCE_COLOR", row.force_color), d("TERM", row.term);
    ++number;
    EXPECT_EQ(wants_color(terminal.slave), row.on_terminal) << "row " << number;
    EXPECT_EQ(wants_color(pipe.ends[1]), row.on_pipe) << "row " << number;
  }
}

TEST(Terminals, OnlyAnAbleTerminalIsRedrawn) {
  const Terminal terminal;
  const NoTerminal pipe;
  {
    const ScopedVariable term("TERM", "xterm");
    EXPECT_TRUE(can_redraw(terminal.slave));
    EXPECT_FALSE(can_redraw(pipe.ends[1]));
  }
  for (const Value& value : {Value("dumb"), Value(""), Value()}) {
    const ScopedVariable term("TERM", value);
    EXPECT_FALSE(can_redraw(terminal.slave));
  }
}

}  // namespace
}  // namespace yoke
