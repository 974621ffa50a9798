// Churn computes units of work: a unit copies 1 000 000 bytes 20 times. Threads either live long and take units from a queue, or a new
// thread is made for each unit and joined, as an engine without a thread pool does. Some more threads may
// wait and do nothing. It answers "mark" on standard input with the figures of the units since the last mark.
//
//	churn pool WORKERS [WAITING]        long-lived workers, and threads that only wait
//	churn spawn WORKERS                 each worker makes a thread a unit and joins it
//	churn burst THREADS                 as many threads at once, joined together, again and again: beyond glibc's cache of stacks
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;

struct Series {
  // Many, and filled without making memory, so that measuring is no trouble of its own.
  struct Shard {
    std::mutex mu;
    std::vector<long> ns;
    Shard() { ns.reserve(4096); }
  } shards[256];
  std::atomic<unsigned> next{0};
  Clock::time_point since = Clock::now();
  void add(long d) {
    Shard &s = shards[next.fetch_add(1, std::memory_order_relaxed) % 256];
    std::lock_guard<std::mutex> l(s.mu);
    s.ns.push_back(d);
  }
  // The figures as one JSON object, see package witness.
  std::string mark(const char *name) {
    std::vector<long> all;
    Clock::time_point begin = since;
    for (Shard &s : shards) {
      std::lock_guard<std::mutex> l(s.mu);
      all.insert(all.end(), s.ns.begin(), s.ns.end());
      s.ns.clear();
    }
    since = Clock::now();
    long wall = std::chrono::nanoseconds(Clock::now() - begin).count();
    std::sort(all.begin(), all.end());
    size_t n = all.size(), slow = std::min(n, std::max<size_t>(10, n / 100));
    long sum = 0, slowest = 0;
    for (size_t i = 0; i < n; i++) {
      sum += all[i];
      if (i >= n - slow) slowest += all[i];
    }
    char buf[512];
    snprintf(buf, sizeof buf,
             "{\"name\":\"%s\",\"n\":%zu,\"failed\":0,\"wall_ns\":%ld,\"mean_ns\":%ld,\"slow_ns\":%ld,\"p50_ns\":%ld,\"p99_ns\":%ld,\"max_ns\":%ld}",
             name, n, wall, n ? sum / (long)n : 0, slow ? slowest / (long)slow : 0, n ? all[(n - 1) / 2] : 0, n ? all[(n - 1) * 99 / 100] : 0, n ? all[n - 1] : 0);
    return buf;
  }
};

static Series units, creations;

static long ns_since(Clock::time_point t) { return std::chrono::nanoseconds(Clock::now() - t).count(); }

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
    units.add(ns_since(begin));
    std::lock_guard<std::mutex> l(queue.mu);
    queue.todo++;
    queue.more.notify_one();
  }
}

static void spawn_worker() {
  for (;;) {
    auto asked = Clock::now();
    std::thread t([asked] {
      creations.add(ns_since(asked));
      unit();
    });
    t.join();
    units.add(ns_since(asked));
  }
}

static void burst_loop(int n) {
  for (;;) {
    std::vector<std::thread> ts;
    for (int i = 0; i < n; i++) {
      auto asked = Clock::now();
      ts.emplace_back([asked] {
        creations.add(ns_since(asked));
        unit();
        units.add(ns_since(asked));
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
  printf("ready\n");
  fflush(stdout);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::string out = "[" + units.mark("units");
    if (how != "pool") out += "," + creations.mark("thread creation");
    printf("%s]\n", out.c_str());
    fflush(stdout);
  }
  _Exit(0);
}
