#!/usr/bin/env bash
# Performs an action with a command: docs/performers.md has the protocol. It needs nats (github.com/nats-io/natscli) and jq.
#
#   performer.sh ACTION COMMAND...
#
# The command reads the input of a task as JSON, and writes the result as JSON; no output is null. If it fails, the last line
# that it has written to stderr is the error, "TypeOfError: message". SETTLE_KEY, SETTLE_SPACE, SETTLE_ATTEMPT, SETTLE_EVENT
# and SETTLE_IDEMPOTENCY_KEY, for the service that the command uses, are in its environment.
# SLOTS is how many commands run at the same time (default 1), QUEUE the queue whose tasks are taken. NATS_URL and the other
# variables of nats say where, and as which user: one with the role performer.
set -uo pipefail

action=${1:?the name of an action}
shift
queue=${QUEUE:+.$QUEUE}
slots=${SLOTS:-1}
work_dir=$(mktemp -d)
trap 'rm -rf "$work_dir"' EXIT

nats() { command nats --inbox-prefix=_INBOX_performer "$@"; }

# confirm sends an answer. It succeeds if the worker has accepted it, and fails with 1 if the worker does not want it, with 2 if there
# was no word.
confirm() {
  local said
  said=$(nats request --raw --no-templates "$1" "$2" 2>/dev/null) || return 2
  case $(jq -r 'if .ok then "ok" elif .over or .refused then "over" else "" end' <<<"$said" 2>/dev/null) in
    ok) return 0 ;;
    over) return 1 ;;
    *) return 2 ;;
  esac
}

# decline hands a task to other performers.
decline() { nats publish --quiet "$1" '{"busy":true}' 2>/dev/null; }

# perform performs a task. The worker hears of it as long as the command runs; what it does not want any more is killed.
perform() {
  local work=$1 answer beat dir
  answer=$(jq -r .answer <<<"$work")
  beat=$(jq -r '.heartbeat_ms / 1000' <<<"$work")
  dir=$(mktemp -d "$work_dir/XXXXXX")
  confirm "$answer" '{"claim":true}' || return 0
  export SETTLE_KEY SETTLE_SPACE SETTLE_ATTEMPT SETTLE_EVENT SETTLE_IDEMPOTENCY_KEY
  SETTLE_KEY=$(jq -r .key <<<"$work") SETTLE_SPACE=$(jq -r .space <<<"$work") SETTLE_ATTEMPT=$(jq -r .attempt <<<"$work")
  SETTLE_EVENT=$(jq -r '.event // ""' <<<"$work") SETTLE_IDEMPOTENCY_KEY=$(jq -r .idempotency_key <<<"$work")
  jq -c '.in' <<<"$work" | setsid "${command[@]}" >"$dir/out" 2>"$dir/err" &
  local pid=$!
  (
    silent=0
    while sleep "$beat"; do
      confirm "$answer" '{"heartbeat":true}'
      case $? in
        0) silent=0 ;;
        1) silent=3 ;;
        *) ((++silent)) ;;
      esac
      if ((silent >= 3)); then
        touch "$dir/unwanted"
        kill -- "-$pid"
        exit
      fi
    done 2>/dev/null
  ) &
  local beating=$!
  wait "$pid"
  local status=$?
  kill "$beating" 2>/dev/null
  wait "$beating" 2>/dev/null
  local end
  if [[ -e $dir/unwanted ]]; then
    return 0
  elif [[ $status == 0 ]]; then
    end=$(jq -cs '{out: (if length == 0 then null else .[0] end)}' "$dir/out" 2>/dev/null) || end='{"error":{"message":"the output of the command is not JSON"}}'
  else
    end=$(tail -n 1 "$dir/err" | jq -Rc 'capture("^(?<type>[A-Za-z0-9_-]{1,64}): (?<message>.*)$") // {message: .} | {error: .}')
    [[ -n $end ]] || end='{"error":{"message":"the command failed with status '$status'"}}'
  fi
  # An argument of a command has at most 128 KiB.
  ((${#end} < 100000)) || end='{"error":{"type":"LimitError","message":"the output of the command is longer than 100000 bytes"}}'
  for try in 1 2 3 4 5 6; do
    confirm "$answer" "$end"
    (($? == 2)) || return 0
    sleep "$try"
  done
}

command=("$@")
nats subscribe --raw --queue performers "settle.work.$action$queue" 2>"$work_dir/log" | while IFS= read -r work; do
  [[ -n $work ]] || continue
  if (($(jobs -pr | wc -l) >= slots)); then
    decline "$(jq -r .answer <<<"$work")"
  else
    perform "$work" &
  fi
done
