#pragma once

#include <functional>
#include <string>
#include <vector>

namespace yoke::bench {

/// One way of doing the same thing, and what it took in each round.
struct Contender {
  std::string name;
  std::function<double()> turn;  ///< milliseconds
  std::vector<double> rounds{};
};

/// Gives every contender one turn that does not count, then `rounds` turns, alternating; each round
/// starts with another one.
void alternate(std::vector<Contender>& contenders, int rounds);

double median(std::vector<double> values);

/// Contender against base: the ratio of each round, so that what slows the machine down for some
/// seconds cancels out; their median, and the middle half of them.
struct Ratio {
  double median = 0, lower = 0, upper = 0;
};
Ratio ratio(const Contender& contender, const Contender& base);

/// "1.013 (1.008 to 1.021)".
std::string text(const Ratio& ratio);
std::string fixed(double value, int digits);

/// One line of a Markdown table: each contender against the one before all of them.
struct Row {
  const Contender* contender;
  const Contender* base = nullptr;  ///< null: no ratio
  std::string against{};            ///< what the ratio is called
  std::string target{};             ///< "<= 1.03"; empty: none
};
void print_table(const std::string& title, const std::vector<Row>& rows);

/// Machine, threads, libtorch and this command, as the head of what a program prints.
void print_head(int count, char** arguments);

}  // namespace yoke::bench
