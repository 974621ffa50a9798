// Witness is package witness for programs in C++: it gives the lab, when asked, how long each unit
// of work took.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <string>
#include <vector>

namespace witness {

using Clock = std::chrono::steady_clock;

inline long ns_since(Clock::time_point t) { return std::chrono::nanoseconds(Clock::now() - t).count(); }

// Series records durations; many threads may.
class Series {
  struct Unit {
    long ns, lost;
    Clock::time_point begin;
  };
  // There are many, and they allocate nothing while they fill, so that the measurement makes no
  // trouble of its own.
  struct Shard {
    std::mutex mu;
    std::vector<Unit> units;
    Shard() { units.reserve(4096); }
  } shards[256];
  std::atomic<unsigned> next{0};
  Clock::time_point since = Clock::now();
  const char *name;

public:
  explicit Series(const char *name) : name(name) {}

  // add records a unit that started at begin and ends now, and how much of it was lost to the
  // trouble of the case, where that is known.
  void add(Clock::time_point begin, long lost = 0) { add(begin, Clock::now(), lost); }

  void add(Clock::time_point begin, Clock::time_point end, long lost) {
    Unit u{std::chrono::nanoseconds(end - begin).count(), lost, begin};
    Shard &s = shards[next.fetch_add(1, std::memory_order_relaxed) % 256];
    std::lock_guard<std::mutex> l(s.mu);
    s.units.push_back(u);
  }

  // mark gives the figures since the last mark as a JSON object, see witness.Figures; with all,
  // every unit too.
  std::string mark(bool all) {
    std::vector<Unit> units;
    for (Shard &s : shards) {
      std::lock_guard<std::mutex> l(s.mu);
      units.insert(units.end(), s.units.begin(), s.units.end());
      s.units.clear();
    }
    long wall = ns_since(since);
    since = Clock::now();
    std::sort(units.begin(), units.end(), [](const Unit &a, const Unit &b) { return a.ns < b.ns; });
    size_t n = units.size(), slow = std::min(n, std::max<size_t>(10, n / 100));
    long sum = 0, slowest = 0;
    for (size_t i = 0; i < n; i++) {
      sum += units[i].ns;
      if (i >= n - slow) slowest += units[i].ns;
    }
    auto at = [&](size_t i) { return n ? units[i].ns : 0; };
    char buf[512];
    snprintf(buf, sizeof buf,
             "{\"name\":\"%s\",\"n\":%zu,\"failed\":0,\"wall_ns\":%ld,\"mean_ns\":%ld,\"slow_ns\":%ld,\"p50_ns\":%ld,\"p99_ns\":%ld,\"max_ns\":%ld",
             name, n, wall, n ? sum / (long)n : 0, slow ? slowest / (long)slow : 0, at((n - 1) / 2), at((n - 1) * 99 / 100), at(n - 1));
    std::string out = buf;
    if (all) {
      // Units have the steady clock. Reading both at one moment converts it.
      long steady = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
      long wall_clock = std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
      out += ",\"all\":[";
      for (const Unit &u : units) {
        long begin = wall_clock - steady + std::chrono::nanoseconds(u.begin.time_since_epoch()).count();
        snprintf(buf, sizeof buf, "%s[%ld,%ld,%ld]", out.back() == '[' ? "" : ",", begin, u.ns, u.lost);
        out += buf;
      }
      out += "]";
    }
    return out + "}";
  }
};

// serve says that the program is ready, and answers marks. At the end of its input it ends the
// program.
inline void serve(std::vector<Series *> all) {
  printf("ready\n");
  fflush(stdout);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::string out = "[";
    for (Series *s : all) out += (out.size() > 1 ? "," : "") + s->mark(line == "mark all");
    printf("%s]\n", out.c_str());
    fflush(stdout);
  }
  _Exit(0);
}

}  // namespace witness
