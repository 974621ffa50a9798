package thread

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/sched/schedtest"
)

// TestTurns has three connections. They hand a step to one worker, which takes 1 ms for each of
// them. Or they take turns with a semaphore. Or they wait for one result, which the worker gives to
// all of them at once. Only work for others is a wait for a turn. Tokens in a pipe and the kernel's
// own semaphores make the same turns. A lock on a file has a holder.
func TestTurns(t *testing.T) {
	for _, c := range []struct {
		kind            string
		serving, permit int64 // part of the third's 3 ms
		locked          int64
	}{{"worker", 2e6, 0, 0}, {"permit", 0, 3e6, 0}, {"result", 0, 0, 0}, {"pipe", 0, 3e6, 0},
		{"semop", 0, 3e6, 0}, {"flock", 0, 0, 3e6}} {
		t.Run(c.kind, func(t *testing.T) {
			r, err := Run(context.Background(), schedtest.Timeline(t, turnStream(c.kind)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			var serving, permit, locked, most int64
			for _, a := range r.Slow.Accounts {
				serving += a.Tags.ServingNS
				permit += a.Tags.PermitNS
				if a.Class == account.ClassLock {
					locked += a.NS
				}
			}
			locked /= max(1, int64(r.Slow.Requests))
			if r.Slow.Requests == 0 {
				t.Fatalf("no request: %+v", r.Requests)
			}
			most = r.Slow.WallNS / int64(r.Slow.Requests)
			serving, permit = serving/int64(r.Slow.Requests), permit/int64(r.Slow.Requests)
			near := func(got, want int64) bool { return got-want < 1e5 && want-got < 1e5 }
			if !near(serving, c.serving) || !near(permit, c.permit) || !near(locked, c.locked) {
				t.Errorf("of %d ns, %d while the worker worked for others, %d while others held what is needed, %d behind a lock's holder; want %d, %d, %d", most, serving, permit, locked, c.serving, c.permit, c.locked)
			}
		})
	}
}

func turnStream(kind string) string {
	var b strings.Builder
	line := func(f string, a ...any) { fmt.Fprintf(&b, f+"\n", a...) }
	line("header source=bpf kernel=6.18 pid=10 cpus=0 alltasks pertask")
	line("stack id=1 schedule;wait_woken;sk_wait_data;tcp_recvmsg_locked;tcp_recvmsg")
	line("stack id=2 schedule;futex_do_wait;__futex_wait;futex_wait;do_futex")
	line("stack id=3 sock_def_readable;tcp_rcv_established;net_rx_action")
	line("stack id=4 wake_up_q;futex_wake;do_futex")
	line("stack id=5 pthread_cond_wait;answer;serve")
	line("stack id=6 pthread_cond_wait;next;work")
	line("stack id=7 schedule;anon_pipe_read;vfs_read;ksys_read")
	line("stack id=8 wake_up_q;__do_semtimedop;do_semtimedop")
	line("stack id=9 schedule;locks_lock_inode_wait;__x64_sys_flock")
	line("stack id=11 schedule;__do_semtimedop;do_semtimedop;__x64_sys_semtimedop")
	line("stack id=10 autoremove_wake_function;anon_pipe_write;vfs_write;ksys_write")
	for _, tid := range []int{11, 12, 13} {
		line("thread tid=%d pid=10 comm=conn target", tid)
	}
	line("thread tid=20 pid=10 comm=work target")
	on := func(tid, at int) { line("switch t=%d cpu=%d other=%d flags=othertarget", at, tid, tid) }
	recv := func(tid, at int) {
		line("switch t=%d cpu=%d tid=%d flags=target args=1,45,%d kernel=1", at, tid, tid, tid)
	}
	// Calls have their numbers plus one, as in the records.
	inKernel := map[string]struct{ wait, call, waking, wakes int }{"pipe": {7, 1, 10, 2},
		"semop": {11, 221, 8, 66}, "flock": {9, 74, 8, 74}}
	wait := func(tid, at, addr, stack int) {
		if k, ok := inKernel[kind]; ok {
			line("switch t=%d cpu=%d tid=%d flags=target args=1,%d,7 kernel=%d user=%d", at, tid,
				tid, k.call, k.wait, stack)
			return
		}
		line("switch t=%d cpu=%d tid=%d flags=target args=1,202,%d kernel=2 user=%d", at, tid, tid, addr, stack)
	}
	net := func(tid, at int) { line("waking t=%d tid=%d flags=target,interrupt kernel=3", at, tid) }
	wake := func(tid, at, by, addr int) {
		if k, ok := inKernel[kind]; ok {
			line("waking t=%d tid=%d other=%d flags=target,othertarget kernel=%d args=0,%d,7", at,
				tid, by, k.waking, k.wakes)
			return
		}
		line("waking t=%d tid=%d other=%d flags=target,othertarget kernel=4 args=0,202,%d", at, tid, by, addr)
	}
	conns := []int{11, 12, 13}
	const ms, us = 1_000_000, 1000
	for _, tid := range conns {
		on(tid, 1)
	}
	on(20, 2)
	for _, tid := range conns {
		recv(tid, 10+tid)
	}
	wait(20, 30, 0x9000, 6)
	for round := range 40 {
		at := 10*ms + round*10*ms
		for i, tid := range conns {
			net(tid, at+i*us)
			on(tid, at+i*us+100)
		}
		// 11 has the permit while it sleeps for a packet, then 12, then 13.
		if _, ok := inKernel[kind]; ok || kind == "permit" {
			wait(12, at+20*us, 0x5000, 5)
			wait(13, at+20*us+1, 0x5000, 5)
			wake(12, at+2*ms, 11, 0x5000)
			on(12, at+2*ms+us)
			recv(11, at+2*ms+5*us)
			wake(13, at+3*ms, 12, 0x5000)
			on(13, at+3*ms+us)
			recv(12, at+3*ms+5*us)
			recv(13, at+3*ms+10*us)
			continue
		}
		for i, tid := range conns {
			if i == 0 {
				wake(20, at+10*us, tid, 0x9000)
				on(20, at+11*us)
			}
			wait(tid, at+20*us+i, 0x5000+64*i, 5)
		}
		for i, tid := range conns {
			done := at + (i+1)*ms
			if kind == "result" {
				done = at + 3*ms + i*us
			}
			wake(tid, done, 20, 0x5000+64*i)
			on(tid, done+500)
			recv(tid, done+5*us)
		}
		wait(20, at+3*ms+20*us, 0x9000, 6)
	}
	return b.String()
}
