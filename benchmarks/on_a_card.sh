#!/usr/bin/env bash
# What only a GPU can tell, in order of worth, for whoever has one for a quarter of an hour:
#
#   benchmarks/on_a_card.sh                  # every part that is not done yet
#   benchmarks/on_a_card.sh decoding vllm    # these parts
#   benchmarks/on_a_card.sh --rehearse       # all parts with tiny models on the CPU
#   benchmarks/on_a_card.sh --list
#
# A part takes at most LIMIT seconds (120). Rows are written to $OUT (benchmarks/results) as they are
# measured; $OUT/on_a_card_MACHINE.csv says which parts are done, failed, timed out or left out. The
# same command leaves out what is done and goes on; what a part printed is in $OUT/on_a_card_logs.
# PYTHON is an interpreter that has faithscope (.venv/bin/python), VLLM one that has vLLM, FOLDER a
# place for 15 GB of random weights, MACHINE the name in the files.

set -u
cd "$(dirname "$0")/.." || exit 2

device=cuda size=8b rehearsing= names=()
for argument in "$@"; do
  case $argument in
    --rehearse) device=cpu size=tiny rehearsing=1 ;;
    --list) names=(--list) ;;
    -*) echo "unknown option $argument; see the head of $0" >&2; exit 2 ;;
    *) names+=("$argument") ;;
  esac
done

PYTHON=${PYTHON:-.venv/bin/python}
LIMIT=${LIMIT:-120}
MACHINE=${MACHINE:-$(hostname)}
OUT=$(realpath -m "${OUT:-benchmarks/results}")
[ -z "$rehearsing" ] || OUT=$OUT/rehearsal
FOLDER=${FOLDER:-${TMPDIR:-/tmp}/faithscope-random-$size}
VLLM=${VLLM:-auto}
STATES=$OUT/on_a_card_$MACHINE.csv
LOGS=$OUT/on_a_card_logs
KEPT=(--machine "$MACHINE" --out "$OUT")
RANDOM_MODEL=(--device "$device" --size "$size" "${KEPT[@]}")
export FAITHSCOPE_TEST_DEVICE=$device TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1
[ -z "$rehearsing" ] || export CUDA_VISIBLE_DEVICES=

# tiny VALUE [REHEARSED]: the value, or what stands for it in a rehearsal
tiny() { if [ -n "$rehearsing" ]; then echo "$2"; else echo "$1"; fi; }
tests() { "$PYTHON" -m pytest -q -p no:cacheprovider --tb=short "$@"; }
weights() {
  [ -f "$FOLDER/config.json" ] ||
    "$PYTHON" benchmarks/random_model.py "$FOLDER" --device "$device" --size "$size"
}
# why a part cannot be measured here; empty if it can
lacks() {
  [ -z "$rehearsing" ] || return
  case $1 in
    vllm_*) has_vllm || echo "no vLLM here: VLLM=INTERPRETER names one" ;;
    bits_*) "$PYTHON" -c 'import bitsandbytes' 2>/dev/null || echo "no bitsandbytes here: pip install bitsandbytes" ;;
  esac
}
has_vllm() { [ "$VLLM" != auto ] || compgen -G "${FAITHSCOPE_CACHE:-$HOME/.cache/faithscope}/environments/vllm*/ready" >/dev/null; }
at_once() {
  "$PYTHON" benchmarks/items_at_once.py "${RANDOM_MODEL[@]}" --steps "$(tiny 10 2)" \
    --at-once "$(tiny "$1" 2)" --items "$(tiny "$2" 2)"
}
quantised() {
  local how=(--quantize "$1")
  [ -z "$rehearsing" ] || how=() # the whole weights stand for those that bitsandbytes would make
  weights && "$PYTHON" benchmarks/gpu.py --model "$FOLDER" --device "$device" "${how[@]}" \
    "${KEPT[@]}" --sets "$(tiny 10x25 2x5)" --skip naive,padded,depth_first,runs,mask,flex \
    --decoding "$(tiny 20x25 2x5)" --rows "" --tracing ""
}
peers() {
  weights && "$PYTHON" benchmarks/peers.py --model "$FOLDER" --dtype "$(tiny auto float32)" \
    "${KEPT[@]}" --vllm "$VLLM" --repeats "$(tiny 3 1)" --steps "$(tiny "$2" 2)" --measures "$1" \
    --ways "$(tiny naive,vllm,ours naive,ours)"
}

# --- The parts: each is a function, and a line of PARTS with what it is for -----------------------

