// Count counts to 50 000 000 again and again, beside threads that wait or yield. It answers "mark"
// on standard input with how long the counts took since the last mark.
//
//	count COUNTERS waiting N         N threads that are blocked
//	count COUNTERS yielding N [US]   N threads that are always runnable: they look for work for US, yield, and look again
//	count COUNTERS polling N [US]    N threads that look for work for US, sleep 50 us, and look again
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sched.h>
#include <string>
#include <thread>

#include "../witness/witness.h"

using witness::Clock;

static witness::Series counts("counts to 50 000 000");

__attribute__((noinline)) static void count_up() {
  volatile long n = 0;
  for (long i = 0; i < 50000000; i++) n = i;
  (void)n;
}

static std::atomic<long> work;

static bool look(std::chrono::microseconds how_long) {
  auto until = Clock::now() + how_long;
  do
    if (work.load(std::memory_order_relaxed) > 0) return true;
  while (Clock::now() < until);
  return false;
}

static std::mutex never_mu;
static std::condition_variable never;

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: count COUNTERS waiting|yielding|polling N [US]\n");
    return 2;
  }
  int counters = atoi(argv[1]), n = atoi(argv[3]);
  std::string how = argv[2];
  std::chrono::microseconds us(argc > 4 ? atoi(argv[4]) : 0);
  for (int i = 0; i < n; i++) {
    std::thread([how, us] {
      if (how == "yielding")
        while (!look(us)) sched_yield();
      if (how == "polling")
        while (!look(us)) std::this_thread::sleep_for(std::chrono::microseconds(50));
      std::unique_lock<std::mutex> l(never_mu);
      never.wait(l, [] { return false; });
    }).detach();
  }
  for (int i = 0; i < counters; i++) {
    std::thread([] {
      for (;;) {
        auto begin = Clock::now();
        count_up();
        counts.add(begin);
        // A counter rests as a worker does that waits for its next piece.
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }).detach();
  }
  witness::serve({&counts});
}
