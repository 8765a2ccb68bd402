#include "yoke/observe/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/captured_stderr.h"
#include "tests/support/scoped_variable.h"
#include "yoke/base/error.h"

namespace yoke {
namespace {

using nlohmann::json;
using test::CapturedStderr;
using test::ScopedVariable;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Progress::Point point(std::int64_t step, std::string evaluation = "") {
  return {.step = step,
          .loss = 0.25,
          .lr = 0.01,
          .samples_per_second = 1234.5,
          .evaluation = std::move(evaluation)};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Descriptor 2 is a terminal of this width while it lives.
class TerminalStderr {
 public:
  explicit TerminalStderr(unsigned short columns) : saved_(::dup(STDERR_FILENO)) {
    const winsize size{24, columns, 0, 0};
    EXPECT_EQ(::openpty(&master_, &slave_, nullptr, nullptr, &size), 0);
    ::dup2(slave_, STDERR_FILENO);
  }
  ~TerminalStderr() {
    ::dup2(saved_, STDERR_FILENO);
    for (const int descriptor : {saved_, master_, slave_}) ::close(descriptor);
  }
  /// What was written to it since the last call. A terminal delivers late, so a bell is rung and
  /// waited for.
  std::string text() const {
    EXPECT_EQ(::write(slave_, "\a", 1), 1);
    std::string text;
    char letter = 0;
    while (::read(master_, &letter, 1) == 1 && letter != '\a') text += letter;
    return text;
  }

 private:
  int saved_, master_ = -1, slave_ = -1;
};

TEST(ProgressStyle, IsChosenByTheTerminal) {
  const ScopedVariable term("TERM", "xterm");
  {
    const TerminalStderr terminal(80);
    EXPECT_EQ(Progress::style_from("auto"), Progress::Style::kBar);
    const ScopedVariable dumb("TERM", "dumb");
    EXPECT_EQ(Progress::style_from("auto"), Progress::Style::kPlain);
  }
  const CapturedStderr captured;
  EXPECT_EQ(Progress::style_from("auto"), Progress::Style::kPlain);
}

TEST(ProgressStyle, MayBeNamed) {
  EXPECT_EQ(Progress::style_from("bar"), Progress::Style::kBar);
  EXPECT_EQ(Progress::style_from("plain"), Progress::Style::kPlain);
  EXPECT_EQ(Progress::style_from("json"), Progress::Style::kJson);
  EXPECT_EQ(Progress::style_from("none"), Progress::Style::kNone);
  try {
    Progress::style_from("plian");
    FAIL() << "plian is a style";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Did you mean plain?"));
  }
}

TEST(PlainProgress, ShowsFewLinesAndTheLastOne) {
  const CapturedStderr captured;
  {
    Progress progress(Progress::Style::kPlain, 1000, 0);
    for (int step = 1; step <= 1000; ++step) progress.show(point(step));
  }
  const auto lines = lines_of(captured.text());
  ASSERT_GE(lines.size(), 2u);
  EXPECT_LT(lines.size(), 100u) << "a thousand quick steps are not a thousand lines";
  EXPECT_THAT(lines.front(), StartsWith("step 1/1000  loss 0.25  lr 0.01  1234 samples/s  "));
  EXPECT_EQ(lines.back(), "step 1000/1000  loss 0.25  lr 0.01  1234 samples/s");
  EXPECT_THAT(captured.text(), Not(HasSubstr("\r")));
  EXPECT_THAT(captured.text(), Not(HasSubstr("\033")));
}

TEST(PlainProgress, ShowsWhereItStopped) {
  const CapturedStderr captured;
  {
    Progress progress(Progress::Style::kPlain, 1000, 0);
    for (int step = 1; step <= 7; ++step) progress.show(point(step));
  }
  EXPECT_THAT(lines_of(captured.text()).back(), StartsWith("step 7/1000"));
}

TEST(PlainProgress, AnEvaluationIsShownAtOnceAndKept) {
  const CapturedStderr captured;
  Progress progress(Progress::Style::kPlain, 3, 0);
  progress.show(point(1));
  progress.show(point(2, "accuracy 97.2 %"));
  progress.say("saved checkpoints/step-00000002");
  progress.show(point(3));
  const auto lines = lines_of(captured.text());
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[1], HasSubstr("accuracy 97.2 %"));
  EXPECT_EQ(lines[2], "saved checkpoints/step-00000002");
  EXPECT_THAT(lines[3], HasSubstr("accuracy 97.2 %"));
}

TEST(JsonProgress, IsAnObjectALine) {
  const CapturedStderr captured;
  {
    Progress progress(Progress::Style::kJson, 10, 4);
    progress.show(point(5));
    progress.say("hello");
    progress.show(point(6, "perplexity 3.1"));
    progress.show(point(7));
  }
  const auto lines = lines_of(captured.text());
  ASSERT_EQ(lines.size(), 4u);
  const json first = json::parse(lines[0]);
  EXPECT_EQ(first.at("step"), 5);
  EXPECT_EQ(first.at("steps"), 10);
  EXPECT_EQ(first.at("loss"), 0.25);
  EXPECT_GE(first.at("seconds_left").get<double>(), 0);
  EXPECT_EQ(json::parse(lines[1]).at("message"), "hello");
  EXPECT_EQ(json::parse(lines[2]).at("evaluation"), "perplexity 3.1");
  EXPECT_EQ(json::parse(lines[3]).at("step"), 7);
}

TEST(NoProgress, IsSilent) {
  const CapturedStderr captured;
  {
    Progress progress(Progress::Style::kNone, 10, 0);
    progress.show(point(10));
    progress.say("hello");
  }
  EXPECT_EQ(captured.text(), "");
}

TEST(BarProgress, IsOneLineThatIsRedrawnAndEnded) {
  const ScopedVariable term("TERM", "xterm"), color("NO_COLOR", "1");
  const TerminalStderr terminal(120);
  {
    Progress progress(Progress::Style::kBar, 4, 0);
    progress.show(point(1));
    EXPECT_THAT(terminal.text(), StartsWith("\r[#####...............] step 1/4  loss 0.25"));
    progress.say("a line of its own");
    const std::string said = terminal.text();
    EXPECT_THAT(said, StartsWith("\r\033[Ka line of its own\r\n["));
    EXPECT_THAT(said, HasSubstr("step 1/4"));
    progress.show(point(4));
    EXPECT_THAT(terminal.text(), StartsWith("\r[####################] step 4/4"));
  }
  EXPECT_EQ(terminal.text(), "\r\n");
}

TEST(BarProgress, IsNeverAsWideAsTheTerminal) {
  const ScopedVariable term("TERM", "xterm"), color("NO_COLOR", "1");
  for (const unsigned short columns : {10, 40, 60, 79, 200}) {
    const TerminalStderr terminal(columns);
    Progress progress(Progress::Style::kBar, 4, 0);
    progress.show(point(4, "accuracy 97.2 %"));
    const std::string text = terminal.text();
    ASSERT_THAT(text, StartsWith("\r"));
    const std::string line = text.substr(1, text.find("\033[K") - 1);
    EXPECT_LT(line.size(), columns) << line;
    EXPECT_EQ(line.starts_with("["), columns == 200 || line.size() > 70) << line;
  }
}

TEST(BarProgress, HasColorWhereItIsWanted) {
  const ScopedVariable term("TERM", "xterm"), none("NO_COLOR", std::nullopt);
  const TerminalStderr terminal(120);
  Progress progress(Progress::Style::kBar, 4, 0);
  progress.show(point(4));
  EXPECT_THAT(terminal.text(), HasSubstr("\033[32m####"));
}

}  // namespace
}  // namespace yoke
