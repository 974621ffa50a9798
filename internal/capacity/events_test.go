package capacity

import (
	"testing"

	"github.com/whystall/whystall/internal/oncpu"
	"github.com/whystall/whystall/internal/sched/schedtest"
)

// TestDisk: the kernel's stack says that a wait is for a disk, and the recorder looked up its file
// when it started. A wait for a lock, in a call on a file, is none.
func TestDisk(t *testing.T) {
	k := schedtest.Timeline(t, `
header cpus=0 pertask alltasks
thread tid=10 pid=10 comm=app target
stack id=1 io_schedule@kernel+0x1;folio_wait_bit_common@kernel+0x1;filemap_read@kernel+0x1
stack id=2 rwsem_down_write_slowpath@kernel+0x1;ext4_file_write_iter@kernel+0x1
stack id=3 @/data/table+0x0
switch t=0 cpu=0 tid=0 other=10 flags=othertarget
switch t=1000000 cpu=0 tid=10 other=0 flags=target args=2,18,5
disk t=1000000 cpu=0 tid=10 flags=target user=3
waking t=4000000 cpu=0 tid=10 other=0 flags=target,interrupt
switch t=4000000 cpu=0 tid=0 other=10 flags=othertarget
waitstack t=4000000 cpu=0 tid=10 kernel=1
switch t=5000000 cpu=0 tid=10 other=0 flags=target args=2,19,5
disk t=5000000 cpu=0 tid=10 flags=target user=3
waking t=7000000 cpu=0 tid=10 other=0 flags=target,interrupt
switch t=7000000 cpu=0 tid=0 other=10 flags=othertarget
waitstack t=7000000 cpu=0 tid=10 kernel=2
fault t=7200000 cpu=0 tid=10 flags=target,major user=3 args=500000,4096,4
switch t=8000000 cpu=0 tid=10 other=0 flags=target args=1,1,0
`)
	r := Sums(k, oncpu.New(k), nil)
	if m := r.Major; m.N != 1 || m.NS != 5e5 || len(m.Sites) != 0 || len(m.Flags) != 1 ||
		m.Flags[0].Who != "/data/table" {
		t.Errorf("got %+v, want one major fault of 0.5 ms for /data/table", m)
	}
	d := r.Disk
	if d.N != 1 || d.NS != 3e6 || d.Max != 3e6 || len(d.Flags) != 1 ||
		d.Flags[0].Who != "/data/table" || d.Flags[0].NS != 3e6 {
		t.Errorf("got %+v, want one wait of 3 ms for /data/table", d)
	}
}
