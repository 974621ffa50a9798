// The C++ server under stress: one thread per connection, which computes, allocates, and takes a
// mutex that all of them share. It waits for a line on standard input, says where it listens, and
// ends when standard input does.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

static std::mutex table_mutex;
static std::map<uint64_t, uint64_t> table;

static uint64_t work() {
  uint64_t h = 14695981039346656037u;
  for (int i = 0; i < 300 << 10; i++) h = (h ^ (i & 1023)) * 1099511628211u;
  std::vector<std::string> parts;
  for (int i = 0; i < 1000; i++) parts.push_back(std::to_string(h + i) + " of a text that is not short");
  for (const auto& p : parts) h ^= p.size() * p[3];
  std::lock_guard<std::mutex> lock(table_mutex);
  return ++table[h % 4096];
}

static void serve(int fd) {
  char in[4096];
  size_t have = 0;
  for (ssize_t n; (n = read(fd, in + have, sizeof in - 1 - have)) > 0;) {
    have += n;
    in[have] = 0;
    for (char* end; (end = strstr(in, "\r\n\r\n"));) {
      have -= end + 4 - in;
      memmove(in, end + 4, have + 1);
      char out[128];
      int len = snprintf(out, sizeof out, "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n%016llx\n",
                         (unsigned long long)work());
      if (write(fd, out, len) != len) break;
    }
    if (have >= sizeof in - 1) break;
  }
  close(fd);
}

int main() {
  char line[16];
  if (read(0, line, sizeof line) <= 0) return 1;
  int ln = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t len = sizeof a;
  if (bind(ln, (sockaddr*)&a, len) || listen(ln, 512) || getsockname(ln, (sockaddr*)&a, &len)) {
    perror("listen");
    return 1;
  }
  std::thread([ln, on] {
    for (int fd; (fd = accept(ln, nullptr, nullptr)) >= 0;) {
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      std::thread(serve, fd).detach();
    }
  }).detach();
  printf("addr=127.0.0.1:%d\n", ntohs(a.sin_port));
  fflush(stdout);
  while (read(0, line, sizeof line) > 0) {
  }
  _exit(0);
}
