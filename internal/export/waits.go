package export

import (
	"cmp"

	"github.com/whystall/whystall/internal/account"
)

// wait is time that slow requests waited with one cause and stack.
type wait struct {
	frames []string // the cause, who was waited for, then functions, the innermost last
	leaf   account.Leaf
	ns     int64
}

// waited reports whether an account is no computing of the requests themselves.
func waited(a *account.Account) bool {
	return a.Leaf != account.LeafOnCPU || a.Class != account.ClassOwn
}

// itself is the frame of a request that was waited for by nobody else.
const itself = "the request itself"

// waits are those of the slow column. Their sum is its time less what [Source.slow] calls own.
func (s *Source) waits() []wait {
	if w := s.Ledger.Waits; len(w) > 0 {
		return leaves(w)
	}
	var out []wait
	for i := range s.Ledger.Slow.Accounts {
		a := &s.Ledger.Slow.Accounts[i]
		if !waited(a) || a.NS <= 0 {
			continue
		}
		w := wait{frames: []string{clean(string(a.Leaf))}, leaf: a.Leaf, ns: a.NS}
		who := a.Actor
		if who == "" && a.Class == account.ClassOwn {
			who = itself
		}
		for _, name := range []string{who, a.Site, a.Detail} {
			if name = clean(name); name != "" && name != w.frames[len(w.frames)-1] {
				w.frames = append(w.frames, name)
			}
		}
		out = append(out, w)
	}
	return out
}

// leaves is the tree of waits as stacks. A node's time less its children's is its own stack's, so
// the sum is the root's even where the tree is damaged.
func leaves(tree account.Waits) (out []wait) {
	below := make([]int64, len(tree))
	for i := range tree {
		if p := tree[i].Parent; p >= 0 && p < i {
			below[p] += tree[i].NS
		}
	}
	has := make([]int64, len(tree)) // the time that its parent leaves to a node
	given := make([]int64, len(tree))
	frames := make([][]string, len(tree))
	for i := range tree {
		n := &tree[i]
		if n.Parent < 0 || n.Parent >= i {
			if i == 0 {
				has[0] = n.NS
			}
			continue
		}
		has[i] = n.NS
		if p := n.Parent; below[p] > has[p] {
			has[i] = account.MulDiv(n.NS, has[p], below[p])
		}
		given[n.Parent] += has[i]
		frames[i] = append(frames[n.Parent][:len(frames[n.Parent]):len(frames[n.Parent])], cmp.Or(clean(n.Name), "?"))
	}
	for i := range tree {
		if own := has[i] - given[i]; own > 0 {
			f := frames[i]
			if len(f) == 0 {
				f = []string{"others, each too small to be shown"}
			}
			out = append(out, wait{f, tree[i].Leaf, own})
		}
	}
	return out
}
