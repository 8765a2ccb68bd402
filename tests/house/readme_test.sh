#!/usr/bin/env bash
# Every row of the README's table of features names tests, and each of them is one that ctest runs.
#   readme_test.sh SOURCE BUILD
set -euo pipefail
readme=$1/README.md
build=$2

known=$(mktemp)
trap 'rm -f "$known"' EXIT
ctest --test-dir "$build" -N | sed -n 's/^ *Test *#[0-9]*: //p' | sed 's/ .*//' >"$known"

rows=0
wrong=0
while IFS= read -r row; do
  rows=$((rows + 1))
  # shellcheck disable=SC2016  # the backticks are the README's
  tests=$(sed 's/ *|$//; s/.*| *//' <<<"$row" | grep -o '`[^`]*`' | tr -d '`' || true)
  if [[ -z $tests ]]; then
    echo "names no test: $row"
    wrong=$((wrong + 1))
  fi
  for name in $tests; do
    # `Suite.*` stands for all tests of a suite, and a test with parameters for all instances of it.
    pattern=$(sed 's/[.[]/\\&/g; s/\*/.*/g' <<<"$name")
    if ! grep -qxE -- "([^.]*/)?${pattern/\\./(\/[^.]*)?\\.}(/.*)?" "$known"; then
      echo "no such test: $name, in the row: $row"
      wrong=$((wrong + 1))
    fi
  done
done < <(sed -n '/<!-- features -->/,/<!-- end of features -->/p' "$readme" | grep '^|' | tail -n +3)

echo "$rows rows, $(wc -l <"$known") tests known"
((rows >= 10)) || { echo "the table of features was not found"; exit 1; }
((wrong == 0))
