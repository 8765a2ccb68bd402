#include "bench/rounds.h"

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "bench/comm/ranks.h"
#include "yoke/base/clock.h"
#include "yoke/base/text.h"

namespace yoke::bench {

void alternate(std::vector<Contender>& contenders, int rounds) {
  for (auto& contender : contenders) contender.turn();
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      auto& contender = contenders[(i + static_cast<std::size_t>(round)) % contenders.size()];
      contender.rounds.push_back(contender.turn());
    }
  }
}

namespace {

/// Part `q` of the way from the smallest to the largest.
double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace

double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

Ratio ratio(const Contender& contender, const Contender& base) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < contender.rounds.size(); ++i)
    ratios.push_back(contender.rounds[i] / base.rounds[i]);
  return {median(ratios), quantile(ratios, 0.25), quantile(ratios, 0.75)};
}

std::string fixed(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string text(const Ratio& ratio) {
  return cat(fixed(ratio.median, 3), " (", fixed(ratio.lower, 3), " to ", fixed(ratio.upper, 3),
             ")");
}

void print_table(const std::string& title, const std::vector<Row>& rows) {
  std::cout << "\n"
            << title << "\n\n| | ms | ratio (middle half) | against | target |\n"
            << "|---|---|---|---|---|\n";
  for (const Row& row : rows) {
    std::cout << "| " << row.contender->name << " | " << fixed(median(row.contender->rounds), 2)
              << " | " << (row.base != nullptr ? text(ratio(*row.contender, *row.base)) : "")
              << " | " << row.against << " | " << row.target << " |\n";
  }
  std::cout.flush();
}

void print_head(int count, char** arguments) {
  std::cout << machine() << "; libtorch " << YOKE_BENCH_TORCH_VERSION << "; " << utc_now() << "\n$";
  for (int i = 0; i < count; ++i) std::cout << " " << arguments[i];
  std::cout << std::endl;
}

}  // namespace yoke::bench
