package unit

import (
	"strings"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// stackFacts is what a stack says, the user's or the kernel's.
type stackFacts struct {
	sig      uint32      // the same for stacks of the same functions; 0: the stack is not whole
	depth    int         // frames up to the thread's root, where the stack is whole
	entry    string      // the program's outermost function
	timer    bool        // it is a timer's interrupt
	asks     sched.Block // what a function of the C library asks to wait for
	multi    multiplex
	goFrames bool // functions of Go's scheduler
	making   bool // functions that make threads, or that take and give back the stacks which the C library keeps
}

// stack is what the stack with a StackID says, found out once.
func (f *finder) stack(id uint32) *stackFacts {
	if st, ok := f.stacks[id]; ok {
		return st
	}
	st := &stackFacts{}
	if id != 0 {
		frames := f.timeline.Stack(id)
		f.learnStack(st, frames)
	}
	f.stacks[id] = st
	return st
}

// learnStack reads a stack from its innermost frame. Only a stack that goes on to the root of its
// thread is whole: others were cut off, and two of them may look alike by chance. Such a stack has
// no sig.
func (f *finder) learnStack(st *stackFacts, frames []kernel.Frame) {
	var b strings.Builder
	for i := range frames {
		fr := &frames[i]
		if fr.Inferred {
			break // inferred from return addresses: it may never have been called
		}
		name := fr.Func
		switch plain, _, _ := strings.Cut(name, "@"); strings.TrimLeft(plain, "_") {
		case "pthread_create", "pthread_create_2_1", "thrd_create", "allocate_stack",
			"get_cached_stack", "nptl_free_stacks", "nptl_deallocate_stack",
			"nptl_free_tcb", "deallocate_stack", "free_stacks", "queue_stack":
			st.making = true
		}
		switch {
		case strings.HasPrefix(name, "hrtimer_") || name == "process_timeout" || name == "it_real_fn":
			st.timer = true
		case strings.HasPrefix(name, "ep_poll") || name == "do_epoll_wait" ||
			strings.HasPrefix(name, "do_sys_poll") || name == "do_poll" ||
			name == "do_select" || name == "core_sys_select":
			st.multi = multiMany
		case strings.HasSuffix(name, "_accept") || strings.HasPrefix(name, "do_accept") ||
			strings.HasPrefix(name, "__sys_accept"):
			st.multi = multiAccept
		case name == "runtime.mcall" || name == "runtime.findRunnable" ||
			name == "runtime.schedule" || name == "runtime.mstart" || name == "runtime.goexit":
			st.goFrames = true
		}
		if i < 2 && st.asks == sched.BlockUnknown {
			if b, m := asksFor(name); b != sched.BlockUnknown {
				st.asks, st.multi = b, m
			}
		}
		if sched.ThreadRoot(name) {
			if i > 0 {
				st.depth = i
				sig, ok := f.sigs[b.String()]
				if !ok && len(f.sigs) < 1<<16 {
					sig = uint32(len(f.sigs) + 1)
					f.sigs[b.String()] = sig
				}
				st.sig = sig
				st.entry = entryBelow(frames[:i])
			}
			return
		}
		if name == "" && fr.Module == "" {
			return // an address outside of all code: what follows is no stack
		}
		b.WriteString(name)
		if name == "" {
			b.WriteString(fr.Module)
			for v := fr.Offset; v != 0; v >>= 8 {
				b.WriteByte(byte(v))
			}
		}
		b.WriteByte(0)
	}
}

// entryBelow is the outermost function that is the program's own; "" if its name is not known.
func entryBelow(frames []kernel.Frame) string {
	for i := len(frames) - 1; i >= 0; i-- {
		name := frames[i].Func
		switch {
		case strings.Contains(frames[i].Module, "libc.so"), strings.Contains(frames[i].Module, "ld-"):
			continue // the library's own work at a thread's start or end
		case name == "":
			return ""
		case sched.LanguageFunc(name), strings.HasPrefix(name, "execute_native_thread_routine"),
			strings.HasPrefix(name, "thread_native_entry"),
			strings.HasPrefix(name, "Thread::call_run"):
			continue
		}
		return name
	}
	return ""
}

// asksFor says what the caller of a function of the C library waits for.
func asksFor(name string) (sched.Block, multiplex) {
	name = strings.TrimPrefix(strings.TrimLeft(name, "_"), "GI_")
	name = strings.TrimPrefix(strings.TrimLeft(name, "_"), "libc_")
	switch name {
	case "epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect":
		return sched.BlockNetwork, multiMany
	case "accept", "accept4":
		return sched.BlockNetwork, multiAccept
	case "recv", "recvfrom", "recvmsg", "recvmmsg":
		return sched.BlockNetwork, multiNone
	case "nanosleep", "clock_nanosleep", "clock_nanosleep_time64":
		return sched.BlockTimer, multiNone
	}
	return sched.BlockUnknown, multiNone
}

// depthOf is how deep in the program a site is; 0 not known.
func (f *finder) depthOf(s *site) int { return f.stack(s.user).depth }
