// Churn computes units of work: a unit copies 1 000 000 bytes 20 times. Threads either live long and take units from a queue, or a new
// thread is made for each unit and joined, as an engine without a thread pool does. Some more threads may
// wait and do nothing. It answers "mark" on standard input with the figures of the units since the last mark.
//
//	churn pool WORKERS [WAITING]        long-lived workers, and threads that only wait
//	churn spawn WORKERS                 each worker makes a thread a unit and joins it
//	churn burst THREADS                 as many threads at once, joined together, again and again: beyond glibc's cache of stacks
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../witness/witness.h"

using witness::Clock, witness::ns_since;

static witness::Series units("units"), creations("thread creation");

__attribute__((noinline)) static void unit() {
  static const size_t size = 1000000;
  std::vector<char> a(size, 1), b(size);
  for (int i = 0; i < 20; i++) {
    memcpy(b.data(), a.data(), size);
    a[i] = b[size - 1 - i] + 1;
  }
}

// Work queue of the pool: each worker asks for a unit when it is done with one.
struct Queue {
  std::mutex mu;
  std::condition_variable more;
  long todo = 0;
} queue;

static void pool_worker() {
  for (;;) {
    {
      std::unique_lock<std::mutex> l(queue.mu);
      queue.more.wait(l, [] { return queue.todo > 0; });
      queue.todo--;
    }
    auto begin = Clock::now();
    unit();
    units.add(begin);
    std::lock_guard<std::mutex> l(queue.mu);
    queue.todo++;
    queue.more.notify_one();
  }
}

static void spawn_worker() {
  for (;;) {
    auto asked = Clock::now();
    long lost = 0;
    std::thread t([asked, &lost] {
      lost = ns_since(asked);
      creations.add(asked);
      unit();
    });
    t.join();
    units.add(asked, lost);
  }
}

static void burst_loop(int n) {
  for (;;) {
    std::vector<std::thread> ts;
    for (int i = 0; i < n; i++) {
      auto asked = Clock::now();
      ts.emplace_back([asked] {
        long lost = ns_since(asked);
        creations.add(asked);
        unit();
        units.add(asked, lost);
      });
    }
    for (auto &t : ts) t.join();
  }
}

static std::mutex never_mu;
static std::condition_variable never;

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: churn pool|spawn|burst THREADS [WAITING]\n");
    return 2;
  }
  std::string how = argv[1];
  int n = atoi(argv[2]), waiting = argc > 3 ? atoi(argv[3]) : 0;
  for (int i = 0; i < waiting; i++) {
    std::thread([] {
      std::unique_lock<std::mutex> l(never_mu);
      never.wait(l, [] { return false; });
    }).detach();
  }
  if (how == "pool") {
    queue.todo = n;
    for (int i = 0; i < n; i++) std::thread(pool_worker).detach();
  } else if (how == "spawn") {
    for (int i = 0; i < n; i++) std::thread(spawn_worker).detach();
  } else if (how == "burst") {
    std::thread(burst_loop, n).detach();
  } else {
    fprintf(stderr, "churn: no way %s to run units\n", how.c_str());
    return 2;
  }
  if (how == "pool") witness::serve({&units});
  witness::serve({&units, &creations});
}