PARTS="
flex          FlexAttention, and packs with knockouts, against plain attention
engine        the other identities of the engine: packs, decoding, graphs, patches, steering
sets          packs at T = 10, 20, 40 by each way of attending
at_once_4     SLRC of 8 items, 4 at once, warm
at_once_8     SLRC of 16 items, 8 at once
at_once_16    SLRC of 16 items at once
at_once_32    SLRC of 32 items at once
decoding      a step of decoding, ours and transformers'
vllm_writes   vLLM's decoding and removal with 24 tokens written, beside ours
vllm_scores   vLLM's early answers and SLRC set, beside ours
screening     a screen of 8,192 tokens against exact removals
bits_8        a pack and a decoding step in 8 bits
bits_4        the same in 4 bits
plants        planted models of two seeds of weights: do measures find what is planted
"
flex() {
  tests tests/interp/test_flex.py tests/interp/test_attention_cuts.py \
    -k "$(tiny '' 'kept_where or given_as_a_list')"
}
engine() {
  tests tests/interp/test_engine.py tests/interp/test_graphs.py tests/interp/test_patches.py \
    tests/interp/test_steers.py tests/interp/test_shared_trunk.py tests/interp/test_recompute.py \
    tests/interp/test_written_under_edits.py tests/interp/test_side_by_side.py \
    -k "$(tiny '' 'counts_every_token or started_anew')"
}
sets() {
  "$PYTHON" benchmarks/gpu.py "${RANDOM_MODEL[@]}" --sets "$(tiny 10x25,20x25,40x25 2x5)" \
    --skip naive,depth_first --decoding "" --rows "" --tracing ""
}
at_once_4() { at_once 4 8; }
at_once_8() { at_once 8 16; }
at_once_16() { at_once 16 16; }
at_once_32() { at_once 32 32; }
decoding() {
  "$PYTHON" benchmarks/gpu.py "${RANDOM_MODEL[@]}" --sets "" --decoding "$(tiny 20x25,10x640 2x5)" \
    --rows "" --tracing ""
}
vllm_writes() { peers decoding,removal 10,20; }
vllm_scores() { peers early_answers,slrc 10,20,40; }
screening() {
  "$PYTHON" benchmarks/screening.py "${RANDOM_MODEL[@]}" --length "$(tiny 8192 400)" \
    --steps "$(tiny 200 8)" --exact "$(tiny 20 2)"
}
bits_8() { quantised 8bit; }
bits_4() { quantised 4bit; }
plants() {
  "$PYTHON" -m faithscope.experiments.cli run planted --set model.device="$device" \
    --set "model.name=$(tiny '[planted:faithful,planted:faithful@1,planted:hint,planted:hint@1,planted:decorative,planted:decorative@1]' '[planted:faithful,planted:faithful@1]')" \
    --set tasks=[planted] --set data.limit="$(tiny 30 2)" --set report.bootstrap=100 \
    --set "probes=$(tiny '[slrc,causal_effects,knockout,attention,tracing]' '[slrc]')" \
    --set out="$OUT" --set name=on_a_card_plants
}

# --- Carrying them out ------------------------------------------------------------------------------

mapfile -t LINES < <(grep -v '^$' <<<"$PARTS")
if [ "${names[*]}" = --list ]; then printf '%s\n' "${LINES[@]}"; exit; fi
for name in "${names[@]}"; do
  grep -q "^$name " <<<"$PARTS" || { echo "no part $name; see $0 --list" >&2; exit 2; }
done
mkdir -p "$LOGS" || exit 2
[ -f "$STATES" ] || echo part,state,seconds,note,run >"$STATES"
trap 'echo "stopped: the same command goes on"; exit 130' INT TERM

# parts run in a shell of their own, so that a limit ends whatever they started
export PYTHON LIMIT MACHINE OUT FOLDER VLLM device size rehearsing
export -f $(grep -o '^[a-z_0-9]*' <<<"$PARTS") tiny tests weights at_once quantised peers
SHARED=$(declare -p KEPT RANDOM_MODEL)

note() { # PART STATE SECONDS: one row for a part, the newest
  local said
  said=$(tail -n 1 "$LOGS/$1.log" 2>/dev/null | tr -d '",' | cut -c 1-150)
  grep -v "^$1," "$STATES" >"$STATES.new"
  echo "$1,$2,$3,\"$said\",$(date -u +%Y-%m-%dT%H:%MZ)" >>"$STATES.new" && mv "$STATES.new" "$STATES"
  printf '%-12s %-10s %4s s  %s\n' "$1" "$2" "$3" "$said"
}

failed=0
for line in "${LINES[@]}"; do
  part=${line%% *}
  [ ${#names[@]} = 0 ] || [[ " ${names[*]} " = *" $part "* ]] || continue
  if grep -q "^$part,done" "$STATES"; then echo "$part is done"; continue; fi
  lacking=$(lacks "$part")
  if [ -n "$lacking" ]; then
    echo "$lacking" >"$LOGS/$part.log"
    note "$part" "left out" 0
    continue
  fi
  begun=$SECONDS
  # INT lets Python write what it has; what does not end then is killed
  timeout --signal=INT --kill-after=15 "$LIMIT" bash -c "$SHARED; $part" >"$LOGS/$part.log" 2>&1
  case $? in
    0) note "$part" done $((SECONDS - begun)) ;;
    124 | 137) note "$part" "timed out" $((SECONDS - begun)); failed=1 ;;
    *) note "$part" failed $((SECONDS - begun)); failed=1 ;;
  esac
done

echo
column -s, -t <(cut -d, -f 1-3 "$STATES") 2>/dev/null || cat "$STATES"
exit $failed
