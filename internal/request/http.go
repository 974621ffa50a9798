package request

import "github.com/whystall/whystall/exectrace"

// net/http's connection loop, read from outside:
//
//  1. The goroutine waits for a request in Peek, or the first time in readRequest: idle.
//  2. It wakes: maybe a request, maybe the connection's end. Starting the background reader,
//     anything below ServeHTTP, or finishing proves the request.
//  3. finishRequest flushes the answer, then stops the background reader: the end. The wait for the
//     reader to stop belongs to no request. If the next request is there already, it is that one's
//     head.
//  4. There may be no background reader to stop: a body was left unread, or the next request's
//     first byte has been read. Then the last flush is the end, proven by the next sign of a
//     request or by the idle wait.

// httpBlock: the goroutine of a connection waits. False: nowhere special.
func (f *Finder) httpBlock(g *gstate, in *stackInfo, t exectrace.Time) bool {
	switch {
	case g.phase == phaseHijacked:
	case in.marks&markAbort != 0:
		f.httpAbort(g, in, t)
		if g.phase == phaseMaybe {
			g.flags |= flagAborting
		}
	case in.where == whereIdle, in.where == whereHandshake:
		if g.phase == phaseOpen {
			f.close(g, g.flushedOr(t))
		}
		g.phase = phaseIdle
	default:
		return false
	}
	return true
}

// httpFlush: the last flush of an answer begins to write. A second one in an open activation is
// another request's, which left no other trace: its body was not read, and its handler did nothing
// that shows.
func (f *Finder) httpFlush(g *gstate) {
	if g.phase != phaseOpen {
		return
	}
	if g.flushed > g.begin {
		end := g.flushed
		f.close(g, end)
		f.openAs(g, end, 0)
	}
	g.flags |= flagWriting
}

// httpAbort: the background reader is being stopped.
func (f *Finder) httpAbort(g *gstate, in *stackInfo, t exectrace.Time) {
	switch {
	case g.phase == phaseHijacked, g.phase == phaseMaybe && g.flags&flagTail != 0:
		return
	case g.phase == phaseMaybe:
		f.proven(g)
	case g.phase != phaseOpen:
		f.openAs(g, t, flagOpenBegin)
	}
	if in.marks&markHijack != 0 {
		f.abandon(g, Hijacked)
		g.phase = phaseHijacked
		return
	}
	f.close(g, t)
	f.open(g, t, flagTail)
}

// httpFresh: the background reader of a new request was created.
func (f *Finder) httpFresh(g *gstate, t exectrace.Time) {
	switch g.phase {
	case phaseHijacked:
	case phaseMaybe:
		f.proven(g)
	case phaseOpen:
		end := g.flushedOr(t)
		f.close(g, end)
		f.openAs(g, end, 0)
	default:
		f.openAs(g, t, flagOpenBegin)
	}
}

// httpSee: a stack proves what the goroutine is in the middle of.
func (f *Finder) httpSee(g *gstate, in *stackInfo, t exectrace.Time) {
	if g.phase == phaseHijacked {
		return
	}
	switch in.where {
	case whereIdle:
		if g.phase == phaseOpen { // reads on without having had to wait
			end := g.flushedOr(t)
			f.close(g, end)
			f.open(g, end, 0)
		} else if g.phase == phaseNone && g.flags&flagWoke != 0 {
			f.open(g, g.begin, 0)
		}
		g.flags &^= flagTail
	case whereHandler:
		switch {
		case g.phase == phaseMaybe:
			f.proven(g)
		case g.phase != phaseOpen:
			f.openAs(g, t, flagOpenBegin)
		case g.flushed > g.begin: // this request was answered: it is the next one's handler
			end := g.flushed
			f.close(g, end)
			f.openAs(g, end, 0)
		}
	case whereFinish:
		switch {
		case g.phase == phaseMaybe && g.flags&flagTail == 0:
			f.proven(g)
		case g.phase == phaseNone:
			f.openAs(g, t, flagOpenBegin)
		}
	case whereClose:
		g.flags |= flagClosing
	case whereHTTP2:
		f.abandon(g, Lost)
		g.role = roleNever
	}
}

// httpEnd: the connection's goroutine ends.
func (f *Finder) httpEnd(g *gstate, t exectrace.Time) {
	if g.phase != phaseOpen {
		return
	}
	if g.flushed == 0 && g.flags&flagClosing == 0 {
		f.abandon(g, Hijacked) // it never came to finish: the connection lives elsewhere
		return
	}
	f.close(g, g.flushedOr(t))
}
