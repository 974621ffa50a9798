// Churn computes units of work: a unit copies 1 000 000 bytes 20 times. Either threads live long
// and take units from a queue, or a new thread is made for each unit and joined, as in an engine
// without a thread pool. More threads may wait and do nothing. It answers "mark" on standard input
// with the figures of the units since the last mark.
//
//	churn pool WORKERS [WAITING]        long-lived workers, and threads that only wait
//	churn spawn WORKERS                 each worker makes a thread for each unit, and joins it
//	churn burst THREADS                 so many threads at once, joined together, again and again: more than glibc's cache of
//	                                    stacks holds
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cerrno>
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

// Queue is the work queue of the pool. Each worker asks for a unit when it has finished one.
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

// A unit with a thread of its own loses the time until the thread runs, and the time from the end
// of its work until the thread has ended. Where the thread is joined at once, that includes the
// return of its stack.

static void spawn_worker() {
  for (;;) {
    auto asked = Clock::now(), done = asked;
    long making = 0;
    std::thread t([asked, &making, &done] {
      making = ns_since(asked);
      creations.add(asked);
      unit();
      done = Clock::now();
    });
    t.join();
    units.add(asked, making + ns_since(done));
  }
}

// Life is a thread of a burst.
struct Life {
  std::thread thread;
  Clock::time_point asked, done, ended;
  long making;
};

// The threads of a burst are joined long after they have ended. To know when that was, a watcher
// looks at them once a millisecond. It holds nothing up: it says at which thread it looks, and only
// the joiner of that one waits.
static std::vector<Life> burst;
static std::atomic<long> made{0}, joining{-1}, looking{-1};

static void watch_ends() {
  // A watcher that runs late sees an end late. Without the right to SCHED_FIFO it is late by its
  // waits for a CPU.
  sched_param first{1};
  pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    for (long i = joining + 1; i < made; i++) {
      looking = i;
      Life &x = burst[i];
      clockid_t clock;
      if (i < made && i > joining && x.ended == Clock::time_point() && pthread_getcpuclockid(x.thread.native_handle(), &clock) == ESRCH)
        x.ended = Clock::now();
      looking = -1;
    }
  }
}

static void burst_loop(int n) {
  burst.resize(n);
  std::thread(watch_ends).detach();
  for (;;) {
    joining = -1;
    for (long i = 0; i < n; i++) {
      Life &x = burst[i];
      x.ended = Clock::time_point();
      x.asked = Clock::now();
      x.thread = std::thread([&x] {
        x.making = ns_since(x.asked);
        creations.add(x.asked);
        unit();
        x.done = Clock::now();
      });
      made = i + 1;
    }
    for (long i = 0; i < n; i++) {
      Life &x = burst[i];
      joining = i;
      while (looking == i) std::this_thread::yield();
      x.thread.join();
      if (x.ended == Clock::time_point()) x.ended = Clock::now();
      units.add(x.asked, x.ended, x.making + std::chrono::nanoseconds(x.ended - x.done).count());
    }
    made = 0;
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
