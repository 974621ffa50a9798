package kernelfile

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// failures tells lines apart that are of one failed command, time-outs of one command, and lines
// that a person shows twice.
type failures struct {
	told   []int     // sorts of lines that the current failure was told in
	at     float64   // of its first line, s
	timed  bool      // that line has a time
	head   eventName // as what that line counted
	joined int       // lines that went on with a failure
	medium []string  // disks that cannot read or write a sector

	tags     map[string]float64 // commands that timed out, and when last, s
	untagged int
}

// failureLines are what a failed command is told in, each at most once: by libata, by the SCSI
// layer, by the block layer and by the page cache.
var failureLines = []*pattern.Regexp{
	pattern.New(`ata\d+(?:\.\d+)?: exception `),
	pattern.New(`ata\d+(?:\.\d+)?: failed command: `),
	pattern.New(`ata\d+(?:\.\d+)?: error: \{`),
	pattern.New(`FAILED Result:`),
	pattern.New(`Sense Key : `),
	pattern.New(`critical \w+ error, dev |(?:^|[^r] )I/O error,? (?:on )?dev`),
	pattern.New(`Buffer I/O error`),
}

// sameFailure is how far apart the lines of one failed command may stand, s.
const sameFailure = 5

// joins reports whether a line goes on with the failure that lines above it tell.
func (f *failures) joins(name eventName, text string, at float64, timed bool) bool {
	sort := slices.IndexFunc(failureLines, func(re *pattern.Regexp) bool { return re.MatchString(text) })
	if sort < 0 {
		return false
	}
	near := f.timed == timed && (!timed || at-f.at <= sameFailure && at >= f.at)
	if near && len(f.told) > 0 && f.told[len(f.told)-1] < sort {
		f.told = append(f.told, sort)
		f.joined++
		return true
	}
	f.told, f.at, f.timed = append(f.told[:0], sort), at, timed
	f.head = name
	return false
}

var mediumLine = pattern.New(`Sense Key : Medium Error|critical medium error|ata\d+(?:\.\d+)?: error: \{[^}]*\bUNC\b|\(media error\)`)

// media notes a disk that names its medium as what failed.
func (f *failures) media(text, device string) {
	if !mediumLine.MatchString(text) || len(f.medium) >= 64 {
		return
	}
	if device != "" && !slices.Contains(f.medium, device) {
		f.medium = append(f.medium, device)
	}
}

var commandTag = pattern.New(`I/O (?:tag )?(\d+) .*?QID (\d+)|tag#(\d+)`)

// sameCommand is how long a command may be tried: a tag that comes again later is another's.
const sameCommand = 300

// timeout notes which command timed out: one that is aborted in vain times out again.
func (f *failures) timeout(text, device string, at float64) {
	m := commandTag.FindStringSubmatch(text)
	if m == nil || len(f.tags) >= 1<<16 {
		f.untagged++
		return
	}
	key := device + " " + strings.Join(m[1:], " ")
	if last, ok := f.tags[key]; ok && at-last > sameCommand {
		f.untagged++ // another command with the tag of one that is done
	}
	if f.tags == nil {
		f.tags = map[string]float64{}
	}
	f.tags[key] = at
}

func (f *failures) commands() int { return len(f.tags) + f.untagged }

// quotes knows lines that a person shows again: the same line, time and all, after lines of another
// time. What the kernel itself says twice within a second stands together.
type quotes struct {
	seed maphash.Seed
	seen map[uint64]int // hash of a line: the run of one time in which it stood
	run  int
	last float64
}

func (q *quotes) again(l paste.Line) bool {
	at, ok := stampOf(l)
	if !ok {
		return false
	}
	if q.seen == nil {
		q.seen, q.seed = map[uint64]int{}, maphash.MakeSeed()
	} else if at != q.last {
		q.run++
	}
	q.last = at
	whole := l.Text
	if l.Raw != "" {
		whole = l.Raw
	}
	h := maphash.String(q.seed, strings.TrimSpace(whole))
	run, ok := q.seen[h]
	if !ok && len(q.seen) < 1<<16 {
		q.seen[h] = q.run
	}
	return ok && run != q.run
}
