#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "yoke/net/transport.h"

namespace yoke::net {

/// Two ranks in different calls of one number.
struct Disagreement {
  int rank = -1;  ///< the odd one, if all others agree; else the one that was asked
  CallTag called;
  int other = -1;
  CallTag others_call;
  std::string text() const;
};

/// The last collective calls of this rank. Ranks that wait for each other inside different calls
/// exchange no frame that could show it; so one that waits for long asks the others where they
/// stand, and compares.
class CallLog {
 public:
  void note(const CallTag& tag);

  /// `answers[r]`: the call that rank r says it is in, if it has answered; this rank's is not
  /// looked at. Nothing if no answer contradicts the calls of this rank.
  std::optional<Disagreement> disagreement(int rank,
                                           std::span<const std::optional<CallTag>> answers) const;

 private:
  /// This rank's call under the number of `theirs`, if that was another.
  const CallTag* other_than(const CallTag& theirs) const;

  std::array<std::optional<CallTag>, 16> calls_;
  std::optional<CallTag> newest_;
};

}  // namespace yoke::net
