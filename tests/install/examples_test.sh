#!/usr/bin/env bash
# The examples as a stranger builds them: yoke installed into a folder of its own, the examples copied away from the
# source tree and built by find_package(yoke), then run alone and under `yoke launch`, with the same bits.
#   examples_test.sh SOURCE BUILD
set -euo pipefail
source=$1
build=$2

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
# The line that starts with WORD in FILE, without the label "[0] " of `yoke launch`.
line() { sed 's/^\[[0-9]*\] //' "$2" | grep "^$1 " || fail "$2 has no line '$1': $(cat "$2")"; }

cmake --install "$build" --prefix "$folder/yoke" >/dev/null
cp -r "$source/examples" "$source/data" "$folder"
cmake -S "$folder/examples" -B "$folder/build" -G Ninja -DCMAKE_PREFIX_PATH="$folder/yoke"
cmake --build "$folder/build" --parallel 2
cd "$folder"
yoke=$folder/yoke/bin/yoke

build/collectives >pi.1
"$yoke" launch -n 2 -- build/collectives >pi.2
grep -q '3\.14.* 1 ranks' pi.1 || fail "collectives alone: $(cat pi.1)"
grep -q '3\.14.* 2 ranks' pi.2 || fail "collectives on 2 ranks: $(cat pi.2)"

build/minimal_loop >loop.1
"$yoke" launch -n 2 -- build/minimal_loop >loop.2
"$yoke" launch -n 3 -- build/minimal_loop >loop.3
[[ $(line parameters loop.1) == "$(line parameters loop.2)" ]] || fail "minimal_loop: 2 ranks have other bits than 1"
[[ $(line parameters loop.1) == "$(line parameters loop.3)" ]] || fail "minimal_loop: 3 ranks have other bits than 1"
awk '/^accuracy/ { exit !($2 > 95) }' loop.1 || fail "minimal_loop does not learn: $(cat loop.1)"

build/custom_model data/digits.csv.gz runs/one >model.1
"$yoke" launch -n 2 -- build/custom_model data/digits.csv.gz runs/two >model.2
[[ $(line state model.1) == "$(line state model.2)" ]] || fail "custom_model: 2 ranks have other bits than 1"
awk '/^test accuracy/ { exit !($3 > 93) }' model.1 || fail "custom_model does not learn: $(cat model.1)"

# A libtorch that is not there is refused by name.
if cmake -S "$folder/examples" -B "$folder/wrong" -G Ninja -DCMAKE_PREFIX_PATH="$folder/yoke" \
  -DYOKE_TORCH_DIR="$folder/nowhere" >wrong.log 2>&1; then
  fail "configured with a libtorch that is not there"
fi
tr -d '\n' <wrong.log | grep -q 'nowhere' || fail "the error does not name the folder: $(cat wrong.log)"
echo "the installed yoke builds and runs the examples"
