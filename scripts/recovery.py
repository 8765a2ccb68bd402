"""Kills workers of yoke and of torchrun and measures how long training stands still.

Every figure is from the moment of the kill, by the wall clock of this machine, to the moment at which the first step
(torchrun: the first all-reduce) of the next generation is done. scripts/recovery calls this."""

import argparse
import datetime
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
YOKE = ROOT / "build" / "yoke"
PEER_PYTHON = ROOT / ".peers" / "torch" / "bin" / "python"

PATIENCE = 30  # seconds that torchrun is given for a restart

PEER = """
import os, sys, time
import torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, restart = dist.get_rank(), os.environ["TORCHELASTIC_RESTART_COUNT"]
with open(os.path.join(sys.argv[1], f"pid-{rank}"), "w") as file:
    file.write(str(os.getpid()))
value = torch.ones(25000)
first = True
while True:
    dist.all_reduce(value)
    value.fill_(1)
    if first and rank == 0:
        with open(os.path.join(sys.argv[1], f"first-{restart}"), "w") as file:
            file.write(str(time.time()))
    first = False
    time.sleep(0.002)
"""


def wait_for(condition, seconds=60):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise SystemExit("recovery: waited in vain")


def events(run, cause):
    found = []
    for line in (run / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["cause"] == cause:
            found.append(datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp())
    return found


def status(folder):
    answer = subprocess.run([YOKE, "status", "run", "--json"], cwd=folder, capture_output=True, text=True)
    return json.loads(answer.stdout) if answer.returncode == 0 else None


def all_run(folder, workers):
    now = status(folder)
    if not now or sum(worker["phase"] == "running" for worker in now["workers"]) != workers:
        return None
    return [worker["pid"] for worker in now["workers"]] if len(now["workers"]) == workers else None


def yoke(transport, kills, sign, cause, workers=4):
    """Seconds from `sign` until the survivors' first step, and until the new worker's."""
    survivors, replaced = [], []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        command = [YOKE, "train", ROOT / "examples" / "digits.toml", "-n", str(workers), "--run", "run", "--steps",
                   "1000000", "--transport", transport, "--progress", "none", "--set", "train.eval_every=1000000"]
        with open(folder / "log", "w") as log:
            run = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            for kill in range(kills):
                pids = wait_for(lambda: all_run(folder, workers))
                time.sleep(0.2 + random.random() * 0.3)
                victim = random.choice(pids)
                before = len(events(folder / "runs" / "run", "join"))
                start = time.time()
                os.kill(victim, sign)
                lost = wait_for(lambda: events(folder / "runs" / "run", cause)[kill:])
                survivors.append(lost[0] - start)
                joined = wait_for(lambda: events(folder / "runs" / "run", "join")[before:])
                replaced.append(joined[0] - start)
        finally:
            run.send_signal(signal.SIGTERM)
            run.wait()
    return survivors, replaced


def torchrun_once(workers):
    """Seconds from SIGKILL until the first all-reduce after the restart of all; None: not within PATIENCE."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        script = folder / "peer.py"
        script.write_text(PEER)
        command = [PEER_PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(workers),
                   "--max-restarts", "1000", "--monitor-interval", "0.1", str(script), str(folder)]
        run = subprocess.Popen(command, env=dict(os.environ, OMP_NUM_THREADS="1"), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: (folder / "first-0").exists())
            time.sleep(0.2 + random.random() * 0.3)
            victim = int((folder / f"pid-{random.randrange(workers)}").read_text())
            start = time.time()
            os.kill(victim, signal.SIGKILL)
            until = time.monotonic() + PATIENCE
            while time.monotonic() < until:
                # A restart may fail and be followed by another: the first all-reduce of any counts.
                for path in folder.glob("first-*"):
                    if path.name != "first-0" and path.read_text():
                        return float(path.read_text()) - start
                time.sleep(0.01)
            return None
        finally:
            run.send_signal(signal.SIGTERM)
            try:
                run.wait(30)
            except subprocess.TimeoutExpired:
                run.kill()
                run.wait()


def torchrun(kills, workers=4):
    if not PEER_PYTHON.exists():
        raise SystemExit("recovery: torchrun is compared too; scripts/bench-peers installs it")
    return [torchrun_once(workers) for _ in range(kills)]


def show(what, seconds):
    ordered = sorted(seconds)
    print(f"{what:58} {statistics.median(ordered):8.3f} {ordered[int(len(ordered) * 0.95)]:8.3f} {ordered[-1]:8.3f}",
          flush=True)
    return statistics.median(ordered)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    kills = parser.parse_args().kills
    random.seed(1)
    print(f"command: scripts/recovery --kills {kills}; {os.cpu_count()} cores; 4 workers; seconds\n")
    print(f"{'':58} {'median':>8} {'p95':>8} {'max':>8}")
    medians = {}
    for transport in ("shm", "tcp"):
        survivors, replaced = yoke(transport, kills, signal.SIGKILL, "killed")
        medians[transport] = show(f"yoke, {transport}: SIGKILL to the survivors' first step", survivors)
        show(f"yoke, {transport}: SIGKILL to the first step with the new worker", replaced)
    hung, _ = yoke("shm", max(3, kills // 4), signal.SIGSTOP, "hung")
    show("yoke, shm: SIGSTOP to the survivors' first step (lease 2 s)", hung)
    tries = torchrun(max(3, kills // 4))
    again = [stall for stall in tries if stall is not None]
    print(f"torchrun: {len(again)} of {len(tries)} trained again within {PATIENCE} s")
    if again:
        peer = show("torchrun: SIGKILL to the first all-reduce after the restart", again)
        for transport, median in medians.items():
            print(f"yoke over torchrun, {transport}: {median / peer:.4f}")


if __name__ == "__main__":
    main()
