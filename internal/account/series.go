package account

// Series is what happened when, for people's eyes: requests over time, and beside them what stopped
// or held up the process. Times are on the clock of [Result.Begin]. No detector reads it.
type Series struct {
	// Dots are requests, by their start: every one if Whole, else the slow ones, and Density counts
	// all.
	Dots    []Dot
	Whole   bool
	Density Density // without cells if Whole
	// NotShown is how many requests neither has: where groups are very many, those of small ones.
	NotShown int64

	Entries []string // entry functions, by the number that a Dot has
	// Largest is accounts, by the number that a Dot has. Of a slow request it is the account of the
	// slow column. Others were not explained: of them it has the leaf alone, of their own states.
	Largest []Named

	Bands  []Band  // by their start
	Levels []Level // by name
}

// Dot is one request.
type Dot struct {
	Begin   int64
	NS      int64
	Actor   int64 // its goroutine, or its thread
	Entry   int   // in Series.Entries
	Largest int   // in Series.Largest: where most of its time went
	Slow    bool
}

// MostDots is how many requests are kept each for itself.
const MostDots = 20_000

// Density is how many requests of which length started when. Columns are of equal width.
type Density struct {
	Begin int64 // of the first column
	Width int64 // ns of each
	Cells []DensityCell
}

// DensityCell is one field that has requests. Cells come by column, then by length.
type DensityCell struct {
	Column  int
	Low, Up int64 // the requests took at least Low and less than Up ns
	N       int64
}

// BandKind says what a [Band] is.
type BandKind string

// Kinds of bands.
const (
	BandSTW       BandKind = "stop-the-world"
	BandMark      BandKind = "GC cycle"  // its concurrent mark phase
	BandThrottled BandKind = "throttled" // some thread of the target was
	BandReclaim   BandKind = "reclaim"   // some thread of the target was in direct reclaim or compaction
)

// MostBands is how many bands of a kind there are at most. Beyond it, neighbours become one.
const MostBands = 2000

// Band is a stretch in which something held for the process.
type Band struct {
	Kind       BandKind
	Begin, End int64
	Detail     string // kind of a stop-the-world, the runtime's word
	Ours       bool   // the recording itself caused it
}

// Level is a counter of time as a share of the time between two readings.
type Level struct {
	Stream string // of the evidence: "/host/psi/cpu/some:ns"
	Points []LevelPoint
}

// LevelPoint is the share between two readings.
type LevelPoint struct {
	Begin, End int64
	Share      float64
}
