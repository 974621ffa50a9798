package books

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/request"
)

// Names says what the numbers in the books mean. Accounts and facts hold numbers of 32 bits, since
// comparing and keeping them is cheap. Words are needed once, when a column is written down.
type Names interface {
	// Func is the name of an actor, a site or a detail.
	Func(id uint32) string
	// Place is where a stack stands in the program.
	Place(stack uint32) account.Site
	// SiteOf is the same place as a number. If lock, the wait is for a lock, and the place is where
	// the lock is taken.
	SiteOf(stack uint32, lock bool) uint32
	// Behind is who had the CPU, by the number in a FactBehind.
	Behind(ref uint32) account.Instead
	// Time is the time of the recording for a time in the books.
	Time(at int64) int64
}

// Runtime says what the numbers mean that only the books of goroutines have. The entries are the
// entry functions of all listed groups: an occupant that is one of them served another request.
type Runtime interface {
	// Word is a kind of stop-the-world, in the runtime's word.
	Word(id uint32) string
	// Occupant is who held a P, by the number in a FactOccupant.
	Occupant(ref uint32, entries map[string]bool) account.Instead
	// Lacked is what the thread of a P lacked, by the number in a FactLacked.
	Lacked(ref uint32, entries map[string]bool) account.Instead
	// Request is the name of a request.
	Request(id request.NameID) string
}

// NameList gives names numbers, for an owner of books whose names have none yet. The zero value is
// ready. 0 is the empty name.
type NameList struct {
	names []string // by number, less one
	ids   map[string]uint32
}

// Number is the number of a name: the one that it has, or a new one.
func (l *NameList) Number(name string) uint32 {
	id, ok := l.ids[name]
	if !ok && name != "" {
		if l.ids == nil {
			l.ids = map[string]uint32{}
		}
		l.names = append(l.names, name)
		id = uint32(len(l.names))
		l.ids[name] = id
	}
	return id
}

// Name is the name with a number, empty for a number that was never given.
func (l *NameList) Name(id uint32) string {
	if id == 0 || int(id) > len(l.names) {
		return ""
	}
	return l.names[id-1]
}
