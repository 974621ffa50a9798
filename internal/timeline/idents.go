package timeline

import "github.com/whystall/whystall/exectrace"

// Ident is who a goroutine is. It is kept as long as a segment may refer to it.
type Ident struct {
	GoID  exectrace.GoID
	Entry FuncID // its entry function, once known

	// Served: a goroutine with another entry function ended a wait of it for a message, as one does
	// that gives it work.
	Served bool
}

// identities numbers goroutines for the segments that refer to them. The number of a dead goroutine
// is used again once its last segment is no longer kept.
type identities struct {
	idents   []Ident
	dead     []deadIdent // in order of death
	deadNext int         // first of dead not yet used again
}

type deadIdent struct {
	head  uint64 // of the ring at its death
	ident uint32
}

// maxIdents bounds the table, 6 MB. When it is full, the oldest segments go instead.
const maxIdents = 1 << 18

func (d *identities) init() {
	// Room that need not move, as with the ring: a server that makes a goroutine for each request
	// has so many in the ring's reach.
	d.idents, d.dead = make([]Ident, 1, 1<<17), make([]deadIdent, 0, 1<<16)
}

// newIdent takes a free number, else a new one. For that r may have to forget its oldest segments.
func (d *identities) newIdent(id exectrace.GoID, r *ring) uint32 {
	if d.deadNext < len(d.dead) {
		old := d.dead[d.deadNext]
		if old.head < r.oldest || len(d.idents) >= maxIdents {
			if old.head >= r.oldest {
				r.oldest = min(old.head+1, r.head)
			}
			d.deadNext++
			if d.deadNext > 1024 && d.deadNext*2 > len(d.dead) {
				d.dead = d.dead[:copy(d.dead, d.dead[d.deadNext:])]
				d.deadNext = 0
			}
			d.idents[old.ident] = Ident{GoID: id}
			return old.ident
		}
	}
	d.idents = append(d.idents, Ident{GoID: id})
	return uint32(len(d.idents) - 1)
}

// Identity is the goroutine with the number.
func (d *identities) Identity(ident uint32) *Ident { return &d.idents[ident] }

// EntryOf is the entry function of ident.
func (d *identities) EntryOf(ident uint32) FuncID { return d.idents[ident].Entry }

// Alike reports whether two goroutines have the same entry function.
func (d *identities) Alike(a, b uint32) bool {
	e := d.idents[a].Entry
	return e != 0 && e == d.idents[b].Entry
}
