package account

// Named is what identifies an account to a person.
type Named struct {
	Class               Class
	Leaf                Leaf
	Actor, Site, Detail string
	Holder              string // of a lock, where it waited for the actor
}

// Words names an account in one clause: what was done, by whom if not by the request itself, and
// where. It is the one name of an account, in the ledger's rows and in what findings quote. name
// prints a symbol as the caller wants it.
func Words(a Named, name func(string) string) string {
	cause, place := string(a.Leaf), ""
	switch {
	case a.Detail == "" || a.Detail == a.Site:
	case a.Leaf == LeafNoCPU:
		cause += " (" + name(a.Detail) + ")" // behind whom
	case a.Leaf == LeafAsleep:
		cause += " in " + name(a.Detail)
	case a.Leaf.Stopped():
		cause += " (" + name(a.Detail) + ")"
	default:
		place = " in " + name(a.Detail) // where the actor waited
	}
	at := func(prefix string) string {
		if a.Site == "" {
			return ""
		}
		return prefix + name(a.Site)
	}
	if a.Leaf == LeafPreviousEnd {
		return cause + ": the connection was still busy with the one before"
	}
	switch a.Class {
	case ClassLock:
		switch a.Leaf {
		case LeafLockBetween:
			return "lock" + at(" at ") + ": between holders"
		case LeafLockUnseen:
			return "lock" + at(" at ") + ": holder unseen"
		case LeafLock: // of native code
			return "lock" + at(" at ") + ": its holder is not known"
		}
		if a.Actor == "" {
			return "lock" + at(" at ") + ", its holder: " + cause + place
		}
		if a.Holder != "" {
			return "lock" + at(" at ") + ", its holder " + name(a.Holder) + " waits for " +
				name(a.Actor) + ": " + cause + place
		}
		return "lock" + at(" at ") + ", its holder " + name(a.Actor) + ": " + cause + place
	case ClassMessage:
		if a.Actor == "" {
			return cause + place + at(": awaited at ")
		}
		return cause + ": " + name(a.Actor) + place + at(", awaited at ")
	case ClassOwn:
		if a.Site == "" && place == "" && (a.Leaf == LeafOnCPU || a.Leaf == LeafRunnable) {
			return cause + ": the request itself"
		}
		return cause + place + at(", at ")
	}
	if a.Actor != "" {
		return cause + " of " + name(a.Actor) + place + at(", at ")
	}
	return cause + place + at(", at ")
}

// Phrase names an account inside a sentence, as the line of reason of a slow request does: cause,
// actor and place one after another. [Words] is for a row that stands alone, so it puts the actor
// first where the request itself did nothing, and says what is known of a lock's holder. Neither
// can be made of the other.
func Phrase(a *Account) string {
	s := string(a.Leaf)
	switch {
	case a.Detail == "":
	case a.Leaf == LeafSTW, a.Leaf == LeafNoCPU:
		s += " (" + a.Detail + ")"
	case a.Leaf == LeafAsleep:
		s += " in " + a.Detail
	}
	if a.Actor != "" {
		s += " of " + a.Actor
	}
	return s + Stand(a.Class, a.Site)
}

// Stand says where a request stood, in words that follow a cause. It is empty without a site.
func Stand(class Class, site string) string {
	switch {
	case site == "":
		return ""
	case class == ClassOwn:
		return " in " + site
	case class == ClassLock:
		return ", for the lock in " + site
	}
	return ", waited for in " + site
}
